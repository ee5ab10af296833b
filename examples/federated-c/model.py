#!/usr/bin/env python3
"""Converts models between the file of a FederatedJob and arrays, and draws how its loss falls.

    model.py pack WEIGHTS MODEL      WEIGHTS is .npz (NumPy) or .pt (a state dictionary of PyTorch)
    model.py unpack MODEL WEIGHTS    the arrays of a model, by their names
    model.py chart ROUNDS            of `kubectl propeller rounds JOB -o json`, a line a round

A model is JSON: an object with an array for each name, or one array, whose name is then "model".
"""

import json
import sys

import numpy as np

WIDTH = 60


def read_weights(path):
    if path.endswith(".pt"):
        import torch  # only needed here, and large

        return {name: tensor.numpy() for name, tensor in torch.load(path, weights_only=True).items()}
    with np.load(path) as arrays:
        return dict(arrays)


def write_weights(path, arrays):
    if path.endswith(".pt"):
        import torch

        torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, path)
    else:
        np.savez(path, **arrays)


def pack(weights, model):
    values = {name: array.astype(float).tolist() for name, array in read_weights(weights).items()}
    with open(model, "w", encoding="ascii") as file:
        json.dump(values if list(values) != ["model"] else values["model"], file)


def unpack(model, weights):
    with open(model, encoding="utf-8") as file:
        values = json.load(file)
    if isinstance(values, list):
        values = {"model": values}
    write_weights(weights, {name: np.asarray(value, dtype=np.float64) for name, value in values.items()})


def chart(rounds):
    with open(rounds, encoding="utf-8") as file:
        losses = [(item["round"], item["means"]["loss"]) for item in json.load(file)["rounds"]
                  if "loss" in item.get("means", {})]
    highest = max((loss for _, loss in losses), default=1) or 1
    for name, loss in losses:
        print(f"{name:20} {loss:10.4f} {'#' * round(WIDTH * loss / highest)}")


COMMANDS = {"pack": (pack, 2), "unpack": (unpack, 2), "chart": (chart, 1)}


def main(arguments):
    function, count = COMMANDS.get(arguments[0] if arguments else "", (None, 0))
    if not function or len(arguments) != count + 1:
        sys.exit(__doc__)
    function(*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
