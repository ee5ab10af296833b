#!/usr/bin/env python3
"""Recomputes every model of a FederatedJob with NumPy from the updates that its rounds counted.

verify.py ROUNDS.json TASKS.json JOB-UID COORDINATOR-URL [--table] [--plot FILE.svg]

Lists of TrainingRounds and Tasks as the API server gives them. Fails if a model differs from the
recomputed one by more than 1e-9, if a participant is counted twice in a round, if a round counted
fewer than it needs, or if a round completed twice. Attempts of rounds that failed are left out if a later one
completed. --table prints a line a round, --plot draws the loss.
"""

import argparse
import base64
import json
import sys
import urllib.request

import numpy

TOLERANCE = 1e-9
NUMBER = "propeller.propeller.abstractmachines.fr/spec-index"


def read_items(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["items"]


def number_of(round_):
    return int(round_["metadata"]["annotations"][NUMBER])


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as reply:
        return numpy.array(json.load(reply), dtype=numpy.float64)


def update_of(task):
    results = task["status"]["results"]
    values = numpy.array(json.loads(base64.b64decode(results["update_b64"])), dtype=numpy.float64)
    return results["numSamples"], values, results.get("metrics", {}).get("loss")


def recompute(round_, tasks):
    """(model, loss of the model that the round began with, who was counted)"""
    counted, updates = [], []
    for part in round_["status"]["participants"]:
        if part.get("updateReceived"):
            counted.append(part["propletId"])
            updates.append(update_of(tasks[part["taskRef"]["name"]]))
    weights = numpy.array([samples for samples, _, _ in updates], dtype=numpy.float64)
    model = numpy.average([values for _, values, _ in updates], axis=0, weights=weights)
    losses = [loss for _, _, loss in updates]
    loss = None if None in losses else float(numpy.average(losses, weights=weights))
    return model, loss, counted


def check(round_, model, counted, url):
    name, status = round_["metadata"]["name"], round_["status"]
    if len(set(counted)) != len(counted):
        sys.exit(f"{name}: somebody is counted twice: {counted}")
    if len(counted) < status["updatesRequired"] or len(counted) != status["updatesReceived"]:
        sys.exit(f"{name}: {len(counted)} updates are counted, the status says {status}")
    stored = fetch(url)
    difference = float(numpy.max(numpy.abs(stored - model)))
    if not difference <= TOLERANCE:
        sys.exit(f"{name}: stored {stored.tolist()}, recomputed {model.tolist()}")
    return difference


def plot(path, losses):
    """Loss per round as SVG, on a logarithmic scale."""
    width, height, left, bottom = 640, 320, 60, 40
    logs = numpy.log10(losses)
    low, high = numpy.floor(logs.min()), numpy.ceil(logs.max())
    across = (width - left - 20) / max(1, len(losses) - 1)
    up = (height - bottom - 20) / max(1.0, high - low)

    def at(index, log):
        return f"{left + index * across:.1f},{height - bottom - (log - low) * up:.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
             '<rect width="100%" height="100%" fill="white"/>',
             '<g font-family="sans-serif" font-size="12" fill="#333">']
    for power in range(int(low), int(high) + 1):
        y = height - bottom - (power - low) * up
        lines.append(f'<line x1="{left}" x2="{width - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    lines.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">round</text>')
    lines.append(f'<text x="{left}" y="14">loss (mean squared error, by samples)</text></g>')
    points = " ".join(at(index, log) for index, log in enumerate(logs))
    lines.append(f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="2"/>')
    for index, log in enumerate(logs):
        x, y = at(index, log).split(",")
        lines.append(f'<circle cx="{x}" cy="{y}" r="3" fill="#06c"/>')
    lines.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def bar(loss, first):
    """On a logarithmic scale, a column for each seventh of a power of ten below the first."""
    return "#" * max(1, int(40 + 7 * numpy.log10(loss / first)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rounds")
    parser.add_argument("tasks")
    parser.add_argument("job_uid")
    parser.add_argument("url")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--plot")
    options = parser.parse_args()
    tasks = {task["metadata"]["name"]: task for task in read_items(options.tasks)}
    rounds = [item for item in read_items(options.rounds)
              if item["metadata"]["ownerReferences"][0]["uid"] == options.job_uid]
    rounds.sort(key=number_of)
    completed = [number_of(item) for item in rounds if item["status"]["phase"] == "Completed"]
    if len(set(completed)) != len(completed):
        sys.exit(f"a round completed twice: {completed}")
    rounds = [item for item in rounds if item["status"]["phase"] != "Failed" or number_of(item) not in completed]
    losses, worst = [], 0.0
    for round_ in rounds:
        number = round_["metadata"]["annotations"][NUMBER]
        if round_["status"]["phase"] != "Completed":
            sys.exit(f"round {number} is {round_['status']['phase']}")
        model, loss, counted = recompute(round_, tasks)
        url = f"{options.url}/j/{options.job_uid}/models/{number}"
        worst = max(worst, check(round_, model, counted, url))
        losses.append(loss)
        if options.table:
            values = " ".join(f"{value:9.5f}" for value in model)
            graph = bar(loss, losses[0]) if loss else ""
            print(f"{number:>5} {len(counted):>7} {loss or 0:12.6f}  {values}  {graph}")
    if options.plot and all(losses):
        plot(options.plot, losses)
    falls = all(losses) and losses[-1] < losses[0]
    print(f"{len(rounds)} rounds, largest difference from NumPy {worst:.1e}, "
          f"loss {'falls' if falls else 'does not fall'}"
          + (f" from {losses[0]:.6f} to {losses[-1]:.6f}" if all(losses) else ""))


if __name__ == "__main__":
    main()
