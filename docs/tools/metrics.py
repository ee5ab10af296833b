#!/usr/bin/env python3
"""metrics.py FILE FOLDER...: writes a page of Markdown of all metrics that the sources of these folders declare.

A metric is a static `struct metric` with its type, name, help text and labels (common/runtime/metrics.h).
"""

import pathlib
import re
import sys

DECLARED = re.compile(r"struct metric \w+ = \{(.*?)\n?\};", re.S)
# The prefix is a macro, and common/runtime knows no other word of the product.
PREFIX = re.compile(r'#define PRODUCT_METRICS "(\w+)"')


def string_of(text, member, prefix):
    found = re.search(rf"\.{member}\s*=\s*((?:PRODUCT_METRICS\s*|\"(?:[^\"\\]|\\.)*\"\s*)+)", text)
    if not found:
        return None
    return "".join(prefix if word == "PRODUCT_METRICS" else word[1:-1]
                   for word in re.findall(r"PRODUCT_METRICS|\"(?:[^\"\\]|\\.)*\"", found[1]))


def metrics_of(source, prefix):
    for found in DECLARED.finditer(source):
        name, about = string_of(found[1], "name", prefix), string_of(found[1], "help", prefix)
        if not name or not about:
            sys.exit(f"metrics: a metric without name or help text: {found[0][:80]}")
        labels = re.search(r"\.labels\s*=\s*\{(.*?)\}", found[1], re.S)
        kind = re.search(r"METRIC_(\w+)", found[1])
        yield name, kind[1].lower() if kind else "counter", re.findall(r'"(\w+)"', labels[1]) if labels else [], about


def main(file, *folders):
    prefix = PREFIX.search(pathlib.Path("common/base/version.h").read_text(encoding="utf-8"))[1]
    rows = set()
    for folder in folders:
        for source in sorted(pathlib.Path(folder).rglob("*.c")):
            if "tests" not in source.parts:
                rows |= {(name, kind, ", ".join(labels), about)
                         for name, kind, labels, about in metrics_of(source.read_text(encoding="utf-8"), prefix)}
    names = [row[0] for row in rows]
    if not rows or len(set(names)) != len(names):
        sys.exit(f"metrics: {len(rows)} metrics, of {len(set(names))} names")
    lines = ["# Metrics", "",
             "`/metrics` is in the Prometheus text format. Units are seconds and bytes. Gauges of objects "
             "exist from the start; a counter appears with its first event.", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
    lines += [f"| []{{#{name.replace('_', '-')}}}`{name}` | {kind} | {labels} | {about} |"
              for name, kind, labels, about in sorted(rows)]
    pathlib.Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
