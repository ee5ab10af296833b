#!/usr/bin/env python3
"""values.py TABLE FILE: writes a page of Markdown of the values of the Helm chart (config/chart/chart.yaml)."""

import json
import pathlib
import sys

import yaml


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(source, file):
    table = yaml.safe_load(pathlib.Path(source).read_text(encoding="utf-8"))["values"]
    lines = ["# Values of the Helm chart", "",
             "The [how-to page](../how-to/helm.md) says how to install the chart. Other names, and values that do not fit, "
             "are refused with their name.", "",
             "| value | default | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | `{json.dumps(default)}` | {cell(text)} |" for name, (default, _, text) in table.items()]
    pathlib.Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
