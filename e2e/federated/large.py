#!/usr/bin/env python3
"""Updates that are larger than a module of the tests makes, and what their model must be.

large.py make LENGTH SEED                 a JSON array of so many numbers
large.py mean FILE SAMPLES:FILE...        fails if the model in FILE is not the mean of the updates,
                                            weighted by their samples, to 1e-12
"""

import json
import sys

import numpy

TOLERANCE = 1e-12


def read(path):
    with open(path, encoding="utf-8") as file:
        return numpy.array(json.load(file), dtype=numpy.float64)


def main():
    if sys.argv[1] == "make":
        values = numpy.random.default_rng(int(sys.argv[3])).normal(size=int(sys.argv[2]))
        json.dump(values.tolist(), sys.stdout, separators=(",", ":"))
        return
    updates = [argument.split(":", 1) for argument in sys.argv[3:]]
    model = read(sys.argv[2])
    mean = numpy.average([read(path) for _, path in updates], axis=0,
                         weights=[int(samples) for samples, _ in updates])
    if model.shape != mean.shape:
        sys.exit(f"the model has {model.shape} numbers, its updates {mean.shape}")
    difference = float(numpy.max(numpy.abs(model - mean)))
    if not difference <= TOLERANCE:
        sys.exit(f"the model differs by {difference} from the mean")
    print(f"{len(model)} numbers, largest difference from NumPy {difference:.1e}")


if __name__ == "__main__":
    main()
