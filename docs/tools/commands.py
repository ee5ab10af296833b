#!/usr/bin/env python3
"""commands.py BIN FOLDER: writes a page of Markdown for each program of the folder BIN, from its --help.

The pages are also the sources of the manual pages. A flag is a term of a definition list.
"""

import pathlib
import re
import subprocess
import sys

PROGRAMS = ("propeller-controller", "propeller-webhook", "propeller-certgen", "propeller-standalone",
            "propeller-graph", "kubectl-propeller")
SEE_ALSO = {
    "propeller-controller": "propeller-webhook(8), propeller-certgen(8), propeller-standalone(1)",
    "propeller-webhook": "propeller-controller(8), propeller-certgen(8)",
    "propeller-certgen": "propeller-webhook(8)",
    "propeller-standalone": "propeller-controller(8)",
    "propeller-graph": "propeller-controller(8)",
    "kubectl-propeller": "propeller-controller(8), propeller-standalone(1)",
}
ENVIRONMENT = {
    "propeller-graph": "No variable matters.",
    "kubectl-propeller": "`KUBECONFIG` names the kubeconfigs, separated by colons. The first file that has an entry wins.",
    None: "Each flag may also be set as `PROPELLER_<NAME>` in the environment, in capitals and with underscores. "
          "The command line has precedence.",
}
EXIT_STATUS_OF_GRAPH = """0: the file is accepted, and the requests are answered.

1: the file is refused. Each error is a line.

2: the command line is wrong, or a file cannot be read.

3: the requests are refused. The output says why."""
EXIT_STATUS_OF_PLUGIN = """0: done.

1: the answer is no: a Task failed, or there are findings.

2: the command line, a kubeconfig or a file is wrong.

3: the API server refused or did not answer.

124: a time-out.

128 and the number of a signal: the command was interrupted."""
EXIT_STATUS = """0: the program did its work, or was stopped by a signal.

1: it could not start, or could not go on.

2: the command line is wrong."""


def help_of(*command):
    return subprocess.run([*command, "--help"], check=True, capture_output=True, text=True).stdout


def escaped(text):
    return re.sub(r"([<>*_$])", r"\\\1", text)


def flags_of(text):
    """(term, description) of each flag; a description goes on in the lines that begin in its column."""
    flags = []
    for line in text.splitlines():
        if found := re.match(r"  ((?:-\w, )?--\S+(?: [A-Z][A-Z0-9:=]*)?)(?:\s{2,}(.*))?$", line):
            flags.append([found[1], found[2] or ""])
        elif flags and line.startswith("    ") and line.strip():
            flags[-1][1] += " " + line.strip()
        elif flags and not line.strip():
            break
    return flags


def commands_of(text):
    return re.findall(r"^  ([a-z][a-z-]*)  +(\S.*)$", text, re.M)


def definitions(flags):
    return "\n".join(f"`{term}`\n: {escaped(' '.join(about.split()))}\n" for term, about in flags)


def examples_of(text):
    found = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.M)
    if not found:
        sys.exit(f"commands: no examples in the help text: {text[:60]}")
    return "Examples:\n\n```\n" + "\n".join(line.strip() for line in found[1].splitlines()) + "\n```\n"


def section(program, command, text, title):
    about, usage = text.strip().split("\n\n")[:2]
    name = [program] + ([command] if command else [])
    flags = flags_of(text)
    if not flags and not commands_of(text):
        sys.exit(f"commands: {' '.join(name)} --help shows no flag")
    lines = [title, "", escaped(about), "", "```", usage.strip().removeprefix("Usage: "), "```", ""]
    return "\n".join(lines) + definitions(flags) + "\n" + examples_of(text)


def page_of(folder, program):
    path = str(pathlib.Path(folder) / program)
    text = help_of(path)
    if commands := commands_of(text):
        usage = text.splitlines()[0].removeprefix("Usage: ")
        parts = [f"# {program}", escaped(text.split("\n\n")[1]), f"```\n{usage}\n```"]
        parts += [section(program, name, help_of(path, name), f"## {program} {name}") for name, _ in commands]
    else:
        parts = [section(program, None, text, f"# {program}")]
    status = {"kubectl-propeller": EXIT_STATUS_OF_PLUGIN, "propeller-graph": EXIT_STATUS_OF_GRAPH}
    parts += ["## Environment", ENVIRONMENT.get(program, ENVIRONMENT[None]),
              "## Exit status", status.get(program, EXIT_STATUS), "## See also", SEE_ALSO[program]]
    return "\n\n".join(parts) + "\n"


def main(binaries, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        (folder / f"{program}.md").write_text(page_of(binaries, program), encoding="utf-8")
    listed = "\n".join(PROGRAMS)
    (folder / "index.md").write_text(
        "# Programs\n\nThe flags of each program, generated from its `--help`. `make man` makes manual pages of them.\n\n"
        f"```{{toctree}}\n{listed}\n```\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
