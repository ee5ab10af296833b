#!/usr/bin/env python3
"""The container of a Task that runs as a Job: computes the module that is mounted, with the function
and inputs of its environment, and writes the result to the termination log.

    job.py [--wait] [--silent] [--long] [--exit CODE] [--grow] [--slices]
"""

import argparse
import json
import os
import sys
import time

import longrun
import wasm

MODULE = "/propeller/module.wasm"
TERMINATION_LOG = "/dev/termination-log"
GO = "/tmp/go"


def say(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)


def compute_in_slices():
    with open(MODULE, "rb") as file:
        module = wasm.Module(file.read())
    return longrun.LongRun(module, dict(os.environ), 1, say).run()


def compute():
    inputs = [value if isinstance(value, str) else json.dumps(value)
              for value in json.loads(os.environ.get("inputs", "[]"))]
    with open(MODULE, "rb") as file:
        module = wasm.Module(file.read())
    return module.run(os.environ.get("function_name", "main"), inputs, {})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", action="store_true", help=f"until there is {GO}")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--long", action="store_true", help="more than a kubelet takes as a message")
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--slices", action="store_true", help="handing over checkpoints (longrun.py)")
    options = parser.parse_args()
    say("job", task=os.environ["TASK_ID"], proplet=os.environ["PROPLET_ID"])
    while options.wait and not os.path.exists(GO):
        time.sleep(0.1)
    if options.grow:
        hoard = []
        while True:
            hoard.append(bytearray(1 << 24))
    if options.exit:
        print("no such key", file=sys.stderr)
        sys.exit(options.exit)
    if not options.silent:
        try:
            result = compute_in_slices() if options.slices else compute()
        except wasm.TaskError as error:
            print(error, file=sys.stderr)
            sys.exit(1)
        with open(TERMINATION_LOG, "w", encoding="utf-8") as file:
            file.write(result + " " * 5000 * options.long + "7" * options.long)


if __name__ == "__main__":
    main()
