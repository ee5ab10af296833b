#!/usr/bin/env python3
"""Holds the aggregators of federated learning against their definitions written down in NumPy.

Updates of random shapes, sizes and formats, with ties, one participant and 10^6 parameters, go as files
through the same code that reads a device's envelope (bench/aggregate). What is not finite must be refused
and the participant named. Then a regression is trained with hostile participants, by this program for every
step of which the aggregation is done there: the table of docs/explanation/federated.md.
"""

import argparse
import base64
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

LARGE = 1_000_000
# Of the result against NumPy's; fedavg is compared with a sum of exact fractions where it is small.
TOLERANCE = 1e-12
HOSTILE_ROUNDS = 40
CLIENTS, HOSTILE = 20, 4
TABLE_SEED = 1  # the table is the same on every run


class Refused(Exception):
    pass


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def __call__(self, aggregator, envelopes, base=None):
        files = [self.write(f"update-{i}", text) for i, text in enumerate(envelopes)]
        base = "-" if base is None else self.write("base", base)
        done = subprocess.run([self.path, json.dumps(aggregator), base, *files],
                              capture_output=True, check=False)
        if done.returncode:
            raise Refused(done.stderr.decode())
        return done.stdout


# ---- the definitions ----

def fedavg(rows, samples, _config):
    """McMahan et al. 2017."""
    return np.average(rows, axis=0, weights=samples)


def median(rows, _samples, _config):
    """Yin et al. 2018, Definition 1."""
    return np.median(rows, axis=0)


def trimmed_mean(rows, _samples, config):
    """Yin et al. 2018, Definition 2."""
    count = len(rows)
    cut = min(int(config.get("trim", 0.2) * count + 1e-9), (count - 1) // 2)
    return np.sort(rows, axis=0)[cut:count - cut].mean(axis=0)


def krum(rows, _samples, config):
    """Blanchard et al. 2017, section 4."""
    count = len(rows)
    hostile = min(config.get("byzantine", count), max(0, (count - 3) // 2))
    nearest = count - hostile - 2 if count > hostile + 2 else count - 1
    scores = []
    for i in range(count):
        distances = sorted(float(((rows[i] - rows[j]) ** 2).sum()) for j in range(count) if j != i)
        scores.append(math.fsum(distances[:nearest]))
    # sums that differ by rounding alone are equal
    least = min(scores)
    return rows[next(i for i, score in enumerate(scores) if score <= least * (1 + 1e-13))]


DEFINITIONS = {"fedavg": fedavg, "median": median, "trimmed-mean": trimmed_mean, "krum": krum}


# ---- updates, in the forms that devices send ----

def as_text(row, shape):
    """The row as JSON of that shape: a list of (name, dimensions), or None for one array."""
    if shape is None:
        return json.dumps(row.tolist())
    document, at = {}, 0
    for name, dimensions in sorted(shape):
        size = math.prod(dimensions)
        part = row[at:at + size].reshape(dimensions) if dimensions else row[at]
        document[name] = part.tolist()
        at += size
    names = list(document)
    return json.dumps({name: document[name] for name in reversed(names)})


def envelope(rng, text, samples):
    encoded = base64.b64encode(text.encode()).decode()
    form = rng.integers(5)
    if form == 0:
        return json.dumps({"format": "json-f64", "metrics": {}, "num_samples": samples, "round_id": "x",
                           "task_id": "t", "update_b64": encoded})
    if form == 1:
        return f'{{"num_samples":{samples},"update":{text}}}'
    if form == 2:
        return json.dumps(json.dumps({"num_samples": samples, "update_b64": encoded}))
    if form == 3:
        return json.dumps({"update_envelope": {"num_samples": samples, "update_b64": encoded}})
    inner = base64.b64encode(f'{{"num_samples":{samples},"update":{text}}}'.encode()).decode()
    return json.dumps({"format": "f32-delta", "num_samples": 1, "update_b64": inner})


def flat(document):
    if isinstance(document, dict):
        return np.concatenate([flat(document[name]) for name in sorted(document)])
    return np.asarray(document, dtype=np.float64).reshape(-1)


def draw_rows(rng, count, length):
    kind = rng.integers(5)
    if kind == 0:  # ties in every coordinate
        return rng.integers(-2, 3, (count, length)).astype(np.float64)
    if kind == 1:  # all the same
        return np.repeat(rng.normal(size=(1, length)), count, axis=0)
    if kind == 2:  # what cancels out
        return rng.normal(size=(count, length)) * 10.0 ** rng.integers(-12, 13, (count, length))
    if kind == 3:
        return rng.normal(size=(count, length)) * 1e-200
    return rng.normal(size=(count, length))


def draw_shape(rng):
    if rng.random() < 0.4:
        return None, int(rng.integers(1, 40))
    shape = [(name, tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 3))))
             for name in rng.permutation(["w", "b", "layer 1", "z\u00e9"])[:rng.integers(1, 5)]]
    return shape, sum(math.prod(dimensions) for _, dimensions in shape)


