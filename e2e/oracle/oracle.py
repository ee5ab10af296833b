#!/usr/bin/env python3
"""Compares what devices saw and answered with what the cluster says. README.md has the rules.

Prints one line for each violation and one line of counts, JSON; ends with 1 if anything is violated.
"""

import argparse
import json
import sys
from collections import Counter
from datetime import datetime

from records import Journal, RecordError, read_faults, read_list, read_wire

ENDED = ("completed", "failed", "skipped")


def message_id(uid, number):
    """The first attempt carries the uid alone."""
    return uid if number < 2 else f"{uid}.{number}"


def is_same(one, other):
    """To the byte: Python finds 1, 1.0 and True equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


class Judgement:
    def __init__(self, journal, tasks, options, proplets=(), faults=(), wire=()):
        self.journal, self.tasks, self.options = journal, tasks, options
        self.identities = {
            (item["metadata"].get("namespace"), item["metadata"]["name"]): item["spec"]
            .get("connectionConfig", {})
            .get("clientId")
            for item in proplets
        }
        self.broker_kills = [fault for fault in faults if fault.what == "broker"]
        self.controller_kills = [fault for fault in faults if fault.what == "controller"]
        self.wire = {}  # message id, or None for markers -> [(position, message)]
        for position, message in enumerate(wire):
            self.wire.setdefault(message.ident, []).append((position, message))
        self.violations = []
        self.counts = Counter(journal.counts)

    def violated(self, rule, subject, text):
        self.violations.append((rule, subject, text))

    def judge(self):
        known = set()
        for task in self.tasks:
            known.add(task["metadata"]["uid"])
            self._task(Subject(task, self.journal))
        for ident in self.journal.executions:
            if ident.partition(".")[0] not in known:
                self._unknown(ident)
        for device, ident in self.journal.orphans:
            self.violated("orphan", ident, f"'{device}' sent a result of what it never started")
        for device, size in self.journal.deaf:
            self.violated("deaf", device, f"was sent {size} bytes and hears nothing since")
        if self.counts["crossed"] > self.options.max_crossings:
            text = f"{self.counts['crossed']} repeats, {self.options.max_crossings} are explained"
            self.violated("twice", "all", text)
        self.counts["tasks"] = len(self.tasks)
        self.counts["violations"] = len(self.violations)
        return self.violations

    def _unknown(self, ident):
        devices = sorted({execution.device for execution in self.journal.of(ident)})
        if not self.options.deleted:
            self.violated("unknown", ident, "was started and is no Task of the cluster")
        elif len(devices) > 1:
            self.violated("devices", ident, f"of a deleted Task was started on {devices}")

    def _task(self, task):
        self.counts[task.phase] += 1
        self._outcome(task)
        for number in range(1, task.attempts + 1):
            self._attempt(task, number)
        if task.attempts > 1:
            self.counts["attempts_given_up"] += task.attempts - 1

    # ---- what the cluster says of it ----

    def _outcome(self, task):
        last = task.results_of(task.attempts)
        stored = [result for result in last if result.acknowledged is not None]
        if task.is_waiting:
            self.counts["waiting"] += 1
        elif task.phase not in ENDED:
            rule, text = ("lost", "the broker has its result") if stored else ("ended", "no result")
            self.violated(rule, task.name, f"is {task.phase}: {text}")
        elif task.phase == "completed":
            self._completed(task, [result for result in last if not result.error])
        elif task.phase == "failed":
            self._failed(task, [result for result in last if result.error], stored)
        elif task.executions_of_all():
            self.violated("ended", task.name, "is skipped and was started")
        if task.phase == "completed" and self.identities:
            self._sender(task)

    def _completed(self, task, published):
        if any(is_same(result.results, task.results) for result in published):
            self.counts["equal"] += 1
            return
        earlier = [r for n in range(1, task.attempts) for r in task.results_of(n)]
        if not published and any(is_same(r.results, task.results) for r in earlier):
            self.violated("attempt", task.name, "has the result of an earlier attempt")
        else:
            said = [result.results for result in published]
            self.violated("forged", task.name, f"has {task.results!r}, published was {said!r}")

    def _failed(self, task, published, stored):
        if task.reason != "DeviceError":
            if task.reason not in self.options.may_fail:
                rule = "lost" if stored else "ended"
                self.violated(rule, task.name, f"failed with {task.reason}: {task.error}")
            else:
                self._explained(task)
        elif task.error and any(str(r.error).startswith(task.error) for r in published):
            self.counts["equal"] += 1
        else:
            said = [result.error for result in published]
            self.violated("forged", task.name, f"failed with {task.error!r}, published was {said!r}")

    def _explained(self, task):
        """It failed for want of a result: so none that was handled before may be there."""
        ident = message_id(task.uid, task.attempts)
        results = [r for e in task.executions(task.attempts) if not e.stopped for r in e.results]
        if not results:
            return
        if self._died_in_broker(results[0], task.finished + 1):  # it has whole seconds
            self.counts["died_in_broker"] += 1
        elif task.reason != "DeadlineExceeded" and self._was_handled(ident, task.finished):
            self.violated("lost", task.name, f"failed with {task.reason}, a result came long before")
        else:
            self.counts["explained_with_result"] += 1

    def _sender(self, task):
        wanted = task.client or self.identities.get((task.namespace, task.assigned))
        senders = {execution.device for execution in task.executions(task.attempts)}
        if wanted not in senders:
            self.violated("sender", task.name, f"is of '{wanted}', started were {sorted(senders)}")

    # ---- what devices did with one attempt ----

    def _attempt(self, task, number):
        executions = task.executions(number)
        ident = message_id(task.uid, number)
        self.counts["executions"] += len(executions)
        devices = sorted({execution.device for execution in executions})
        if len(devices) > 1:
            self.violated("devices", task.name, f"attempt {number} was started on {devices}")
        for execution in executions:
            if len(execution.results) > 1:
                text = f"'{execution.device}' sent {len(execution.results)} results of one start"
                self.violated("twice", task.name, text)
            if execution.computed > 1:
                self.violated("twice", task.name, f"'{execution.device}' computed one start twice")
        for earlier, later in zip(executions, executions[1:]):
            self._repeat(task, ident, earlier, later)
        self._early_repeats(task, ident)
        if number < task.attempts:
            self._given_up(task, number, executions)

    def _died_in_broker(self, result, until):
        """The broker had it, and was killed before anybody asked again."""
        return result.acknowledged is not None and any(
            result.acknowledged <= kill.end and kill.begin <= until for kill in self.broker_kills
        )

    def _repeat(self, task, ident, earlier, later):
        if not earlier.results:
            # Its device died, or was told to stop, before it said anything.
            self.counts["started_again"] += 1
            if later.boot == earlier.boot and not earlier.stopped:
                self.violated("twice", task.name, f"'{later.device}' ran {ident} twice at once")
        elif self._died_in_broker(earlier.results[0], later.time):
            self.counts["died_in_broker"] += 1
        elif self._was_queued(ident):
            self.violated("twice", task.name, "was repeated though its result came before a marker")
        else:
            self.counts["crossed"] += 1

    def _on_wire(self, ident, kind):
        return [(position, m) for position, m in self.wire.get(ident, []) if m.kind == kind]

    def _was_queued(self, ident):
        """A marker stands between its first result and a later start: the result was handled before."""
        results, starts = self._on_wire(ident, "result"), self._on_wire(ident, "start")
        markers = self._on_wire(None, "marker")
        return bool(results) and any(results[0][0] < at < starts[-1][0] for at, _ in markers)

    def _was_handled(self, ident, until):
        """Two markers stand between its first result and then. At most one is on its way: the first
        of them was back, and with it everything before it."""
        results = self._on_wire(ident, "result")
        markers = [(at, m) for at, m in self._on_wire(None, "marker") if m.time < until]
        return bool(results) and sum(results[0][0] < at for at, _ in markers) >= 2

    def _early_repeats(self, task, ident):
        """A new leader waits for its own marker before it repeats what an earlier one published."""
        starts = self._on_wire(ident, "start")
        for (_, first), (position, again) in zip(starts, starts[1:]):
            kills = [k for k in self.controller_kills if first.time < k.begin and k.end < again.time]
            if not kills or any(kills[-1].begin < k.end < again.time for k in self.broker_kills):
                continue  # the same leader; or the marker may have died with the broker
            markers = self._on_wire(None, "marker")
            if not any(at < position and m.time > kills[-1].end for at, m in markers):
                self.violated("early", task.name, "was repeated before the new leader's marker")

    def _given_up(self, task, number, executions):
        for execution in executions:
            for result in execution.results:
                if execution.stopped or result.acknowledged is None:
                    continue
                if result.error and task.failures_until(number) <= task.backoff_limit:
                    self.counts["retried"] += 1
                    continue
                following = task.executions(number + 1)
                until = following[0].time if following else float("inf")
                if self._died_in_broker(result, until):
                    self.counts["died_in_broker"] += 1
                elif result.time > until:
                    self.counts["late"] += 1  # its attempt had been given up before
                else:
                    text = f"attempt {number} was given up and the broker has its result"
                    self.violated("lost", task.name, text)


class Subject:
    """One Task of the cluster, with what devices did for it."""

    def __init__(self, task, journal):
        metadata, status = task["metadata"], task.get("status", {})
        self.journal = journal
        self.uid, self.namespace = metadata["uid"], metadata.get("namespace")
        self.name = f"{self.namespace}/{metadata['name']}"
        self.phase = status.get("phase", "pending")
        self.attempts = max(1, status.get("attempt", 1))
        self.results, self.error = status.get("results"), status.get("error")
        self.backoff_limit = task.get("spec", {}).get("backoffLimit", 0)  # attempts that may fail
        self.reason, self.assigned = status.get("reason"), status.get("assignedProplet")
        finished = status.get("finishedAt")
        self.finished = datetime.fromisoformat(finished).timestamp() if finished else float("inf")
        self.client = status.get("assignedClientId")  # one of the pods of its Proplet
        spec = task.get("spec", {})
        # Not meant to end: a daemon that runs, a Task that is suspended.
        self.is_waiting = (spec.get("daemon") and self.phase == "running") or (
            spec.get("suspend") and self.phase in ("pending", "interrupted")
        )

    def executions(self, number):
        return self.journal.of(message_id(self.uid, number))

    def executions_of_all(self):
        return [e for number in range(1, self.attempts + 1) for e in self.executions(number)]

    def failures_until(self, number):
        """Attempts that failed. The error of one that was stopped is its word on the stop."""
        return sum(
            any(r.error for e in self.executions(n) if not e.stopped for r in e.results)
            for n in range(1, number + 1)
        )

    def results_of(self, number):
        return [result for execution in self.executions(number) for result in execution.results]


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", required=True, metavar="FILE", help="kubectl get tasks -o json")
    parser.add_argument("--journal", action="append", required=True, metavar="FILE")
    parser.add_argument("--proplets", metavar="FILE", help="kubectl get proplets -o json")
    parser.add_argument("--faults", metavar="FILE", help="who was killed, and when")
    parser.add_argument("--wire", metavar="FILE", help="lines TIME TOPIC PAYLOAD, broker's order")
    parser.add_argument("--may-fail", action="append", default=[], metavar="REASON")
    parser.add_argument("--max-crossings", type=int, default=0, metavar="N")
    parser.add_argument("--deleted", action="store_true", help="Tasks were deleted on the way")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        judgement = Judgement(
            Journal(options.journal),
            read_list(options.tasks),
            options,
            read_list(options.proplets) if options.proplets else (),
            read_faults(options.faults) if options.faults else (),
            read_wire(options.wire) if options.wire else (),
        )
    except (OSError, RecordError) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 2
    for rule, subject, text in judgement.judge():
        print(f"violated: {rule}: {subject}: {text}")
    print("oracle: " + json.dumps(dict(sorted(judgement.counts.items()))))
    return 1 if judgement.violations else 0


if __name__ == "__main__":
    sys.exit(main())
