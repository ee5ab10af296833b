#!/usr/bin/env python3
"""reasons.py REASONS FILE: writes a page of Markdown of the table of reasons and Events (common/api/reasons.def)."""

import pathlib
import re
import sys

KINDS = {"OF_TASK": "Task", "OF_PROPLET": "Proplet", "OF_JOB": "PropellerJob", "OF_FEDERATED": "FederatedJob",
         "OF_ROUND": "TrainingRound", "OF_MACHINE": "ScheduledMachine", "OF_ENROLLMENT": "Enrollment"}
ROW = re.compile(r'^REASON\(\w+, "(\w+)", ([A-Z_ |]+), (\w+), "((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)', re.M)
EVENT = re.compile(r'^EVENT\(\w+, EVENT_(\w+), "(\w+)", "((?:[^"\\]|\\.)*)"\)', re.M)


def cell(text):
    text = text.replace('\\"', '"').replace("|", "\\|").replace("<", "&lt;")
    return text[:1].upper() + text[1:]


def main(source, file):
    text = pathlib.Path(source).read_text(encoding="utf-8")
    rows, events = ROW.findall(text), EVENT.findall(text)
    named = len(re.findall(r"^(?:REASON|EVENT)\(\w+, (?:EVENT_)?\"?\w", text, re.M))
    if not rows or not events or len(rows) + len(events) != named:
        sys.exit(f"reasons: {len(rows)} reasons and {len(events)} Events of {named} lines were read")
    lines = ["# Reasons and Events", "",
             "The reason of a status or condition says why an object is in its state. The message of the condition has "
             "the names and values. These are all reasons that Propeller sets; a pod that fails may also have the "
             "word of the kubelet."]
    for kind, name in KINDS.items():
        lines += ["", f"## {name}", "", "| reason | severity | meaning | what to do |", "|---|---|---|---|"]
        lines += [f"| []{{#{name.lower()}-{reason.lower()}}}`{reason}` | {severity.lower()} | {cell(meaning)}. "
                  f"| {cell(remedy)} |"
                  for reason, kinds, severity, meaning, remedy in rows if kind in kinds.split(" | ")]
    lines += ["", "## Events", "", "| Event | type | note |", "|---|---|---|"]
    lines += [f"| `{reason}` | {kind.capitalize()} | {cell(note)} |" for kind, reason, note in events]
    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
