"""The oracle's own test: a record that is right, then each way of being wrong put into it."""

import contextlib
import inspect
import io
import json
import os
import re
import tempfile
import unittest
from datetime import datetime, timezone

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICES = ("d-1", "d-2")


class Record:
    """What three Tasks on two devices leave behind. `times` are the lines' order."""

    def __init__(self):
        self.clock = 0
        self.journals = {device: [] for device in DEVICES}
        self.tasks, self.faults, self.wire = [], [], []
        self.proplets = [self._proplet(device) for device in DEVICES]
        for device in DEVICES:
            self.event(device, "boot")
        self.task("a", "d-1", "1")
        self.task("b", "d-2", "2")
        self.task("c", "d-2", "3", error="Failed to call function 'main': trap")

    @staticmethod
    def _proplet(device):
        spec = {"connectionConfig": {"clientId": device}}
        return {"metadata": {"name": f"proplet-{device}", "namespace": "n"}, "spec": spec}

    def tick(self):
        self.clock += 1
        return float(self.clock)

    def instant(self):
        return datetime.fromtimestamp(self.tick(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def event(self, device, event, **fields):
        line = {"time": self.tick(), "device": device, "event": event, **fields}
        self.journals[device].append(line)

    def pass_on(self, topic, **payload):
        self.wire.append(f"{self.tick()} m/d/c/c/control/{topic} {json.dumps(payload)}")

    def start(self, device, ident):
        self.pass_on("manager/start", id=ident)
        self.event(device, "start", task=ident)

    def answer(self, device, ident, results, error=None):
        self.event(device, "computed", task=ident)
        self.event(device, "result", task=ident, results=results, error=error)
        self.pass_on("proplet/results", task_id=ident)
        self.event(device, "acknowledged", task=ident)

    def run(self, device, ident, results, error=None):
        self.start(device, ident)
        self.answer(device, ident, results, error)

    def marker(self):
        self.pass_on("controller/marker", nonce="x")

    def kill(self, what):
        begin = self.tick()
        self.faults.append({"what": what, "begin": begin, "end": self.tick()})

    def task(self, name, device, results, error=None):
        uid = f"uid-{name}"
        self.run(device, uid, "" if error else results, error)
        status = {"phase": "completed", "attempt": 1, "assignedProplet": f"proplet-{device}"}
        if error:
            status.update(phase="failed", reason="DeviceError", error=error)
        else:
            status.update(results=results)
        metadata = {"name": name, "namespace": "n", "uid": uid}
        self.tasks.append({"metadata": metadata, "spec": {}, "status": status})

    def drop(self, device, ident, *events):
        self.journals[device] = [line for line in self.journals[device] if line.get("task") != ident or line["event"] not in events]

    def status(self, name):
        return next(task for task in self.tasks if task["metadata"]["name"] == name)["status"]

    def judged(self, *arguments):
        """(exit status, rules violated, counts), by the program as it is called from a shell."""
        with tempfile.TemporaryDirectory() as folder:
            files = self._write(folder)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = oracle.main([*files, *arguments])
        *violations, counts = output.getvalue().splitlines()
        rules = [line.split(": ")[1] for line in violations]
        return status, rules, json.loads(counts.removeprefix("oracle: "))

    def _write(self, folder):
        arguments = []

        def file(option, name, text):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            arguments.extend((option, path))

        file("--tasks", "tasks", json.dumps({"items": self.tasks}))
        file("--proplets", "proplets", json.dumps({"items": self.proplets}))
        file("--faults", "faults", "".join(json.dumps(fault) + "\n" for fault in self.faults))
        file("--wire", "wire", "".join(f"{line}\n" for line in self.wire))
        for device, lines in self.journals.items():
            file("--journal", device, "".join(json.dumps(line) + "\n" for line in lines))
        return arguments

    # ---- what the cases below do ----

    def unanswered(self):
        self.drop("d-1", "uid-a", "computed", "result", "acknowledged")

    def unstarted(self):
        self.drop("d-1", "uid-a", "start", "computed", "result", "acknowledged")

    def unfinished(self):
        self.status("a").update(phase="running", results=None)

    def again(self, ident="uid-a", device="d-1"):
        self.run(device, ident, "1")

    def repeated(self):
        self.pass_on("manager/start", id="uid-a")
        self.answer("d-1", "uid-a", "1")

    def wants_a_result(self, markers, **status):
        """It failed for want of one, so many markers after the result of uid-a, and more came."""
        for _ in range(markers):
            self.marker()
        self.status("a").update(phase="failed", reason="StartNotConfirmed", error="x", finishedAt=self.instant(), **status)
        self.marker()
        self.marker()

    def retry(self, limit, *errors):
        """Attempts of `a` that fail so, and then one that completes."""
        self.unstarted()
        self.wire = [line for line in self.wire if '"uid-a"' not in line]
        for number, error in enumerate([*errors, None], 1):
            self.run("d-1", "uid-a" if number == 1 else f"uid-a.{number}", "" if error else "1", error)
        self.status("a").update(attempt=len(errors) + 1)
        self.tasks[0]["spec"]["backoffLimit"] = limit


def status(**fields):
    return lambda record: record.status("a").update(fields)


def call(name, *args, **fields):
    return lambda record: getattr(record, name)(*args, **fields)


MAY_FAIL = ("--may-fail", "StartNotConfirmed", "--may-fail", "PayloadTooLarge")
NESTED = 'control/proplet/results {"task_id":' + "[" * 100000
# What happens besides; the rules that it violates, or what is counted; arguments.
CASES = {
    "a true record": ([], {"tasks": 3, "completed": 2, "failed": 1, "equal": 3, "executions": 3, "crossed": 0}),
    # lost
    "a stored result is in no status": ([call("unfinished")], "lost"),
    "a task without result": ([call("unfinished"), call("unanswered")], "ended"),
    "a result, and its attempt is given up": ([call("again", "uid-a.2"), status(attempt=2)], "lost"),
    "a result while the next attempt runs": (
        [call("unanswered"), call("start", "d-1", "uid-a.2"), call("answer", "d-1", "uid-a", "1"), call("answer", "d-1", "uid-a.2", "1"),
         status(attempt=2)], {"late": 1, "attempts_given_up": 1}),
    "a result, and a failure for want of one": ([status(phase="failed", reason="StartNotConfirmed", error="x")], "lost"),
    "a result was handled before that": ([call("wants_a_result", 2)], "lost", *MAY_FAIL),
    "a result crosses that": ([call("wants_a_result", 1)], {"explained_with_result": 1}, *MAY_FAIL),
    "a result died in a broker before that": ([call("kill", "broker"), call("wants_a_result", 2)], {"died_in_broker": 1}, *MAY_FAIL),
    # doubled
    "a result is sent twice": ([call("event", "d-1", "result", task="uid-a", results="1", error=None)], "twice"),
    "a start is computed twice": ([call("event", "d-1", "computed", task="uid-a")], "twice"),
    "an attempt is computed twice": ([call("again")], "twice"),
    "an attempt on two devices": ([call("again", "uid-a", "d-2")], "devices twice"),
    "an attempt twice at once": ([call("unanswered"), call("again")], "twice"),
    # forged
    "a result that no device sent": ([status(results="4711")], "forged"),
    "a result of another type": ([status(results=1)], "forged"),
    "a failure that no device sent": ([lambda record: record.status("c").update(error="something else")], "forged"),
    "a completion without a result": ([call("unstarted")], "forged sender"),
    "a completion by another device": ([status(assignedProplet="proplet-d-2")], "sender"),
    "a completion by another pod": ([status(assignedClientId="d-2")], "sender"),
    "a result of an earlier attempt": ([call("start", "d-1", "uid-a.2"), status(attempt=2)], "attempt lost"),
    "a result of what never started": ([call("event", "d-1", "result", task="uid-z", results="1", error=None)], "orphan"),
    "a start of no task": ([call("start", "d-1", "uid-z")], "unknown"),
    "a start of a deleted task": ([call("start", "d-1", "uid-z")], {}, "--deleted"),
    "a deleted task on two devices": ([call("start", "d-1", "uid-z"), call("start", "d-2", "uid-z")], "devices", "--deleted"),
    # what faults explain
    "a result died in a broker": ([call("kill", "broker"), call("again")], {"died_in_broker": 1, "crossed": 0}),
    "a kill of another process": ([call("kill", "controller"), call("again")], "early twice"),
    "a kill before the result": ([call("kill", "broker"), call("task", "e", "d-1", "5"), call("run", "d-1", "uid-e", "5")], "twice"),
    "a repeat crosses its result": (
        [call("marker"), call("task", "e", "d-1", "5"), call("run", "d-1", "uid-e", "5")], {"crossed": 1}, "--max-crossings", "1"),
    "a repeat after the marker": ([call("marker"), call("again")], "twice", "--max-crossings", "9"),
    "a new leader before its marker": ([call("unanswered"), call("kill", "controller"), call("repeated")], "early"),
    "a new leader after its marker": ([call("unanswered"), call("kill", "controller"), call("marker"), call("repeated")], {}),
    "a device died": ([call("unanswered"), call("event", "d-1", "boot"), call("again")], {"started_again": 1}),
    "a new attempt after that": (
        [call("unanswered"), call("event", "d-1", "boot"), call("again", "uid-a.2"), status(attempt=2)], {"attempts_given_up": 1}),
    "an attempt may fail": ([call("retry", 1, "trap")], {"retried": 1, "attempts_given_up": 1}),
    "no more than the limit": ([call("retry", 1, "trap", "trap")], "lost"),
    # the rest
    "a failure that is not allowed": ([call("unstarted"), status(phase="failed", reason="PayloadTooLarge", error="x")], "ended"),
    "a failure that is allowed": ([call("unstarted"), status(phase="failed", reason="PayloadTooLarge", error="x")], {}, *MAY_FAIL),
    "a deaf microcontroller": ([call("event", "d-1", "deaf", bytes=1024)], "deaf"),
    "a daemon": ([call("unfinished"), lambda record: record.tasks[0]["spec"].update(daemon=True)], {"waiting": 1}),
    "half a line": ([lambda record: record.journals["d-1"].append("half a line")], {}),
    "nonsense on the wire": ([lambda record: record.wire.extend(["", "x", "1 m/d/c/c/control/proplet/results", "1 m/d/c/c/" + NESTED])], {}),
}


class Oracle(unittest.TestCase):
    def test_each_way_of_being_wrong_is_found_and_what_is_explained_is_not(self):
        for name, (steps, expected, *arguments) in CASES.items():
            with self.subTest(name):
                record = Record()
                for step in steps:
                    step(record)
                code, rules, counts = record.judged(*arguments)
                right = isinstance(expected, dict)
                self.assertEqual(sorted(rules), [] if right else expected.split())
                self.assertEqual(code, 0 if right else 1)
                for count, number in expected.items() if right else ():
                    self.assertEqual(counts.get(count, 0), number, count)

    def test_a_file_that_is_no_list_of_tasks_is_refused_by_name(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{}")
            file.flush()
            output = io.StringIO()
            with contextlib.redirect_stderr(output):
                status = oracle.main(["--tasks", file.name, "--journal", os.devnull])
        self.assertEqual(status, 2)
        self.assertIn(file.name, output.getvalue())


class Schema(unittest.TestCase):
    def test_every_field_of_a_status_that_is_read_is_one_of_tasks(self):
        with open(os.path.join(HERE, "..", "..", "crds", "tasks.yaml"), encoding="utf-8") as file:
            properties = file.read()
        names = re.findall(r'status\.get\("(\w+)"', inspect.getsource(oracle.Subject))
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertRegex(properties, rf"(?m)^ +{name}:", name)


if __name__ == "__main__":
    unittest.main()
