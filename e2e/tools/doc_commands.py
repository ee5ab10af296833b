#!/usr/bin/env python3
"""Runs the commands of pages, and compares what they print with the page.

    doc_commands.py PAGE...    pages of docs/tutorials and docs/how-to, and of examples; prints a line for each failure, then the sums

A fence ```console holds lines "$ command", each followed by the output that is expected; "..." stands for any text,
spaces count as one, and without a line nothing is compared. "[1]" as the last line is the exit status, 0 otherwise.
A here-document goes on up to its word. ```console {skip: reason} is counted and not run; {skip 2 4: reason} names the
commands of the fence. Commands with sudo are run by root without it, and by others not at all.

"% continues PAGE until ## HEADING" begins again, with the commands of another page up to that heading. If that page
continues one itself, with those, too.

The front matter says what is there when a page begins, `world:`
    standalone    `make demo KEEP=1`, in a shell that has read build/e2e/demo.env
    cluster       the same with CLUSTER=1
    none          a shell with the programs of build/bin; the page may begin and end a demo itself
The commands of a page run in one shell. Its home is an empty folder with links to config/, rbac/, build/, e2e/ and
examples/, and `make` uses the Makefile of the checkout.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "build/e2e/demo.env"  # there while a demo runs
TIMEOUT_S = 180
MAX_SKIPPED = 10  # one of so many commands
FEW_PAGES = 10  # of which nothing follows for all
MARK = "doc-commands-end"
WORLDS = {"none": None, "standalone": {}, "cluster": {"CLUSTER": "1"}}


class Command:
    def __init__(self, line, text):
        self.line, self.text, self.expected = line, text, []

    def matches(self, output, status):
        expected, wanted = list(self.expected), 0
        if expected and (found := re.fullmatch(r"\[(\d+)\]", expected[-1])):
            wanted = int(found[1])
            expected.pop()
        if status != wanted:
            return f"exit status {status}, expected {wanted}"
        if not expected:
            return None
        pattern = r"\s*".join(re.escape(" ".join(line.split())).replace(r"\.\.\.", ".*").replace(r"\ ", r"\s+")
                              for line in expected)
        pattern = pattern.replace(r".*\s+", r".*\s*").replace(r"\s+.*", r"\s*.*")
        return None if re.fullmatch(pattern, output.strip(), re.S) else "another output"


def commands_of(lines):
    """The commands of the fences, and the number of those that are skipped."""
    commands, skipped, inside, skips, until = [], 0, False, False, None
    for number, line in enumerate(lines, 1):
        if not inside:
            if found := re.match(r"\s*```console(?: \{skip((?: \d+)*): .+\})?$", line):
                inside, position, these = True, 0, found[1]
            continue
        if until:
            commands[-1].text += "\n" + line
            until = None if line.strip() == until else until
        elif line.strip() == "```":
            inside = False
        elif line.startswith("$ "):
            position += 1
            skips = these is not None and (not these or str(position) in these.split()) or (
                "sudo " in line and os.geteuid() != 0)
            skipped += skips
            commands += [] if skips else [Command(number, line[2:])]
            if found := re.search(r"<<-?'?(\w+)", line):
                until = None if skips else found[1]
        elif commands and not skips:
            commands[-1].expected.append(line)
        elif not skips:
            raise ValueError(f"{number}: output without a command")
    if inside:
        raise ValueError(f"{len(lines)}: a fence is not closed")
    return commands, skipped


def parts_of(file, lines):
    """Each world of the page with its commands, and the number of those that are skipped."""
    found = re.match(r"---\nworld: (\w+)\n---\n", "\n".join(lines[:3]) + "\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("% continues ")]
    commands, skipped = commands_of(lines)
    parts = [(found and found[1], [c for c in commands if not starts or c.line <= starts[0]])]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        page, heading = re.fullmatch(r"% continues (\S+) until (## .+)", lines[start]).groups()
        path = pathlib.Path(file).parent / page
        others = path.read_text(encoding="utf-8").splitlines()
        world, before = parts_of(path, others[:others.index(heading)])[0][-1]
        parts.append((world, before + [c for c in commands if start < c.line <= end]))
    return parts, skipped


class Shell:
    def __init__(self, folder, before):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.run(before)

    def run(self, text):
        """(output, status); status None: it did not end in time."""
        self.process.stdin.write(f"{text}\nprintf '\\n%s %s\\n' {MARK} $?\n")
        self.process.stdin.flush()
        timer = threading.Timer(TIMEOUT_S, self.process.kill)
        timer.start()
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                timer.cancel()
                return "".join(lines), int(line.split()[1])
            lines.append(line)
        timer.cancel()
        return "".join(lines), None

    def close(self):
        """Also ends what the page left in the background."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self.process.stdin.close()
            self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def run_page(file, commands, world):
    """Prints the first command that fails: those after it have lost their world. Returns whether all passed."""
    before = f"export PATH={ROOT}/build/bin:$PATH; make() {{ command make --no-print-directory -C {ROOT} \"$@\"; }}; sudo() {{ \"$@\"; }}"
    if WORLDS[world] is not None:
        subprocess.run(["env", "KEEP=1", *(f"{name}={value}" for name, value in WORLDS[world].items()), "e2e/demo.sh"],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        before += f"; source {KEPT}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("build", "config", "e2e", "examples", "rbac"):
                (pathlib.Path(folder) / name).symlink_to(ROOT / name)
            shell = Shell(folder, f"export HOME={folder}; {before}")
            for command in commands:
                output, status = shell.run(command.text)
                problem = f"not ended after {TIMEOUT_S} s" if status is None else command.matches(output, status)
                if problem:
                    print(f"{file}:{command.line}: {problem}\n    $ {command.text}\n    expected: "
                          f"{' / '.join(command.expected)}\n    printed:  {output.strip()[:600]}")
                    shell.close()
                    return False
            shell.close()
    finally:
        if KEPT.exists():
            subprocess.run(["e2e/demo.sh", "stop"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return True


def main(files):
    run, skipped, failed = 0, 0, 0
    for file in files:
        if not pathlib.Path(file).is_file():
            sys.exit(f"doc_commands.py: there is no page {file}")
        lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
        try:
            parts, left = parts_of(file, lines)
        except ValueError as error:
            sys.exit(f"{file}:{error}")
        skipped += left
        for world, commands in parts:
            if commands and world not in WORLDS:
                sys.exit(f"{file}:1: no `world:` of {', '.join(WORLDS)}")
            run += len(commands)
            if commands and not run_page(file, commands, world):
                failed += 1
    print(f"{run} commands of {len(files)} pages, {failed} pages failed, {skipped} commands skipped")
    if skipped * MAX_SKIPPED > run + skipped and len(files) > FEW_PAGES:
        print(f"more than one command of {MAX_SKIPPED} is skipped")
        failed += 1
    return 1 if failed or not run else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
