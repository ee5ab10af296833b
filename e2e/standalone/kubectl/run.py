"""run.py: the same steps with kubectl on a kube-apiserver and on propeller-standalone; what is printed is compared."""
import argparse
import collections
import concurrent.futures
import difflib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 300
Record = collections.namedtuple("Record", "what code text")
Known = collections.namedtuple("Known", "kubectl step what real ours why")

SPANS = r"\d+[smh](?:\d+[ms])?"
# What may differ, and what stands for it.
MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| [+-]\d{4})"), "<time>"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"(?<=\")20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"(resourceVersion\\?\"?: ?\\?\"|Resource Version: +)\d+"), r"\1<version>"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"(/tmp/(?:LIVE|MERGED|kubectl-edit)-)[0-9a-z]+"), r"\1<random>"),
    (re.compile(r"(?m)^stderr: [EIW]\d.* reflector\.go:.*\n"), ""),  # whether it says so at its deadline is its own race
    (re.compile(r"(?m)^stderr: [EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ "), "stderr: <log> "),
)
# Ages in tables and descriptions; what follows begins in the same column.
AGE = re.compile(r"(?m)(?:^|(?<=[ (]))%s( +|$|(?=\)))" % SPANS)


def without_ages(text):
    if re.search(r"\(x\d+ over |AGE +\S", text):  # an age that moves the columns behind it
        text = re.sub(r" {2,}", "  ", re.sub(r"-{3,}", "---", text))
        return AGE.sub(lambda m: "<age>" + "  " * bool(m.group(1)), text)
    return AGE.sub(lambda m: "<age>" + " " * (max(1, len(m.group()) - 5) if m.group(1) else 0), text)


def masked(text):
    for pattern, stands_for in MASKS:
        text = pattern.sub(stands_for, text)
    return without_ages(text)


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def steps_of(text):
    parts = re.split(r"^## (.*)\n", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


def known_of(text):
    return [Known(*(part.strip() for part in line.split(" | ", 5)))
            for line in text.splitlines() if line.strip() and not line.startswith("#")]


def end_group(shell):
    try:
        os.killpg(shell.pid, signal.SIGKILL)  # and what it left in the background
    except ProcessLookupError:
        pass
    shell.wait()


class Side:
    """One server, as one version of kubectl sees it."""

    def __init__(self, name, kubeconfig, kubectl, options):
        self.name = name
        self.folder = os.path.join(options.work, os.path.basename(options.namespace) + "-" + name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.kubeconfig = os.path.join(self.folder, "kubeconfig")
        shutil.copyfile(kubeconfig, self.kubeconfig)
        self.environment = dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=self.folder, KUBECTL=kubectl,
                                NEWEST=options.newest, NS=options.namespace, SAMPLES=options.samples, TZ="UTC")
        self.environment["TMPDIR"] = "/tmp"  # kubectl names its files
        subprocess.run([options.newest, "config", "set-context", "--current", "--namespace", options.namespace],
                       env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def run(self, number, script):
        """The records of one step."""
        records = os.path.join(self.folder, "records-%02d" % number)
        os.mkdir(records)
        with open(os.path.join(self.folder, "output-%02d" % number), "wb") as output:
            shell = subprocess.Popen(["bash", "-uc", script], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=output, env=dict(self.environment, RECORDS=records), start_new_session=True)
            try:
                shell.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                return [Record("the step", "-", "does not end")]
            finally:
                end_group(shell)
        found = []
        for name in sorted(os.listdir(records)):
            if name.endswith(".what"):
                what, code, out = (text_of(os.path.join(records, name[:-4] + part)) for part in ("what", "code", "out"))
                found.append(Record(masked(what.strip()), code.strip(), masked(out)))
        return found


class Comparison:
    def __init__(self, known):
        self.known = known
        self.used = set()
        self.compared = self.expected = self.differ = 0

    def of(self, version, step, real, ours):
        if [r.what for r in real] != [r.what for r in ours]:
            self.report(version, step, "what was run", "\n".join(r.what for r in real), "\n".join(r.what for r in ours))
            return
        for theirs, mine in zip(real, ours):
            self.compared += 1
            if theirs != mine and not self.is_known(version, step, theirs, mine):
                self.report(version, step, theirs.what, self.shown(theirs), self.shown(mine))

    @staticmethod
    def shown(record):
        return record.text + ("exit %s\n" % record.code)

    def is_known(self, version, step, real, ours):
        for index, known in enumerate(self.known):
            if (re.search(known.kubectl, version) and re.search(known.step, step) and re.search(known.what, real.what)
                    and re.search(known.real, self.shown(real)) and re.search(known.ours, self.shown(ours))):
                self.used.add(index)
                self.expected += 1
                return True
        return False

    def report(self, version, step, what, real, ours):
        self.differ += 1
        print("\n==== kubectl %s: %s: %s" % (version, step, what))
        print("\n".join(difflib.unified_diff(real.splitlines(), ours.splitlines(), "kube-apiserver", "standalone", "", "", 2, "")))

    def stale(self):
        return [known for index, known in enumerate(self.known) if index not in self.used]


def version_of(kubectl):
    said = subprocess.run([kubectl, "version", "--client"], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    return re.search(r"v(\d+\.\d+\.\d+)", said).group(1)


def main():
    parser = argparse.ArgumentParser()
    for name in ("real", "ours", "work", "namespace", "samples", "newest"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--kubectl", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    version = version_of(options.kubectl)
    comparison = Comparison(known_of(text_of(os.path.join(HERE, "known.txt"))))
    before, steps = text_of(os.path.join(HERE, "lib.sh")), steps_of(text_of(os.path.join(HERE, "steps.sh")))
    sides = [Side("real", options.real, options.kubectl, options), Side("ours", options.ours, options.kubectl, options)]
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(sides)) as pool:
        for number, (name, script) in enumerate(steps):
            if options.only and not re.search(options.only, name):
                continue
            real, ours = pool.map(lambda side, n=number, s=before + script: side.run(n, s), sides)
            comparison.of(version, name, real, ours)
    for known in [] if options.only else comparison.stale():
        print("kubectl %s: known to differ, but does not: %s | %s" % (version, known.step, known.what))
    print("measured: kubectl %s: %d outputs compared, %d of them known to differ, %d differ; %.0f s" % (
        version, comparison.compared, comparison.expected, comparison.differ, time.monotonic() - started))
    return 1 if comparison.differ else 0


if __name__ == "__main__":
    sys.exit(main())
