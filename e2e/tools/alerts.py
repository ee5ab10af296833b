#!/usr/bin/env python3
"""Tests the alerts of config/metrics.

    alerts.py PROMTOOL    a promtool (Debian package prometheus)

promtool checks the expressions and runs rules_test.yaml. Every metric of an expression must be one that the sources
declare, and every alert must have a test and a section in docs/how-to/monitor.md, to which its annotation leads.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from metric_names import declared

RULES = pathlib.Path("config/metrics/rules.yaml")
TESTS = pathlib.Path("config/metrics/rules_test.yaml")
PAGE = "docs/how-to/monitor.md"


def problems_of(rules, metrics):
    text = pathlib.Path(PAGE).read_text(encoding="utf-8")
    sections = {heading.lower() for heading in re.findall(r"^## (\w+)$", text, re.M)}
    tested = {test["alertname"] for group in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]
              for test in group["alert_rule_test"] if "exp_alerts" in test}
    for rule in rules:
        name, anchor = rule["alert"], f"{PAGE}#{rule['alert'].lower()}"
        if name.lower() not in sections or rule["annotations"].get("runbook") != anchor:
            yield f"{name}: no section in {PAGE}, or its runbook is not {anchor}"
        if name not in tested:
            yield f"{name}: {TESTS} has no test in which it fires"
        for metric in re.findall(r"\b((?:propeller|controller_runtime|leader_election)_\w+)", rule["expr"]):
            if metric not in metrics:
                yield f"{name}: no source declares the metric {metric}"


def main(promtool):
    spec = yaml.safe_load(RULES.read_text(encoding="utf-8"))["spec"]
    rules = [rule for group in spec["groups"] for rule in group["rules"]]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        problems = list(problems_of(rules, declared(folder)))
        (folder / "rules.groups.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
        (folder / TESTS.name).write_text(TESTS.read_text(encoding="utf-8"), encoding="utf-8")
        for command in (["check", "rules", "rules.groups.yaml"], ["test", "rules", TESTS.name]):
            done = subprocess.run([promtool, *command], cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                problems.append(f"promtool {' '.join(command)}: {done.stdout}{done.stderr}")
    print("\n".join(problems) or f"alerts: {len(rules)} passed, 0 failed")
    return 1 if problems or not rules else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
