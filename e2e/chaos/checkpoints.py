"""Checkpoints of a run of chaos: whether each one that a controller acknowledged was there afterwards.

Read from the journals of scripted devices (../device/longrun.py, Saver), whose clock is one. An attempt that begins
is told the greatest step that was acknowledged before, it gets the bytes of that step or of a later one, and the
status of its Task never falls behind.
"""

from collections import defaultdict


def task_of(ident):
    """The uid of the Task, of the id of one of its attempts."""
    return ident.partition(".")[0]


class Checkpoints:
    def __init__(self, lines):
        """lines: objects of the journals, in any order."""
        self.acknowledged = defaultdict(list)  # uid -> (time, step)
        self.resumed = 0
        self.violations = []  # (id, text)
        begun = {}  # id -> the first time that it began
        for line in sorted(lines, key=lambda line: line.get("time", 0)):
            event, ident = line.get("event"), line.get("task")
            if event == "checkpoint" and line["status"] == 200:
                self.acknowledged[task_of(ident)].append((line["time"], line["step"]))
            elif event == "begun" and ident not in begun:
                begun[ident] = line["time"]
                self._told(ident, line.get("told"), line["time"])
            elif event == "resumed" and "right" in line:
                self._resumed(ident, line)

    def greatest(self, uid, before=float("inf")):
        return max((step for time, step in self.acknowledged[uid] if time < before), default=0)

    def _told(self, ident, told, time):
        greatest = self.greatest(task_of(ident), time)
        if (told or 0) < greatest:
            self.violations.append((ident, f"was told step {told}, and step {greatest} had been acknowledged"))

    def _resumed(self, ident, line):
        self.resumed += 1
        if line["step"] < line["told"]:
            self.violations.append((ident, f"was told step {line['told']} and got step {line['step']}"))
        if not line["right"]:
            self.violations.append((ident, f"got other bytes as step {line['step']}"))

    def compare(self, tasks):
        """Adds what the statuses of these Tasks lack."""
        for task in tasks:
            stored = task.get("status", {}).get("lastCheckpoint", {}).get("step", 0)
            greatest = self.greatest(task["metadata"]["uid"])
            if stored < greatest:
                text = f"has step {stored} in its status, and step {greatest} was acknowledged"
                self.violations.append((task["metadata"]["name"], text))
