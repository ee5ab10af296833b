"""Plan and judge of a chaos run: what a seed decides, and each way of being wrong put into a right run."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))

import judge  # noqa: E402
import plan  # noqa: E402
from test_oracle import Record  # noqa: E402

CLIENT = "propeller-controller"


class Plan(unittest.TestCase):
    def test_a_seed_decides_everything_and_another_one_otherwise(self):
        self.assertEqual(plan.plan_faults(5, 600), plan.plan_faults(5, 600))
        self.assertEqual(plan.plan_tasks(5, 600), plan.plan_tasks(5, 600))
        self.assertNotEqual(plan.plan_faults(5, 600), plan.plan_faults(6, 600))
        self.assertNotEqual(plan.plan_tasks(5, 600), plan.plan_tasks(6, 600))

    def test_half_an_hour_is_2000_tasks_and_60_faults_each_kind_twice_at_least(self):
        for seed in range(20):
            kinds = [fault.kind for fault in plan.plan_faults(seed, 1800)]
            self.assertEqual(len(kinds), 60)
            for kind in plan.KINDS:
                self.assertGreaterEqual(kinds.count(kind.name), 2, kind.name)
            self.assertEqual(len(plan.plan_tasks(seed, 1800)), 2000)

    def test_a_minute_has_every_kind_that_belongs_to_every_run(self):
        core = {kind.name for kind in plan.KINDS if kind.is_core}
        for seed in range(20):
            self.assertLessEqual(core, {fault.kind for fault in plan.plan_faults(seed, 60)})

    def test_a_kind_that_is_left_out_is_in_no_bag(self):
        kinds = {fault.kind for fault in plan.plan_faults(5, 1800, without=["missing-rights"])}
        self.assertEqual({kind.name for kind in plan.KINDS} - kinds, {"missing-rights"})

    def test_rights_are_away_for_80_seconds_at_most(self):
        spans = [f.end - f.at for seed in range(20) for f in plan.plan_faults(seed, 1800) if f.kind == "missing-rights"]
        self.assertLessEqual(max(spans), 80.1)
        self.assertGreaterEqual(max(spans), 60)

    def test_faults_of_the_same_part_do_not_overlap(self):
        parts = {kind.name: kind.part for kind in plan.KINDS}
        for seed in range(50):
            ends = {}
            for fault in plan.plan_faults(seed, 300, 60):
                self.assertGreaterEqual(fault.at, ends.get(parts[fault.kind], 0))
                ends[parts[fault.kind]] = fault.end

    def test_every_fault_begins_and_then_ends(self):
        lines = plan.fault_lines(plan.plan_faults(3, 1800))
        self.assertEqual([float(line.split()[0]) for line in lines], sorted(float(l.split()[0]) for l in lines))
        steps = {}
        for line in lines:
            _, number, step, *what = line.split()
            steps.setdefault(number, []).append((step, what))
        for (begin, what), (end, same) in steps.values():
            self.assertEqual((begin, end, what), ("begin", "end", same))

    def test_long_tasks_have_times_that_only_a_stepped_clock_passes(self):
        long = [task for task in plan.plan_tasks(3, 1800) if task.ttl]
        self.assertGreater(len(long), 100)
        for task in long:
            self.assertEqual(task.outcome, "completed")
            for time in (task.deadline, task.ttl):
                self.assertTrue(1800 * 2 < time < plan.DAY_S)

    def test_who_depends_on_others_names_earlier_ones_that_stay(self):
        tasks = plan.plan_tasks(3, 1800)
        followers = [task for task in tasks if task.after]
        self.assertGreater(len(followers), 100)
        stay = {task.name: task.at for task in tasks if task.delete_at is None}
        for task in followers:
            for name in task.after:
                self.assertLessEqual(stay[name], task.at)


class Run(Record):
    """A right run of two replicas: `a` led, was killed, and `b` took over."""

    def __init__(self):
        super().__init__()
        self.log, self.links, self.replicas, self.stream, self.timeline, self.met = [], [], [], [], [], []
        self.closings = []
        self.plans, self.fault_plan, self.hostile = [], ["3.0 1 begin kill-leader", "4.0 1 end kill-leader"], []
        for step in ("begin", "end"):
            line = {"step": step, "number": 1, "kind": "kill-leader", "target": "a", "led": True}
            self.timeline.append(line)
        for event in ("sent", "acknowledged"):
            self.hostile.append({"event": event, "kind": "results", "reason": "late"})
        self.marker()
        self.port = 40000
        for name, value, outcome in (("a", "1", "completed"), ("b", "2", "completed"), ("c", "3", "failed-DeviceError")):
            self.planned(name, value, outcome)
        self.start_replica("a")
        self.start_replica("b")
        self.connect("a")
        self.speak()
        self.pass_result(5, acknowledged=True)
        self.connect("b")
        self.speak()

    def fault(self, number, kind, **fields):
        for step in ("begin", "end"):
            self.fault_plan.append(f"9.0 {number} {step} {kind}")
            self.timeline.append({"step": step, "number": number, "kind": kind, **fields})

    def keep(self, topic, flag="r1", size=3):
        topic = f"m/d/c/c/control/proplet/{topic}"
        text = f"Sending PUBLISH to {CLIENT} (d0, q1, {flag}, m3, '{topic}', ... ({size} bytes))"
        self.log.append(f"9: {text}")

    def planned(self, name, value, outcome, after=()):
        self.plans.append({"name": name, "value": value, "outcome": outcome, "after": list(after)})

    def start_replica(self, letter):
        self.replicas.append({"time": self.tick(), "event": "started", "replica": letter})

    def connect(self, letter, ident=None, port=None):
        idents = [ident] if ident else [CLIENT, CLIENT + "-results"]
        for ident in idents:
            self.port = port or self.port + 1
            at = self.tick()
            line = {"time": at, "accepted": at, "event": "opened", "link": f"{letter}-broker"}
            self.links.append({**line, "port": self.port})
            text = f"New client connected from 127.0.0.1:{self.port} as {ident} (p2, c1, k30, u'{CLIENT}')."
            self.log.append(f"{int(at)}: {text}")

    def speak(self, *kinds):
        for kind in kinds or ("PUBLISH", "PUBACK"):
            ident = CLIENT + ("-results" if kind == "PUBACK" else "")
            self.log.append(f"{int(self.tick())}: Received {kind} from {ident} (d0, q1, r0, m7, 'm/d', ... (3 bytes))")

    def broker_starts(self):
        self.log.append(f"{int(self.tick())}: mosquitto version 2.0.11 starting")

    def pass_result(self, number, acknowledged):
        ident = CLIENT + "-results"
        self.log.append(f"9: Sending PUBLISH to {ident} (d0, q1, r0, m{number}, 'm/d', ... (3 bytes))")
        if acknowledged:
            self.log.append(f"9: Received PUBACK from {ident} (Mid: {number}, RC:0)")

    def judged(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            self.write_run(folder)
            output, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                status = judge.main([folder, "--client", CLIENT, *arguments])
        rules = [line.split(": ")[1] for line in output.getvalue().splitlines() if line.startswith("violated")]
        return status, rules, output.getvalue() + errors.getvalue()

    def write_run(self, folder):
        def lines(name, values):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.writelines((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values)

        lines("tasks.plan", self.plans)
        lines("faults.plan", self.fault_plan)
        lines("hostile.jsonl", self.hostile)
        lines("tasks.json", [{"items": self.tasks}])
        lines("proplets.json", [{"items": self.proplets}])
        lines("stream.jsonl", self.stream)
        lines("timeline.jsonl", self.timeline)
        lines("replicas.jsonl", self.replicas)
        lines("faults.jsonl", self.faults)
        lines("links.jsonl", self.links)
        lines("met.jsonl", self.met)
        lines("closings.jsonl", self.closings)
        lines("broker.log", self.log)
        lines("wire.log", self.wire)
        for device, journal in self.journals.items():
            lines(f"{device}.journal", journal)


class Judge(unittest.TestCase):
    def setUp(self):
        self.run_ = Run()

    def assert_violated(self, *rules):
        status, violated, output = self.run_.judged()
        self.assertEqual((sorted(violated), status), (sorted(rules), 1), output)

    def assert_right(self, text="nothing violated"):
        status, violated, output = self.run_.judged()
        self.assertEqual((violated, status), ([], 0), output)
        self.assertIn(text, output)

    # ---- who leads ----

    def test_a_right_run_is_right(self):
        self.assert_right("leaders: 2, connections of former ones: 0")

    def test_a_former_holder_that_publishes_is_found(self):
        self.run_.connect("a", CLIENT)
        self.run_.speak("PUBLISH")
        self.assert_violated("former")

    def test_a_former_holder_that_acknowledges_results_is_found(self):
        self.run_.connect("a", CLIENT + "-results")
        self.run_.speak("PUBACK")
        self.assert_violated("former")

    def test_a_connection_of_a_former_holder_that_says_nothing_is_counted(self):
        self.run_.connect("a", CLIENT)
        self.run_.connect("b", CLIENT)
        self.run_.speak("PUBLISH")
        self.assert_right("leaders: 2, connections of former ones: 1")

    def test_a_replica_that_was_started_again_is_another_process(self):
        self.run_.start_replica("a")
        self.run_.connect("a")
        self.run_.speak()
        self.assert_right("leaders: 3, connections of former ones: 0")

    def test_a_port_belongs_to_whom_it_was_given_last(self):
        port = self.run_.links[0]["port"]
        self.run_.clock += 1000
        self.run_.connect("b", CLIENT, port=port)
        self.run_.speak("PUBLISH")
        self.assert_right()

    def test_the_clock_of_the_broker_may_be_behind(self):
        self.run_.log = [line.replace(line.split(":")[0], str(int(line.split(":")[0]) - 2), 1)
                         for line in self.run_.log]
        self.assert_right("leaders: 2")

    def test_what_others_publish_is_nobodys_business(self):
        self.run_.connect("a", CLIENT)
        self.run_.log.append("99: Received PUBLISH from device-1 (d0, q1, r0, m7, 'm/d', ... (3 bytes))")
        self.assert_right()

    def test_a_connection_that_came_by_no_link_cannot_be_judged(self):
        self.run_.log.append(f"99: New client connected from 127.0.0.1:1 as {CLIENT} (p2, c1, k30, u'x').")
        status, _, output = self.run_.judged()
        self.assertEqual(status, 2)
        self.assertIn("port 1", output)

    def plan_many(self):
        """So many Tasks that chance decides nothing."""
        for number in range(judge.MANY_TASKS):
            self.run_.planned(f"more-{number}", "4", "completed")
            self.run_.stream.append({"event": "deleted", "name": f"more-{number}"})

    # ---- checkpoints ----

    def say(self, event, ident="uid-a", **values):
        self.run_.clock += 1
        self.run_.journals["d-1"].append({"time": self.run_.clock, "device": "d-1", "event": event, "task": ident, **values})

    def save_twice(self):
        self.say("begun", told=None)
        self.say("checkpoint", step=1, status=200)
        self.say("checkpoint", step=2, status=200)
        self.run_.status("a")["lastCheckpoint"] = {"step": 2}

    def test_an_attempt_may_go_on_where_the_last_one_was(self):
        self.save_twice()
        self.say("checkpoint", step=3, status=409)
        self.say("begun", "uid-a.2", told=2)
        self.say("resumed", "uid-a.2", told=2, step=2, status=200, right=True)
        self.assert_right("checkpoints that were acknowledged: 2, attempts that went on from one: 1")

    def test_a_status_behind_an_acknowledged_checkpoint_is_found(self):
        self.save_twice()
        self.run_.status("a")["lastCheckpoint"] = {"step": 1}
        self.assert_violated("checkpoint")

    def test_an_attempt_that_is_told_less_than_was_acknowledged_is_found(self):
        for told in (None, 1):
            self.run_ = Run()
            self.save_twice()
            self.say("begun", "uid-a.2", told=told)
            self.assert_violated("checkpoint")

    def test_a_repeated_start_of_the_same_attempt_may_be_older(self):
        self.save_twice()
        self.say("begun", told=None)
        self.assert_right()

    def test_an_attempt_that_gets_another_state_is_found(self):
        for step, right in ((1, True), (2, False)):
            self.run_ = Run()
            self.save_twice()
            self.say("begun", "uid-a.2", told=2)
            self.say("resumed", "uid-a.2", told=2, step=step, status=200, right=right)
            self.assert_violated("checkpoint")

    def test_a_run_in_which_none_was_acknowledged_shows_nothing(self):
        self.run_.plans[0]["saves"] = True
        self.assert_violated("blind")
        self.plan_many()
        self.assert_violated("blind", "blind")

    # ---- Proplets that close ----

    def cut(self):
        """Its first attempt is stopped, and the second one has the result."""
        self.run_.planned("d", "4", "completed")
        self.run_.task("d", "d-1", "4")
        self.run_.drop("d-1", "uid-d", "computed", "result", "acknowledged")
        self.run_.wire.pop()
        self.say("stopped", "uid-d")
        self.run_.status("d").update(attempt=2)
        self.run_.run("d-1", "uid-d.2", "4")

    def close(self, step, at):
        self.run_.closings.append({"time": at, "step": step, "devices": ["d-1"]})

    def test_an_attempt_that_is_stopped_by_a_close_may_begin_again(self):
        self.close("close", 0)
        self.cut()
        self.assert_right("attempts that a close ended          1")

    def test_an_attempt_that_is_stopped_without_a_close_is_found(self):
        self.cut()
        self.assert_violated("cut")
        self.close("close", self.run_.clock + 1)
        self.assert_violated("cut")
        self.run_.status("d")["unconfirmedAttempts"] = 1
        self.assert_right()

    def test_a_close_that_was_over_long_before_explains_nothing(self):
        self.close("close", 0)
        self.close("open", 1)
        self.run_.clock += 1000
        self.cut()
        self.assert_violated("cut")

    def test_a_cut_that_is_counted_as_a_failure_is_found(self):
        self.close("close", 0)
        self.cut()
        self.run_.status("d")["failures"] = 1
        self.assert_violated("cut")

    def test_closes_that_stopped_no_task_prove_nothing(self):
        self.close("close", 0)
        self.assert_right()
        self.plan_many()
        self.assert_violated("blind")

    # ---- what the oracle finds ----

    def test_a_lost_result_is_found(self):
        self.run_.status("a").update(phase="running", results=None)
        self.assert_violated("lost", "ended")

    def test_a_start_on_two_devices_is_found_also_of_a_deleted_task(self):
        self.run_.start("d-1", "uid-z")
        self.run_.start("d-2", "uid-z")
        self.assert_violated("devices")

    def test_a_repeat_before_the_marker_of_the_next_leader_is_found(self):
        self.run_.start_replica("a")
        self.run_.drop("d-1", "uid-a", "computed", "result", "acknowledged")
        self.run_.connect("a")
        self.run_.pass_on("manager/start", id="uid-a")
        self.run_.answer("d-1", "uid-a", "1")
        self.assert_violated("early")

    def test_no_more_dies_in_a_killed_broker_than_was_in_flight(self):
        self.run_.broker_starts()
        self.run_.pass_result(7, acknowledged=False)
        self.run_.kill("broker")
        self.run_.broker_starts()
        self.run_.marker()
        self.run_.run("d-1", "uid-a", "1")
        self.assert_right("results that died in a killed broker 1")
        self.run_.log[-2:-1] = []
        self.run_.pass_result(7, acknowledged=True)
        self.run_.broker_starts()
        self.assert_violated("lost")

    def test_what_the_hostile_one_says_is_no_result_of_a_device(self):
        self.run_.pass_on("proplet/results", task_id="uid-a", results="forged")
        self.assert_right()

    def test_repeats_that_cross_their_result_are_few(self):
        for name, value in (("e", "5"), ("f", "6")):
            self.run_.planned(name, value, "completed")
            self.run_.task(name, "d-1", value)
        self.run_.run("d-1", "uid-e", "5")
        self.assert_right("repeats that crossed their result    1")
        self.run_.run("d-1", "uid-f", "6")
        self.assert_violated("twice")

    # ---- what was planned ----

    def test_an_answer_of_another_task_is_forged(self):
        self.run_.plans[0]["value"] = "4711"
        self.assert_violated("forged")

    def test_tasks_of_the_registry_have_one_module(self):
        for plan_, task, digest in zip(self.run_.plans, self.run_.tasks, ("sha256:1", "sha256:1")):
            plan_["by_reference"] = True
            task["status"]["module"] = {"digest": digest}
        self.run_.plans[2]["by_reference"] = False
        self.assert_right()
        self.run_.tasks[1]["status"]["module"] = {"digest": "sha256:2"}
        self.assert_violated("module")
        del self.run_.tasks[1]["status"]["module"]
        self.assert_violated("module")

    def test_a_task_that_nobody_deleted_must_be_there(self):
        self.run_.planned("d", "4", "completed")
        self.assert_violated("gone")
        self.run_.stream.append({"event": "deleted", "name": "d"})
        self.assert_right()

    def test_a_deleted_task_must_be_gone(self):
        self.run_.stream.append({"event": "deleted", "name": "a"})
        self.assert_violated("deleted")

    def test_a_failure_must_be_the_planned_one(self):
        self.run_.plans[2]["outcome"] = "failed-DeadlineExceeded"
        self.assert_violated("ended")

    def test_a_task_behind_one_that_failed_is_skipped_and_no_other(self):
        self.run_.planned("d", "4", "follows", after=["a", "c"])
        metadata = {"name": "d", "namespace": "n", "uid": "uid-d"}
        self.run_.tasks.append({"metadata": metadata, "spec": {}, "status": {"phase": "skipped"}})
        self.assert_right()
        self.run_.plans[-1]["after"] = ["a", "b"]
        self.assert_violated("ended")

    def test_failures_that_faults_explain_are_few(self):
        for name in ("d", "e"):
            self.run_.planned(name, "4", "completed")
            metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}"}
            status = {"phase": "failed", "reason": "StartNotConfirmed"}
            self.run_.tasks.append({"metadata": metadata, "spec": {}, "status": status})
        self.assert_violated("ended")

    # ---- what nobody saw ----

    def test_a_log_of_the_broker_that_says_something_else_is_not_taken_for_silence(self):
        self.run_.log = [line.replace("Received ", "Got ") for line in self.run_.log]
        self.assert_violated("blind")
        self.run_.log = [line.replace("connected", "came").replace("Sending", "To") for line in self.run_.log]
        self.assert_violated("blind", "blind", "blind")

    def test_starts_results_and_markers_must_have_been_recorded(self):
        self.run_.wire = []
        self.assert_violated("blind", "blind", "blind")

    def test_a_hostile_one_whom_the_broker_never_heard_proves_nothing(self):
        self.run_.hostile.pop()
        self.assert_violated("blind")

    def test_a_fault_that_was_planned_and_not_done_is_found(self):
        self.run_.timeline.pop()
        self.assert_violated("blind")

    def test_errors_that_no_request_met_are_no_fault(self):
        self.run_.fault(2, "server-errors")
        met = {"event": "met", "link": "a-api", "code": 503, "requests": 0}
        self.run_.links.append(met)
        self.assert_violated("blind")
        met["requests"] = 3
        self.assert_right("lost their answer: 503: 3")

    def test_a_fault_of_the_leader_that_met_none_is_found(self):
        self.run_.fault(2, "kill-leader", target="b", led=True)
        self.assert_right("2, 2 of a leader")
        self.run_.timeline[2]["led"] = False
        self.assert_violated("blind")

    def test_a_fault_that_met_nothing_is_found(self):
        for number, kind in enumerate(("missing-rights", "delete-federatedjob", "step-leader-clock"), 2):
            self.run_.fault(number, kind, led=True)
            self.run_.met.append({"number": number, "count": 0})
        self.assert_violated("blind", "blind", "blind")
        for number in range(2, 5):
            self.run_.met.append({"number": number, "count": 4})
        self.assert_right("missing-rights: 4 times a request")

    def test_retained_messages_that_no_controller_was_sent_are_no_fault(self):
        self.run_.fault(2, "retained-messages")
        for topic in judge.RETAINED_KINDS:
            self.run_.keep(topic, "r0")
        self.assert_violated("blind", "blind", "blind")
        for topic in judge.RETAINED_KINDS:
            self.run_.keep(topic)
        self.assert_right("sent to controllers: 3")

    def test_huge_messages_prove_nothing_if_none_was_sent_or_no_memory_measured(self):
        self.run_.fault(2, "huge-messages")
        self.assert_violated("blind", "blind")
        self.run_.keep("results", size=9799887)
        self.assert_violated("blind")
        self.run_.replicas.append({"time": 99, "event": "memory", "replica": "a", "kib": 50000})
        self.assert_right("most memory of a replica: 50000 KiB")

    # ---- retained messages, memory, clocks ----

    def test_an_attempt_that_ended_for_a_restart_that_never_was_is_found(self):
        self.run_.status("a")["deviceRestarts"] = 1
        self.assert_violated("retained")

    def test_an_identity_without_a_device_must_not_have_been_seen(self):
        self.run_.proplets.append(self.run_._proplet("nobody"))
        self.assert_right()
        self.run_.proplets[-1]["status"] = {"lastSeen": "2026-01-01T00:00:00Z"}
        self.assert_violated("retained")

    def test_a_replica_that_needs_too_much_memory_is_found(self):
        line = {"time": 99, "event": "memory", "replica": "a", "kib": judge.MOST_MEMORY_KIB + 1}
        self.run_.replicas.append(line)
        self.assert_violated("memory")

    def test_a_time_that_the_stepped_clock_wrote_is_a_day_off_and_no_more(self):
        tasks = [{"status": {"finishedAt": f"1970-01-0{day}T00:01:05Z"}} for day in (1, 2)] + [{}]
        judge.without_steps(tasks, 60)
        self.assertEqual([t["status"]["finishedAt"] for t in tasks[:2]], ["1970-01-01T00:01:05+00:00"] * 2)
        tasks = [{"status": {"finishedAt": "1969-12-31T23:59:00+00:00"}}]
        judge.without_steps(tasks, 86000)
        self.assertEqual(tasks[0]["status"]["finishedAt"], "1970-01-01T23:59:00+00:00")

    def test_a_failure_that_faults_explain_and_its_result_are_told(self):
        self.run_.status("a").update(phase="failed", reason="StartNotConfirmed", results=None)
        self.assert_right("Tasks failed, though a result came   1")

    # ---- the processes ----

    def test_a_replica_that_crashes_is_found_and_one_that_lost_its_lease_is_not(self):
        self.run_.replicas.append({"time": 1, "event": "ended", "replica": "a", "status": 1})
        self.assert_right()
        self.run_.replicas.append({"time": 1, "event": "ended", "replica": "a", "status": 139})
        self.run_.replicas.append({"time": 1, "event": "stopped", "replica": "b", "status": 134})
        self.assert_violated("crash", "crash")

    def test_a_missing_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(judge.main([folder, "--client", CLIENT]), 2)
        self.assertIn("tasks.plan", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
