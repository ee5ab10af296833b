"""Attempts that ended because their Proplet closed, and what may not follow from it.

A stop before the next attempt begins is a cut: who is lost, or late, is told to stop after that, or has no next
attempt. So each cut needs a close of its device, which overlaps the attempt; and a cut is no failure.
"""

# A controller that was away reads a close that is over by then.
LATE_S = 60


class Closings:
    def __init__(self, lines):
        self.spans = {}  # device -> [[begin, end]]
        self.cuts = 0
        self.violations = []
        for line in lines:
            for device in line["devices"]:
                spans = self.spans.setdefault(device, [])
                if line["step"] == "close":
                    spans.append([line["time"], float("inf")])
                elif spans:
                    spans[-1][1] = line["time"] + LATE_S

    def compare(self, tasks, journal):
        for task in tasks:
            self._task(task["metadata"], task.get("status", {}), journal)

    def _task(self, metadata, status, journal):
        name = metadata["name"]
        # One may fail without a word of its device.
        failures = int(status.get("phase") == "failed" and status.get("reason") != "DeviceError")
        # Whom its device gave no sign is stopped, too, in case that it runs.
        explained = status.get("unconfirmedAttempts", 0) + status.get("lostAttemptCount", 0)
        idents = [metadata["uid"]] + [f"{metadata['uid']}.{n}" for n in range(2, status.get("attempt", 1) + 1)]
        for ident, following in zip(idents, idents[1:] + [None]):
            executions, after = journal.of(ident), journal.of(following)
            failures += any(r.error for e in executions if not e.stopped for r in e.results)
            next_start = after[0].time if after else 0
            for execution in executions:
                if not execution.stopped or execution.stopped > next_start:
                    continue
                self.cuts += 1
                if not self._is_closed(execution):
                    explained -= 1
                if explained < 0:
                    text = f"{ident} was stopped on '{execution.device}', which was open all the time"
                    self.violations.append((name, text))
        if status.get("failures", 0) > failures:
            text = f"has {status['failures']} failures, devices told of {failures}"
            self.violations.append((name, text))

    def _is_closed(self, execution):
        spans = self.spans.get(execution.device, [])
        return any(begin <= execution.stopped and execution.time <= end for begin, end in spans)