def exact_mean(rows, samples):
    """Of integers: every double is one, times a power of two."""
    from fractions import Fraction
    total = sum(samples)
    return np.array([float(sum(Fraction(float(x)) * s for x, s in zip(column, samples)) / total)
                     for column in rows.T])


def close(ours, theirs, scale):
    return np.all(np.abs(ours - theirs) <= TOLERANCE * scale + 1e-308)


def compare_random(program, rng, count):
    wrong = 0
    for number in range(count):
        algorithm = sorted(DEFINITIONS)[number % len(DEFINITIONS)]
        participants = 1 if rng.random() < 0.1 else int(rng.integers(1, 16))
        shape, length = draw_shape(rng)
        rows = draw_rows(rng, participants, length)
        samples = [int(s) for s in rng.integers(1, 100000, participants)]
        config = {"trim": float(rng.choice([0, 0.1, 0.2, 0.25, 0.49])), "byzantine": int(rng.integers(0, 6))}
        envelopes = [envelope(rng, as_text(row, shape), s) for row, s in zip(rows, samples)]
        output = program({"algorithm": algorithm, "config": config}, envelopes)
        ours = flat(json.loads(output))
        theirs = DEFINITIONS[algorithm](rows, samples, config)
        good = close(ours, theirs, np.abs(rows).max(axis=0))
        if algorithm == "fedavg" and np.abs(rows).max() > 1e-100:  # one unit in the last place
            exact = exact_mean(rows, samples)
            good = bool(np.all(np.abs(ours - exact) <= np.spacing(np.abs(exact))))
        if not good:
            wrong += 1
            print(f"different: {algorithm} {config} of {participants} x {length}\n  here  {ours}\n  NumPy {theirs}")
    return count, wrong


def compare_large(program, rng):
    wrong = 0
    rows = rng.normal(size=(5, LARGE))
    samples = [64, 1, 999, 17, 300]
    envelopes = [f'{{"num_samples":{s},"update":{as_text(row, None)}}}' for row, s in zip(rows, samples)]
    for algorithm, definition in DEFINITIONS.items():
        ours = flat(json.loads(program({"algorithm": algorithm}, envelopes)))
        if not close(ours, definition(rows, samples, {}), np.abs(rows).max(axis=0)):
            wrong += 1
            print(f"different: {algorithm} of {LARGE} parameters")
    return len(DEFINITIONS), wrong


def concat(payloads):
    """Of the Go operator: aggregation.go, aggregateConcat."""
    delimiter = np.frombuffer(b"\n---PROP-UPDATE---\n", dtype=np.uint8)
    parts = [part for payload in payloads for part in (delimiter, payload)]
    return np.concatenate(parts[1:]).tobytes()


def opaque_envelope(rng, payload, samples):
    """What is in base64 is taken as it is, also if it looks like an envelope."""
    encoded = base64.b64encode(payload.tobytes()).decode()
    plain = {"format": "any", "num_samples": samples, "update_b64": encoded}
    form = rng.integers(3)
    if form == 0:
        return json.dumps(plain)
    if form == 1:
        return json.dumps(json.dumps(plain))
    return json.dumps({"update_envelope": plain, "num_samples": 1})


def draw_payload(rng):
    kind = rng.integers(4)
    if kind == 0:  # any bytes, NUL and delimiters' among them
        return rng.integers(0, 256, int(rng.integers(1, 300))).astype(np.uint8)
    if kind == 1:
        return np.frombuffer(b"\n---PROP-UPDATE---\n" * int(rng.integers(1, 3)), dtype=np.uint8)
    if kind == 2:
        return np.frombuffer(b'{"update":[1,2],"num_samples":7}', dtype=np.uint8)
    return rng.normal(size=int(rng.integers(1, 20))).astype("<f4").view(np.uint8)


def compare_concat(program, rng, count):
    wrong = 0
    for _ in range(count):
        payloads = [draw_payload(rng) for _ in range(rng.integers(1, 9))]
        envelopes = [opaque_envelope(rng, payload, int(rng.integers(1, 100))) for payload in payloads]
        if program({"algorithm": "concat"}, envelopes) != concat(payloads):
            wrong += 1
            print(f"different: concat of {[payload.tobytes() for payload in payloads]}")
    large = [rng.normal(size=LARGE).view(np.uint8) for _ in range(3)]
    wrong += program({"algorithm": "concat"}, [opaque_envelope(rng, part, 1) for part in large]) != concat(large)
    return count + 1, wrong


