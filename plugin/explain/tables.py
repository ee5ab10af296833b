#!/usr/bin/env python3
"""Makes the texts of `kubectl propeller explain` about conditions, alerts and metrics. Reasons are in the program anyway.

    tables.py >build/explain.json      (from the top of the tree; the Makefile does it)

Each text has one source: docs/reference/conditions.md, config/metrics/rules.yaml with the runbook of each alert in
docs/how-to/monitor.md, and the metrics that the sources declare.
"""

import json
import pathlib
import re
import sys

import yaml

sys.path.insert(0, "docs/tools")
from metrics import PREFIX, metrics_of

FOLDERS = ("common", "controller", "certs", "webhook", "standalone")


def plain(text):
    """Markdown as the text of a terminal: without links, roles and marks of code."""
    text = re.sub(r"\{doc\}`([^`<]*?) *<[^`]*>`", r"\1", text)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").strip()


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def conditions():
    for line in read("docs/reference/conditions.md").splitlines():
        if found := re.fullmatch(r"\| `(\w+)` \| (.*?) \| (.*?) ?\| (.*?) \|", line):
            name, kinds, true, otherwise = found.groups()
            meaning = [f"True: {plain(true)}"] if true else []
            yield {"object": name, "type": "condition", "kinds": kinds.split(", "),
                   "meaning": " ".join([*meaning, f"Otherwise: {plain(otherwise)}"])}


def runbook(page, name):
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    if not section:
        sys.exit(f"explain: docs/how-to/monitor.md has no section '{name}'")
    return plain(" ".join(line for line in section[1].split("\n") if line and not line.startswith("|--")))


def alerts():
    page = read("docs/how-to/monitor.md")
    for group in yaml.safe_load(read("config/metrics/rules.yaml"))["spec"]["groups"]:
        for rule in group["rules"]:
            yield {"object": rule["alert"], "type": "alert", "severity": rule["labels"]["severity"],
                   "meaning": plain(re.sub(r"\{\{.*?\}\}", "…", rule["annotations"]["summary"])),
                   "remedy": runbook(page, rule["alert"])}


def metrics():
    prefix = PREFIX.search(read("common/base/version.h"))[1]
    rows = {}
    for folder in FOLDERS:
        for source in sorted(pathlib.Path(folder).rglob("*.c")):
            if "tests" not in source.parts:
                for name, kind, labels, about in metrics_of(read(source), prefix):
                    with_labels = f" Labels: {', '.join(labels)}." if labels else ""
                    rows[name] = {"object": name, "type": "metric", "meaning": f"A {kind}. {about}{with_labels}"}
    return [row for _, row in sorted(rows.items())]


if __name__ == "__main__":
    json.dump([*conditions(), *alerts(), *metrics()], sys.stdout, indent=1, ensure_ascii=False)
