#!/usr/bin/env python3
"""What became of a run of chaos: the oracle's rules (../oracle), the plan, and who spoke as leader.

    judge.py FOLDER --client ID

reads what the run left in FOLDER. Prints a line for each violation, then what the run was like; ends
with 1 if anything is violated, with 2 if a file is missing or makes no sense. README.md has the rules.
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from checkpoints import Checkpoints  # noqa: E402
from closings import Closings  # noqa: E402
from inflight import InFlight  # noqa: E402
from leaders import Leaders, LeadersError  # noqa: E402
from oracle import Judgement  # noqa: E402
from records import Fault, Journal, RecordError, lines_of, read_faults, read_list, wire_line  # noqa: E402

# A process that lost its lease ends with 1, one that was asked to with 0.
FINE_STATUSES = (0, 1)
# Reasons of failures that faults explain, each with the most of a hundred Tasks that may end so.
EXPLAINED = {"StartNotConfirmed": 1}
# The window of a repeat that crosses its own result is a round trip; of a hundred Tasks.
CROSSINGS = 2
LEADER_KINDS = (
    "kill-leader",
    "pause-leader",
    "kill-apiserver-then-leader",
    "cut-controller-broker",
    "cut-controller-apiserver",
    "step-leader-clock",
)
HTTP_KINDS = ("too-many-requests", "server-errors", "lost-answers")
# Kinds whose faults say what they met, and what that is.
MET_KINDS = {
    "missing-rights": "request that was refused",
    "delete-federatedjob": "Task that ran when its job was deleted",
    "step-leader-clock": "step that a controller noticed",
    "close-proplets": "Proplet that was closed",
    "kill-switch": "Proplet that was closed",
    "reclaim": "Proplet that was closed",
}
RETAINED_KINDS = ("create", "alive", "results")
# The largest result of a device here has a few hundred bytes.
HUGE_BYTES = 1 << 20
# Half of what config/controller/deployment.yaml has as its limit.
MOST_MEMORY_KIB = 192 << 10
DAY_S = 24 * 60 * 60
# In a run with fewer Tasks than these, chance may leave none where a Proplet closes, and none with a checkpoint.
MANY_TASKS = 200


def without_steps(tasks, begin):
    """Corrects the finishedAt of Tasks that ended while the leader's clock was a day off."""
    for task in tasks:
        status = task.get("status", {})
        if "finishedAt" in status:
            finished = datetime.fromisoformat(status["finishedAt"])
            days = round((finished.timestamp() - begin) / DAY_S)
            status["finishedAt"] = (finished - timedelta(days=days)).astimezone(timezone.utc).isoformat()
    return tasks


