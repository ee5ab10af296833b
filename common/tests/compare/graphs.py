#!/usr/bin/env python3
"""Random files of resources: what propeller-graph check prints, against a second reading of the rules.

graphs.py --program PROGRAM --count N --seed N

A third of the files has a fault. Then the number of errors and the path of each must be the same.
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

PREFIX = "fluxion.flux-framework.org/"
KEYS = ("vendor", "qubits", "a.b", "x_y", "Z9", "type")
VALUES = ("ibm", "80", "a=b", "", "x y", "\t", "é")
TYPES = ("qpu", "qubit", "a.b", "T-1", "qpu1")
NAMES = ("fez", "torino", "qpu0", "qpu10", "x y", "ü", "..")
PARENTS = ("cluster", "lab/attic", "node-1.example")
BAD_KEYS = ("backend", "BACKEND", "a/b", "", "a b", "k" * 59, "x-y")
BAD_VALUES = (80, True, None, ["x"], {"a": "b"}, "v" * 1025)
BAD_NAMES = ("", "a/b", "a\nb", "n" * 254, 7, None, "\x85")
BAD_TYPES = ("", "core", "memory", "gpu", "-a", "a b", "t" * 64, 3, None)
BAD_COUNTS = (-1, 1.5, "2", 1000001, None, True, [1])
BAD_PARENTS = ("", "a/b/c", "A/b", "lab/", 3, None)


# ---- the rules, on the document as a tree ----

class Checked:
    def __init__(self, document):
        self.errors, self.vertices, self.keys = [], [], {"FLUXION_BACKEND": None}
        self.sets = {}
        if not isinstance(document, dict):
            self.errors.append("resources.yaml")
            return
        self.errors += ["resources.yaml"] * len(set(document) - {"resources", "attributes"})
        self.read_sets(document)
        resources = document.get("resources")
        if not isinstance(resources, list) or not resources:
            self.errors.append("resources")
        else:
            self.read_entries(resources, "resources", "/cluster", {}, None, 1)

    def read_sets(self, document):
        if "attributes" not in document:
            return
        sets = document["attributes"]
        if not isinstance(sets, dict):
            self.errors.append("attributes")
            return
        for name, values in sets.items():
            self.sets[name] = {}
            if not is_name(name):
                self.errors.append("attributes")
            elif isinstance(values, dict):
                self.sets[name] = self.read_map(values, f"attributes.{name}")
            else:
                self.errors.append(f"attributes.{name}")

    def read_map(self, values, place):
        kept = {}
        if len(values) > 64:
            self.errors.append(place)
            return kept
        for key, value in values.items():
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,58}", key):
                self.errors.append(place)
                continue
            if self.keys.setdefault(variable(key), key) != key:
                self.errors.append(place)
            elif not isinstance(value, str) or len(value.encode()) > 1024:
                self.errors.append(f"{place}.{key}")
            else:
                kept[key] = value
        return kept

    def attributes_of(self, entry, place, inherited):
        if "attributes" not in entry:
            return inherited
        own, place = entry["attributes"], place + ".attributes"
        if isinstance(own, str):
            own = self.sets.get(own)
        elif isinstance(own, dict):
            own = self.read_map(own, place)
        else:
            own = None
        if own is None:
            self.errors.append(place)
            return inherited
        merged = {key: value for key, value in {**inherited, **own}.items() if value}
        if len(merged) > 64 or sum(len((k + v).encode()) for k, v in merged.items()) > 8192:
            self.errors.append(place)
            return inherited
        return merged

    def read_entries(self, entries, place, above, inherited, backend, depth):
        numbers, used = {}, set()
        for index, entry in enumerate(entries):
            own = f"{place}[{index}]"
            if not isinstance(entry, dict):
                self.errors.append(own)
                continue
            self.read_entry(entry, own, above, inherited, backend, depth, numbers, used)

    def read_entry(self, entry, own, above, inherited, backend, depth, numbers, used):
        allowed = {"type", "name", "count", "attributes", "with"} | ({"parent"} if depth == 1 else set())
        self.errors += [own] * len(set(entry) - allowed)
        kind = entry.get("type")
        if not isinstance(kind, str) or kind in ("core", "memory", "gpu") or \
                not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", kind):
            self.errors.append(own + ".type")
            kind = ""
        count = entry.get("count", 0)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 1000000:
            self.errors.append(own + ".count")
            count = 1
        if depth == 1 and "parent" in entry and not is_parent(entry["parent"]):
            self.errors.append(own + ".parent")
        name = entry.get("name")
        if "name" in entry and not is_name(name):
            self.errors.append(own + ".name")
            name = None
        label = name
        if label is None:
            label = f"{kind}{numbers.setdefault(kind, 0)}"
            numbers[kind] += 1
        if label in used:
            self.errors.append(own + ".name" if "name" in entry else own)
        used.add(label)
        attributes = self.attributes_of(entry, own, inherited)
        if depth == 1:
            backend = name
        vertex = {"path": f"{above}/{label}", "class": kind, "size": count or 1, "backend": backend or "",
                  "attributes": dict(attributes), "types": {kind}}
        self.vertices.append(vertex)
        children = len(self.vertices)
        if "with" in entry:
            if not isinstance(entry["with"], list) or (depth == 16 and entry["with"]):
                self.errors.append(own + ".with")
            else:
                self.read_entries(entry["with"], own + ".with", vertex["path"], attributes, backend, depth + 1)
        for below in self.vertices[children:]:
            vertex["types"].add(below["class"])

    def report(self):
        vertices = []
        for vertex in self.vertices:
            properties = {"virtual=true"} | {f"class={kind}" for kind in vertex["types"]} | \
                {f"{PREFIX}{key}={value}" for key, value in vertex["attributes"].items()}
            if vertex["backend"]:
                properties.add(f"{PREFIX}backend={vertex['backend']}")
            vertices.append({key: vertex[key] for key in ("path", "class", "size", "backend", "attributes")} |
                            {"properties": sorted(properties, key=str.encode)})
        return {"vertices": vertices, "classes": sorted({vertex["class"] for vertex in vertices}),
                "environment": sorted({variable(key) for vertex in vertices for key in vertex["attributes"]})}


def variable(key):
    return "FLUXION_" + re.sub(r"[^A-Z0-9]", "_", key.upper())


def is_name(text):
    return isinstance(text, str) and 0 < len(text.encode()) <= 253 and "/" not in text and \
        not any(unicodedata.category(c) == "Cc" for c in text)


def is_parent(text):
    label = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
    return isinstance(text, str) and re.fullmatch(rf"(cluster|({label}/)?{label}(\.{label})*)", text) is not None


# ---- random documents ----

def draw_map(rng, faulty):
    values = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.choice((0, 1, 2, 3)))}
    if faulty(0.1):
        values[rng.choice(BAD_KEYS)] = "v"
    if faulty(0.1):
        values[rng.choice(KEYS)] = rng.choice(BAD_VALUES)
    if faulty(0.05):
        values |= {f"k{i}": "v" * rng.choice((1, 600)) for i in range(rng.choice((20, 60, 70)))}
    return values


def draw_entry(rng, depth, sets, faulty):
    entry = {"type": rng.choice(TYPES)}
    if rng.random() < 0.4:
        entry["name"] = rng.choice(NAMES) + ("" if faulty(0.5) else str(rng.randrange(10**6)))
    if rng.random() < 0.5:
        entry["count"] = rng.choice((0, 1, 5, 156, 1000000))
    if depth == 1 and rng.random() < 0.1:
        entry["parent"] = rng.choice(PARENTS)
    if rng.random() < 0.5:
        entry["attributes"] = rng.choice(sorted(sets)) if sets and rng.random() < 0.4 else draw_map(rng, faulty)
    if depth < 5 and rng.random() < 0.6:
        entry["with"] = [draw_entry(rng, depth + 1, sets, faulty) for _ in range(rng.randrange(4))]
    for key, bad in (("type", BAD_TYPES), ("name", BAD_NAMES), ("count", BAD_COUNTS), ("parent", BAD_PARENTS),
                     ("with", ({}, "x", 3, None)), ("attributes", (3, None, "no such set", []))):
        if faulty(0.02):
            entry[key] = rng.choice(bad)
    if faulty(0.02):
        entry["colour"] = "red"
    return entry


def draw(rng):
    is_faulty = rng.random() < 0.35
    def faulty(share):
        return is_faulty and rng.random() < share
    document = {}
    sets = {f"set{i}": draw_map(rng, faulty) for i in range(rng.choice((0, 0, 1, 2)))}
    if sets or rng.random() < 0.1:
        document["attributes"] = sets
    document["resources"] = [draw_entry(rng, 1, sets, faulty) for _ in range(rng.choice((1, 2, 3, 6)))]
    if faulty(0.05):
        document["resources"] = rng.choice(([], None, {}, "x", [3]))
    if faulty(0.05):
        document["qpus"] = []
    if rng.random() < 0.06:
        entry = {"type": "deep"}
        for _ in range(rng.choice((14, 15, 16))):
            entry = {"type": "deep", "with": [entry]}
        document["resources"] = [entry]
    return document


def as_yaml(value, indent=0):
    """Blocks, with each scalar as JSON has it."""
    blanks = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(f"\n{blanks}{json.dumps(key)}: {as_yaml(item, indent + 1)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{blanks}- {as_yaml(item, indent + 1)}" for item in value)
    return json.dumps(value)


# ---- both ----

def ask(program, path):
    parents = ["--nodes", path.parent / "parents", "--proplets", path.parent / "parents"]
    answer = subprocess.run([program, "check", path, *parents], capture_output=True, text=True, check=False)
    if answer.returncode == 0:
        return json.loads(answer.stdout)
    if answer.returncode != 1:
        sys.exit(f"graphs: {path.read_text()}\n{answer.stderr}")
    lines = answer.stdout.splitlines()
    more = re.fullmatch(r"and (\d+) more", lines[-1])
    paths = [line.split(": ")[0] for line in lines[:len(lines) - bool(more)]]
    return {"errors": len(paths) + (int(more[1]) if more else 0), "paths": sorted(paths)}


def expected(document):
    checked = Checked(document)
    if checked.errors:
        return {"errors": len(checked.errors), "paths": sorted(checked.errors)}
    return checked.report()


def is_same(ours, theirs):
    if "errors" in theirs and theirs["errors"] > 64:
        return ours.get("errors") == theirs["errors"]
    return ours == theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    differences = faults = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "resources.yaml"
        (path.parent / "parents").write_text(
            "{kind: Node, metadata: {name: node-1.example}}\n---\n"
            "{kind: Proplet, metadata: {namespace: lab, name: attic}}\n")
        for number in range(arguments.count):
            document = draw(rng)
            text = json.dumps(document, ensure_ascii=rng.random() < 0.5) if number % 2 else as_yaml(document)
            path.write_text(text, encoding="utf-8")
            ours, theirs = ask(arguments.program, path), expected(document)
            faults += "errors" in theirs
            if not is_same(ours, theirs):
                differences += 1
                print(f"different: {text}\n  here  {json.dumps(ours)}\n  other {json.dumps(theirs)}")
    print(f"graphs: {arguments.count} files, {faults} with faults, {differences} differences, seed {arguments.seed}")
    if "TEST_TALLY" in os.environ:
        with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as tally:
            tally.write(f"graphs {arguments.count - differences} {differences}\n")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
