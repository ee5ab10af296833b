"""Makes tables and one JSON document of the figures that the scenarios measured.

A figure is a line of JSON: scenario, who (ours or peer), what (with its unit), value, budget (as
'<= 15', or empty), at (when it was measured: those of other scenarios may be of another day). The
same figure of several runs becomes their median and spread.
"""

import argparse
import json
import os
import platform
import statistics
import time

COMPARE = {"<=": lambda value, limit: value <= limit, ">=": lambda value, limit: value >= limit}


def is_met(value, budget):
    """None: there is no budget."""
    if not budget:
        return None
    sign, limit = budget.split()
    return COMPARE[sign](value, float(limit))


def merge(lines):
    """One entry a figure, in the order in which they came first."""
    entries = {}
    for line in lines:
        key = (line["scenario"], line["what"])
        entry = entries.setdefault(key, {"budget": line["budget"], "ours": [], "peer": []})
        entry["point"] = {name: line[name] for name in ("series", "x") if name in line}
        entry[line["who"]].append(line["value"])
        entry["at"] = line.get("at")
    return [
        {"scenario": scenario, "what": what, **entry["point"], **summary(entry), "at": entry["at"]}
        for (scenario, what), entry in entries.items()
    ]


def summary(entry):
    ret = {"budget": entry["budget"] or None}
    for who in ("ours", "peer"):
        values = entry[who]
        ret[who] = statistics.median(values) if values else None
        ret[f"{who}Runs"] = values
    ret["met"] = None if ret["ours"] is None else is_met(ret["ours"], entry["budget"])
    comparable = ret["ours"] is not None and ret["peer"]
    ret["ratio"] = round(ret["ours"] / ret["peer"], 3) if comparable else None
    return ret


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def spread(values):
    return f"{number(min(values))}..{number(max(values))}" if len(values) > 1 else ""


def rows(entries):
    """Columns that nobody fills are left out, the first two and the budget never."""
    verdict = {True: "met", False: "MISSED", None: ""}
    table = [["measured", "value", "spread", "peer", "ratio", "budget", ""]]
    for entry in entries:
        has_peer = entry["peer"] is not None
        table.append(
            [
                entry["what"],
                number(entry["ours"]),
                spread(entry["oursRuns"]),
                number(entry["peer"]) if has_peer else "",
                number(entry["ratio"]) if has_peer else "",
                entry["budget"] or "",
                verdict[entry["met"]],
            ]
        )
    kept = [
        column
        for column in range(7)
        if column in (0, 1, 5) or any(line[column] for line in table[1:])
    ]
    return [[line[column] for column in kept] for line in table]


def print_table(entries):
    table = rows(entries)
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    print()


def print_budgets(entries):
    """How many are met, and each that is not."""
    missed = [entry for entry in entries if entry["met"] is False]
    met = sum(entry["met"] is True for entry in entries)
    print(f"budgets: {met} met, {len(missed)} missed" + (":" if missed else ""))
    for entry in missed:
        print(f"    {entry['scenario']}: {entry['what']}: {number(entry['ours'])}, budget {entry['budget']}")


def machine():
    return {
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "load": os.getloadavg(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", required=True, metavar="FILE")
    parser.add_argument("--scenario", help="print the table of this one")
    parser.add_argument("--budgets", action="store_true", help="say which are missed, of all scenarios")
    parser.add_argument("--json", metavar="FILE", help="write all of them there")
    options = parser.parse_args()
    with open(options.figures, encoding="utf-8") as file:
        entries = merge(json.loads(line) for line in file)
    if options.scenario:
        print(f"==> {options.scenario}")
        print_table([entry for entry in entries if entry["scenario"] == options.scenario])
    if options.budgets:
        print_budgets(entries)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "figures": entries}, file, indent=1)


if __name__ == "__main__":
    main()