def compare_deltas(program, rng):
    """f32-delta: binary, binary in base64 once more, JSON; all added to the base."""
    base = rng.normal(size=12)
    rows = rng.normal(size=(3, 12)).astype("<f4")
    raw = [rows[0].tobytes(), base64.b64encode(rows[1].tobytes()),
           json.dumps([float(x) for x in rows[2]]).encode()]
    envelopes = [json.dumps({"format": "f32-delta", "num_samples": 2, "update_b64": base64.b64encode(r).decode()})
                 for r in raw]
    ours = flat(json.loads(program({"algorithm": "fedavg"}, envelopes, json.dumps(base.tolist()))))
    good = close(ours, base + rows.astype(np.float64).mean(axis=0), 10)
    return 1, 0 if good else 1


def compare_refused(program):
    """Not finite, or of another shape: refused, and the participant named, with every algorithm."""
    fine = '{"num_samples":1,"update":[1,2]}'
    bad = ['{"num_samples":1,"update":[1,NaN]}', '{"num_samples":1,"update":[Infinity,1]}',
           '{"num_samples":1,"update":[1e999,1]}', '{"num_samples":1,"update":[1,null]}',
           '{"num_samples":1,"update":[1,2,3]}', '{"num_samples":0,"update":[1,2]}']
    cases = [(algorithm, text) for algorithm in DEFINITIONS for text in bad]
    wrong = 0
    for algorithm, text in cases:
        try:
            program({"algorithm": algorithm}, [fine, text, fine])
        except Refused as refused:
            if "refused 1:" in str(refused):
                continue
        wrong += 1
        print(f"not refused by {algorithm}: {text}")
    return len(cases), wrong


# ---- hostile participants ----

def make_data(rng, length, count):
    truth = rng.normal(size=length)
    x = rng.normal(size=(count, length))
    y = (x @ truth + 0.5 * rng.normal(size=count) > 0).astype(np.float64)
    return x, y


def train(weights, x, y, steps=5, rate=0.5):
    weights = weights.copy()
    for _ in range(steps):
        predicted = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        weights -= rate * x.T @ (predicted - y) / len(y)
    return weights


def accuracy(weights, x, y):
    return float(((x @ weights > 0) == (y > 0.5)).mean())


ATTACKS = {
    "none": lambda rng, honest, base: honest,
    "sign flipped, 10 times": lambda rng, honest, base: base - 10 * (honest - base),
    "noise": lambda rng, honest, base: base + 20 * rng.normal(size=base.shape),
    "huge": lambda rng, honest, base: np.full(base.shape, -1e6),
}


def poisoned(program, rng, algorithm, attack):
    length = 20
    # each its own part of the data, unevenly labelled: not identically distributed
    x, y = make_data(rng, length, 6000)
    order = np.argsort(y + rng.normal(size=len(y)) * 2)
    parts = np.array_split(order[:4000], CLIENTS)
    test = rng.permutation(6000)[:2000]
    weights = np.zeros(length)
    for _ in range(HOSTILE_ROUNDS):
        envelopes = []
        for client, part in enumerate(parts):
            row = train(weights, x[part], y[part])
            if client >= CLIENTS - HOSTILE:
                row = ATTACKS[attack](rng, row, weights)
            envelopes.append(f'{{"num_samples":{len(part)},"update":{as_text(row, None)}}}')
        weights = flat(json.loads(program({"algorithm": algorithm, "config": {"byzantine": HOSTILE}}, envelopes)))
    return accuracy(weights, x[test], y[test])


def table(program):
    """Rows of attacks, columns of algorithms; all on the same data."""
    result = {attack: {algorithm: poisoned(program, np.random.default_rng(TABLE_SEED), algorithm, attack)
                       for algorithm in DEFINITIONS} for attack in ATTACKS}
    print(f"| {HOSTILE} of {CLIENTS} participants | " + " | ".join(DEFINITIONS) + " |")
    print("|---|" + "---:|" * len(DEFINITIONS))
    for attack, row in result.items():
        print(f"| {attack} | " + " | ".join(f"{100 * row[algorithm]:.1f} %" for algorithm in DEFINITIONS) + " |")
    clean = result["none"]
    wrong = sum(clean[algorithm] < 0.85 for algorithm in DEFINITIONS)
    for attack in list(ATTACKS)[1:]:
        wrong += result[attack]["fedavg"] > clean["fedavg"] - 0.15  # suffers
        for algorithm in list(DEFINITIONS)[1:]:
            wrong += result[attack][algorithm] < clean[algorithm] - 0.05  # holds
    return len(ATTACKS) * len(DEFINITIONS), int(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.program, folder)
        parts = [compare_random(program, rng, arguments.count), compare_large(program, rng),
                 compare_concat(program, rng, arguments.count // 4), compare_deltas(program, rng), compare_refused(program), table(program)]
    done, wrong = (sum(column) for column in zip(*parts))
    print(f"aggregators: {done} comparisons, {wrong} differences, seed {arguments.seed}")
    if "TEST_TALLY" in os.environ:
        with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as tally:
            tally.write(f"aggregators {done - wrong} {wrong}\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
