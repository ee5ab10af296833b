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

    def lines(self, device, ident, event):
        return [
            line
            for line in self.journals[device]
            if line.get("task") == ident and line["event"] == event
        ]

    def drop(self, device, ident, *events):
        for event in events:
            for line in self.lines(device, ident, event):
                self.journals[device].remove(line)

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


class Oracle(unittest.TestCase):
    def setUp(self):
        self.record = Record()

    def assert_violated(self, *rules, arguments=()):
        status, violated, _counts = self.record.judged(*arguments)
        self.assertEqual(sorted(violated), sorted(rules))
        self.assertEqual(status, 1)

    def assert_right(self, *arguments, **expected):
        status, violated, counts = self.record.judged(*arguments)
        self.assertEqual(violated, [])
        self.assertEqual(status, 0)
        for name, count in expected.items():
            self.assertEqual(counts.get(name, 0), count, name)

    def test_a_start_that_is_computed_twice_is_found(self):
        self.record.event("d-1", "computed", task="uid-a")
        self.assert_violated("twice")

    def test_a_true_record_is_right(self):
        self.assert_right(tasks=3, completed=2, failed=1, equal=3, executions=3, crossed=0)

    # ---- lost ----

    def test_a_stored_result_that_is_in_no_status_is_lost(self):
        self.record.status("a").update(phase="running", results=None)
        self.assert_violated("lost")

    def test_a_task_without_result_has_not_ended(self):
        self.record.status("a").update(phase="running", results=None)
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.assert_violated("ended")

    def test_a_result_is_lost_when_its_attempt_was_given_up(self):
        self.record.run("d-1", "uid-a.2", "1")
        self.record.status("a").update(attempt=2)
        self.assert_violated("lost")

    def test_a_result_that_comes_when_the_next_attempt_runs_is_late_and_not_lost(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.start("d-1", "uid-a.2")
        self.record.answer("d-1", "uid-a", "1")
        self.record.answer("d-1", "uid-a.2", "1")
        self.record.status("a").update(attempt=2)
        self.assert_right(late=1, attempts_given_up=1)

    def test_a_result_is_lost_when_its_task_failed_for_want_of_one(self):
        self.record.status("a").update(phase="failed", reason="StartNotConfirmed", error="x")
        self.assert_violated("lost")

    def fail_for_want_of_a_result(self, after):
        """`after` markers between the result of uid-a and the failure."""
        for _ in range(after):
            self.record.marker()
        self.record.status("a").update(
            phase="failed", reason="StartNotConfirmed", finishedAt=self.record.instant()
        )
        self.record.marker()
        self.record.marker()

    def test_a_result_that_was_handled_before_its_task_failed_for_want_of_one_is_lost(self):
        self.fail_for_want_of_a_result(after=2)
        self.assert_violated("lost", arguments=("--may-fail", "StartNotConfirmed"))

    def test_a_result_that_crosses_the_failure_of_its_task_is_explained(self):
        self.fail_for_want_of_a_result(after=1)
        self.assert_right("--may-fail", "StartNotConfirmed", explained_with_result=1)

    def test_a_result_that_died_in_a_killed_broker_explains_the_failure_of_its_task(self):
        self.record.kill("broker")
        self.fail_for_want_of_a_result(after=2)
        self.assert_right("--may-fail", "StartNotConfirmed", died_in_broker=1)

    # ---- doubled ----

    def test_a_result_sent_twice_is_doubled(self):
        again = self.record.lines("d-1", "uid-a", "result")[0]
        self.record.journals["d-1"].append(again)
        self.assert_violated("twice")

    def test_an_attempt_computed_twice_is_doubled(self):
        self.record.run("d-1", "uid-a", "1")
        self.assert_violated("twice")

    def test_an_attempt_on_two_devices_is_doubled(self):
        self.record.run("d-2", "uid-a", "1")
        self.assert_violated("devices", "twice")

    def test_an_attempt_that_runs_twice_at_once_is_doubled(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.run("d-1", "uid-a", "1")
        self.assert_violated("twice")

    # ---- forged ----

    def test_a_result_that_no_device_sent_is_forged(self):
        self.record.status("a").update(results="4711")
        self.assert_violated("forged")

    def test_a_result_of_another_type_is_forged(self):
        self.record.status("a").update(results=1)
        self.assert_violated("forged")

    def test_a_failure_that_no_device_sent_is_forged(self):
        self.record.status("c").update(error="something else")
        self.assert_violated("forged")

    def test_a_completion_without_any_result_is_forged(self):
        self.record.drop("d-1", "uid-a", "start", "computed", "result", "acknowledged")
        self.assert_violated("forged", "sender")

    def test_a_completion_by_another_device_has_the_wrong_sender(self):
        self.record.status("a").update(assignedProplet="proplet-d-2")
        self.assert_violated("sender")

    def test_a_completion_by_another_pod_has_the_wrong_sender(self):
        self.record.status("a").update(assignedClientId="d-2")
        self.assert_violated("sender")

    def test_a_result_of_an_earlier_attempt_does_not_count(self):
        self.record.start("d-1", "uid-a.2")
        self.record.status("a").update(attempt=2)
        self.assert_violated("attempt", "lost")

    def test_a_result_of_what_never_started_is_an_orphan(self):
        self.record.event("d-1", "result", task="uid-z", results="1", error=None)
        self.assert_violated("orphan")

    def test_a_start_of_no_task_is_unknown_unless_tasks_were_deleted(self):
        self.record.start("d-1", "uid-z")
        self.assert_violated("unknown")
        self.assert_right("--deleted")

    def test_an_attempt_of_a_deleted_task_on_two_devices_is_doubled(self):
        self.record.start("d-1", "uid-z")
        self.record.start("d-2", "uid-z")
        self.assert_violated("devices", arguments=("--deleted",))

    # ---- what faults explain ----

    def test_a_result_that_died_in_a_killed_broker_is_counted_apart(self):
        self.record.kill("broker")
        self.record.run("d-1", "uid-a", "1")
        self.assert_right(died_in_broker=1, crossed=0)

    def test_a_kill_of_somebody_else_explains_no_repeat(self):
        self.record.kill("controller")
        self.record.run("d-1", "uid-a", "1")
        self.assert_violated("early", "twice")

    def test_a_kill_before_the_result_explains_no_repeat(self):
        self.record.kill("broker")
        self.record.task("e", "d-1", "5")
        self.record.run("d-1", "uid-e", "5")
        self.assert_violated("twice")

    def test_a_repeat_that_crosses_its_result_is_counted_up_to_a_limit(self):
        self.record.marker()
        self.record.task("e", "d-1", "5")
        self.record.run("d-1", "uid-e", "5")
        self.assert_right("--max-crossings", "1", crossed=1)
        self.assert_violated("twice")

    def test_a_repeat_after_the_marker_that_followed_the_result_does_not_cross_it(self):
        self.record.marker()
        self.record.run("d-1", "uid-a", "1")
        self.assert_violated("twice", arguments=("--max-crossings", "9"))

    def test_a_new_leader_repeats_nothing_before_its_marker(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.kill("controller")
        self.record.pass_on("manager/start", id="uid-a")
        self.record.answer("d-1", "uid-a", "1")
        self.assert_violated("early")

    def test_a_new_leader_repeats_after_its_marker(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.kill("controller")
        self.record.marker()
        self.record.pass_on("manager/start", id="uid-a")
        self.record.answer("d-1", "uid-a", "1")
        self.assert_right()

    def test_a_device_that_died_may_be_started_again(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.event("d-1", "boot")
        self.record.run("d-1", "uid-a", "1")
        self.assert_right(started_again=1)

    def test_a_new_attempt_after_the_device_died_is_right(self):
        self.record.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.record.event("d-1", "boot")
        self.record.run("d-1", "uid-a.2", "1")
        self.record.status("a").update(attempt=2)
        self.assert_right(attempts_given_up=1)

    def retry(self, limit, *errors):
        """Attempts of `a` that fail so, and then one that completes."""
        self.record.drop("d-1", "uid-a", "start", "computed", "result", "acknowledged")
        self.record.wire = [line for line in self.record.wire if '"uid-a"' not in line]
        for number, error in enumerate([*errors, None], 1):
            self.record.run("d-1", "uid-a" if number == 1 else f"uid-a.{number}", "" if error else "1", error)
        self.record.status("a").update(attempt=len(errors) + 1)
        self.record.tasks[0]["spec"]["backoffLimit"] = limit

    def test_an_attempt_that_failed_may_be_tried_again(self):
        self.retry(1, "trap")
        self.assert_right(retried=1, attempts_given_up=1)

    def test_no_more_attempts_than_the_limit_may_fail(self):
        self.retry(1, "trap", "trap")
        self.assert_violated("lost")

    # ---- the rest ----

    def test_other_failures_must_be_allowed_by_name(self):
        self.record.drop("d-1", "uid-a", "start", "computed", "result", "acknowledged")
        self.record.status("a").update(phase="failed", reason="PayloadTooLarge", error="x")
        self.assert_violated("ended")
        self.assert_right("--may-fail", "PayloadTooLarge")

    def test_a_deaf_microcontroller_is_a_violation(self):
        self.record.event("d-1", "deaf", bytes=1024)
        self.assert_violated("deaf")

    def test_daemons_and_suspended_tasks_do_not_end(self):
        self.record.status("a").update(phase="running", results=None)
        self.record.tasks[0]["spec"]["daemon"] = True
        self.assert_right(waiting=1)

    def test_half_a_line_of_a_killed_device_is_left_out(self):
        self.record.journals["d-1"].append("half a line")
        self.assert_right()

    def test_nonsense_on_the_wire_is_left_out(self):
        topic = "m/d/c/c/control/proplet/results"
        nested = '{"task_id":' + "[" * 100000
        self.record.wire += ["", "x", f"1 {topic}", f"1 {topic} {nested}", f"y {topic} 7"]
        self.assert_right()

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