def share(count, percent):
    return max(1, count * percent // 100)


class Run:
    """The files of one run."""

    def __init__(self, folder, client):
        self.folder = folder
        self.plan = [task for task in lines_of(self._path("tasks.plan"))]
        self.saves = any(task.get("saves") for task in self.plan)
        self.proplets = read_list(self._path("proplets.json"))
        with open(self._path("faults.plan"), encoding="utf-8") as plan:
            self.faults_planned = {int(line.split()[1]) for line in plan}
        self.stream = list(lines_of(self._path("stream.jsonl")))
        self.timeline = list(lines_of(self._path("timeline.jsonl")))
        self.replicas = list(lines_of(self._path("replicas.jsonl")))
        begin = min((line["time"] for line in self.replicas), default=0)
        self.tasks = without_steps(read_list(self._path("tasks.json")), begin)
        self.met_by_number = Counter()  # number of a fault -> how much it met
        if self._has("met.jsonl"):
            for line in lines_of(self._path("met.jsonl")):
                self.met_by_number[line["number"]] += line["count"]
        names = sorted(name for name in os.listdir(folder) if name.endswith(".journal"))
        self.journal = Journal([self._path(name) for name in names])
        self.checkpoints = Checkpoints(line for name in names for line in lines_of(self._path(name)))
        self.faults = read_faults(self._path("faults.jsonl")) if self._has("faults.jsonl") else []
        links = list(lines_of(self._path("links.jsonl")))
        self.met = Counter()  # requests that met a fault, by its code; None: the answer was lost
        for line in links:
            if line["event"] == "met":
                self.met[line["code"]] += line["requests"]
        with open(self._path("broker.log"), encoding="utf-8", errors="replace") as log:
            lines = log.readlines()
        self.leaders = Leaders(lines, links, self.replicas, client)
        self.in_flight = InFlight(lines, client)
        retained = re.compile(rf"Sending PUBLISH to {re.escape(client)}\S* \(d\d, q\d, r1, .*/proplet/(\w+)'")
        self.retained = Counter(match[1] for match in map(retained.search, lines) if match)
        huge = re.compile(rf"Sending PUBLISH to {re.escape(client)}\S* .*\((\d+) bytes\)")
        sizes = (int(match[1]) for match in map(huge.search, lines) if match)
        self.huge = sum(size >= HUGE_BYTES for size in sizes)
        with open(self._path("wire.log"), encoding="utf-8", errors="replace") as wire:
            # What the hostile one says is no device's result.
            self.wire = [m for m in map(wire_line, (w for w in wire if '"forged"' not in w)) if m]
        self.closings = Closings(lines_of(self._path("closings.jsonl")) if self._has("closings.jsonl") else ())
        hostile = lines_of(self._path("hostile.jsonl"))
        self.forged = sum(h["event"] == "acknowledged" and h.get("reason") == "late" for h in hostile)

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _has(self, name):
        return os.path.exists(self._path(name))

    def begun(self, kind):
        return [line["number"] for line in self.timeline if (line["step"], line["kind"]) == ("begin", kind)]

    def faults_of_leaders(self):
        """(kind, how often, how often its replica led when it began)."""
        begun = [line for line in self.timeline if line["step"] == "begin" and line["kind"] in LEADER_KINDS]
        for kind in LEADER_KINDS:
            led = [bool(line.get("led")) for line in begun if line["kind"] == kind]
            yield kind, len(led), sum(led)


class Verdict:
    def __init__(self, run):
        self.run = run
        self.violations = []
        self.counts = Counter()
        self.modules = Counter()  # digests of Tasks whose module came from the registry

    def violated(self, rule, subject, text):
        self.violations.append((rule, subject, text))

    def judge(self):
        self._seen()
        self._oracle()
        self._plan()
        for ident, text in self.run.leaders.violations:
            self.violated("former", ident, text)
        self.run.checkpoints.compare(self.run.tasks)
        for ident, text in self.run.checkpoints.violations:
            self.violated("checkpoint", ident, text)
        died, lost = self.counts["died_in_broker"], sum(self.run.in_flight.lost)
        if died > lost:
            text = f"{died} results died in it, at most {lost} were in flight when it was killed"
            self.violated("lost", "broker", text)
        self._retained()
        self._cuts()
        for line in self.run.replicas:
            if line["event"] == "memory" and line["kib"] > MOST_MEMORY_KIB:
                text = f"has had {line['kib']} KiB, {MOST_MEMORY_KIB} are enough"
                self.violated("memory", line["replica"], text)
            if line["event"] in ("ended", "stopped") and line["status"] not in FINE_STATUSES:
                self.violated("crash", line["replica"], f"ended with status {line['status']}")
        return self.violations

    def _seen(self):
        """Who sees nothing finds nothing wrong: each source has what a run cannot be without."""
        run, kinds = self.run, Counter(message.kind for message in self.run.wire)
        begun = {line["number"] for line in run.timeline if line["step"] == "begin"}
        ended = {line["number"] for line in run.timeline if line["step"] == "end"}
        for source, what, count in (
            ("tasks.plan", "a Task", len(run.plan)),
            ("broker.log", "a leader", len(run.leaders.terms)),
            ("broker.log", "a packet of a leader", run.leaders.spoken),
            ("broker.log", "a result on its way to a leader", run.in_flight.seen),
            *(("wire.log", f"a {kind}", kinds[kind]) for kind in ("start", "result", "marker")),
            ("hostile.jsonl", "a forged result that the broker took", run.forged),
            *self._seen_checkpoints(),
        ):
            if not count:
                self.violated("blind", source, f"does not show {what}")
        for kind, count, led in run.faults_of_leaders():
            if led < count:
                self.violated("blind", "timeline.jsonl", f"{count} times {kind}, {led} of a leader")
        if not run.met.total() and any(line["kind"] in HTTP_KINDS for line in run.timeline):
            self.violated("blind", "links.jsonl", "no request met an error or lost its answer")
        for kind, what in MET_KINDS.items():
            numbers = run.begun(kind)
            if numbers and not any(run.met_by_number[number] for number in numbers):
                self.violated("blind", "met.jsonl", f"no {kind} met a {what}")
        for kind in RETAINED_KINDS if run.begun("retained-messages") else ():
            if not run.retained[kind]:
                self.violated("blind", "broker.log", f"does not show a retained {kind} sent to a controller")
        if run.begun("huge-messages") and not run.huge:
            self.violated("blind", "broker.log", "does not show a huge message sent to a controller")
        if run.begun("huge-messages") and not any(line["event"] == "memory" for line in run.replicas):
            self.violated("blind", "replicas.jsonl", "does not show a replica's memory")
        for number in sorted(run.faults_planned ^ begun | run.faults_planned ^ ended):
            self.violated("blind", "timeline.jsonl", f"fault {number} was not done as planned")

    def _seen_checkpoints(self):
        if self.run.saves:
            yield "*.journal", "a checkpoint that was acknowledged", len(self.run.checkpoints.acknowledged)
            if len(self.run.plan) >= MANY_TASKS:
                yield "*.journal", "an attempt that went on from one", self.run.checkpoints.resumed

    def _retained(self):
        """No process of a device is started twice, and an identity without a device has never spoken."""
        for task in self.run.tasks:
            restarts = task.get("status", {}).get("deviceRestarts")
            if restarts:
                text = f"was begun again for {restarts} restarts of devices, and none was restarted"
                self.violated("retained", task["metadata"]["name"], text)
        devices = self.run.journal.devices
        for proplet in self.run.proplets:
            identity = proplet["spec"].get("connectionConfig", {}).get("clientId")
            if identity not in devices and "lastSeen" in proplet.get("status", {}):
                self.violated("retained", proplet["metadata"]["name"], "has been seen, and has no device")

    def _cuts(self):
        """Only a close ends an attempt by a stop before the next one begins, and it is no failure."""
        run = self.run
        run.closings.compare(run.tasks, run.journal)
        for name, text in run.closings.violations:
            self.violated("cut", name, text)
        self.counts["cut"] = run.closings.cuts
        if run.closings.spans and not run.closings.cuts and len(run.plan) >= MANY_TASKS:
            self.violated("blind", "closings.jsonl", "no Task was stopped by a close")

    def _oracle(self):
        # A change of leaders is what the oracle knows as the death of a controller.
        changes = [Fault("controller", at, at) for at in self.run.leaders.changes]
        count = len(self.run.plan)
        options = SimpleNamespace(
            deleted=True,
            max_crossings=share(count, CROSSINGS),
            may_fail=[*EXPLAINED, "DeadlineExceeded"],
        )
        judgement = Judgement(
            self.run.journal,
            self.run.tasks,
            options,
            self.run.proplets,
            self.run.faults + changes,
            self.run.wire,
        )
        self.violations += judgement.judge()
        self.counts.update(judgement.counts)
        # Who fails otherwise than the oracle knows must not hide among the explained.
        for reason, percent in EXPLAINED.items():
            failed = [t for t in self.run.tasks if t.get("status", {}).get("reason") == reason]
            self.counts[f"failed {reason}"] = len(failed)
            if len(failed) > share(count, percent):
                text = f"{len(failed)} Tasks, {share(count, percent)} are explained by the faults"
                self.violated("ended", reason, text)

    # ---- each Task of the plan ----

    def _plan(self):
        found = {task["metadata"]["name"]: task for task in self.run.tasks}
        deleted = {line["name"] for line in self.run.stream if line["event"] == "deleted"}
        phases = {name: task.get("status", {}).get("phase", "pending") for name, task in found.items()}
        for planned in self.run.plan:
            name = planned["name"]
            if name in deleted:
                self.counts["deleted"] += 1
                if name in found:
                    self.violated("deleted", name, f"is still there, and {phases[name]}")
            elif name not in found:
                self.violated("gone", name, "is not in the cluster, and nobody deleted it")
            else:
                self._outcome(planned, found[name].get("status", {}), phases)
        if len(self.modules) > 1 or None in self.modules:
            self.violated("module", "tasks.json", f"one digest was pushed, Tasks have {dict(self.modules)}")
        if not self.modules and any(planned.get("by_reference") for planned in self.run.plan):
            self.violated("blind", "tasks.json", "does not show a Task with a module of the registry")

    def _outcome(self, planned, status, phases):
        """The module of a Task that is completed is the one that was pushed, which has one digest."""
        if planned.get("by_reference") and phases[planned["name"]] == "completed":
            self.modules[status.get("module", {}).get("digest")] += 1
        name, phase, reason = planned["name"], phases[planned["name"]], status.get("reason")
        if phase == "failed" and reason in EXPLAINED:
            return
        wanted, _, why = planned["outcome"].partition("-")
        if wanted == "follows":
            before = {phases.get(other) for other in planned["after"]}
            wanted = "completed" if before <= {"completed"} else "skipped"
        if phase != wanted or (why and reason != why):
            self.violated("ended", name, f"is {phase} {reason or ''}, planned was {wanted} {why}")
        elif phase == "completed" and status.get("results") != planned["value"]:
            text = f"has the answer {status.get('results')!r}, its own is {planned['value']!r}"
            self.violated("forged", name, text)


def report(verdict, run):
    kinds = Counter(line["kind"] for line in run.timeline if line["step"] == "begin")
    led = {kind: times for kind, _, times in run.faults_of_leaders()}
    yield f"faults: {sum(kinds.values())}"
    for kind, count in sorted(kinds.items()):
        yield f"    {kind:26} {count}" + (f", {led[kind]} of a leader" if kind in led else "")
    counts = verdict.counts
    yield f"Tasks: {len(run.plan)}"
    for name in ("completed", "failed", "skipped", "deleted"):
        yield f"    {name:26} {counts[name]}"
    yield f"    {'answer equal to the byte':26} {counts['equal']}"
    for reason in EXPLAINED:
        yield f"    {'failed, explained':26} {counts[f'failed {reason}']}  {reason}"
    yield "what faults explain:"
    for name, text in (
        ("died_in_broker", "results that died in a killed broker"),
        ("crossed", "repeats that crossed their result"),
        ("started_again", "starts repeated after a stop"),
        ("attempts_given_up", "attempts given up"),
        ("cut", "attempts that a close ended"),
        ("late", "results of attempts given up"),
        ("explained_with_result", "Tasks failed, though a result came"),
    ):
        yield f"    {text:36} {counts[name]}"
    yield f"leaders: {len(run.leaders.terms)}, connections of former ones: {run.leaders.returns}"
    ends = Counter(line["event"] for line in run.replicas)
    met = ", ".join(f"{code or 'lost'}: {count}" for code, count in run.met.items())
    yield f"requests that met an error or lost their answer: {met or 'none'}"
    acknowledged = sum(map(len, run.checkpoints.acknowledged.values()))
    yield f"checkpoints that were acknowledged: {acknowledged}, attempts that went on from one: {run.checkpoints.resumed}"
    yield f"forged results that nobody took: {run.forged}"
    for kind, what in MET_KINDS.items():
        yield f"{kind}: {sum(run.met_by_number[number] for number in run.begun(kind))} times a {what}"
    yield f"retained messages that the broker sent to controllers: {run.retained.total()}"
    yield f"huge messages that the broker sent to controllers: {run.huge}"
    memory = max((line["kib"] for line in run.replicas if line["event"] == "memory"), default=0)
    yield f"most memory of a replica: {memory} KiB"
    yield f"replicas: started {ends['started']}, killed {ends['killed']}, ended by themselves {ends['ended']}"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--client", required=True, help="client id of the controllers")
    options = parser.parse_args(arguments)
    try:
        run = Run(options.folder, options.client)
        verdict = Verdict(run)
        verdict.judge()
    except (OSError, RecordError, LeadersError) as error:
        print(f"judge: {error}", file=sys.stderr)
        return 2
    for rule, subject, text in verdict.violations:
        print(f"violated: {rule}: {subject}: {text}")
    print("\n".join(report(verdict, run)))
    counts = verdict.counts
    print(f"measured: {counts['equal']} answers equal to the byte, {counts['died_in_broker']} died in the "
          f"broker, {counts['crossed']} repeats crossed theirs, {len(run.leaders.terms)} leaders")
    print("chaos: " + (f"{len(verdict.violations)} violations" if verdict.violations else "nothing violated"))
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
