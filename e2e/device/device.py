#!/usr/bin/env python3
"""A test device: speaks MQTT as the real Linux proplet does and runs WebAssembly for real.

One process holds any number of identities, each with a connection of its own. What it did is
written to the journal, one JSON object a line. Lines written to the control pipe change how it
behaves: `VERB IDENTITY [ARGUMENT]`, where IDENTITY may be `*`:
  mute | unmute        stop and resume heartbeats
  hold [training]      keep results back, or those of federated learning alone
  release              send what was kept back
  reply JSON|default   send this instead of what the module computed
  drop INDEX           lose the next part of a module with this index
"""

import argparse
import json
import os
import selectors
import signal
import sys
import time

from loop import Loop
from proplet import Proplet
from scripted import ScriptedProplet


class Journal:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8", buffering=1) if path else sys.stdout

    def write(self, identity, event, **fields):
        line = {"time": round(time.time(), 6), "device": identity, "event": event, **fields}
        print(json.dumps(line), file=self.file, flush=True)


class ControlPipe:
    """Reads whole lines; held open for writing too, so that writers may come and go."""

    def __init__(self, path, loop, proplets, journal):
        self.proplets, self.journal, self.rest = proplets, journal, b""
        self.file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        loop.watch(self.file, selectors.EVENT_READ, self._readable)

    def _readable(self, _events):
        *lines, self.rest = (self.rest + os.read(self.file, 65536)).split(b"\n")
        for line in lines:
            self._obey(line.decode())

    def _obey(self, line):
        verb, who, argument = (line.split(" ", 2) + ["", ""])[:3]
        try:
            for proplet in self.proplets if who == "*" else [self._find(who)]:
                proplet.control(verb, argument)
            self.journal.write(who, "control", line=line)
        except (KeyError, ValueError) as error:
            self.journal.write(who, "bad-control", line=line, error=str(error))

    def _find(self, identity):
        for proplet in self.proplets:
            if proplet.identity == identity:
                return proplet
        raise KeyError(identity)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", required=True, metavar="HOST:PORT")
    parser.add_argument("--tls-ca", metavar="FILE")
    parser.add_argument("--domain", required=True)
    parser.add_argument("--channel", required=True, help="{id} stands for the identity")
    parser.add_argument("--identity", action="append", default=[])
    parser.add_argument("--identity-file", help="one identity a line")
    parser.add_argument("--count", type=int, default=0, help="PREFIX-1 ... PREFIX-COUNT")
    parser.add_argument("--prefix", default="device")
    parser.add_argument("--passwords", required=True, metavar="FILE", help="lines identity:secret")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--description")
    parser.add_argument("--tags", type=lambda text: [tag.strip() for tag in text.split(",")])
    parser.add_argument("--location")
    parser.add_argument("--qos", type=int, default=2, choices=(0, 1, 2))
    parser.add_argument("--alive-interval", type=float, default=10)
    parser.add_argument("--metrics-interval", type=float, default=10, help="0: off")
    parser.add_argument("--reconnect-max", type=float, default=60)
    parser.add_argument("--no-task-metrics", action="store_true")
    parser.add_argument("--last-will", action="store_true", help="as the microcontroller has one")
    parser.add_argument("--reply", help="JSON sent as every result")
    parser.add_argument("--result-delay", type=float, default=0)
    parser.add_argument(
        "--external-runtime", action="store_true", help="results are what modules print"
    )
    parser.add_argument("--slice-pause", type=float, default=0, help="seconds between slices of a long run")
    parser.add_argument("--coordinators", default=[], type=lambda text: text.split(","), metavar="HOST:PORT,...",
                        help="of scripted devices: one of them takes checkpoints, in place of a Service that finds it")
    parser.add_argument("--scripted", action="store_true", help="pretend to run wasm/nap.wat")
    parser.add_argument("--journal", metavar="FILE")
    parser.add_argument("--control", metavar="FIFO")
    options = parser.parse_args()
    host, _, port = options.broker.rpartition(":")
    options.host, options.port = host, int(port)
    return options


def identities(options):
    names = list(options.identity)
    if options.identity_file:
        with open(options.identity_file, encoding="utf-8") as file:
            names += file.read().split()
    names += [f"{options.prefix}-{number}" for number in range(1, options.count + 1)]
    return names


def read_passwords(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":", 1) for line in file)


def main():
    options = parse_arguments()
    loop, journal = Loop(), Journal(options.journal)
    passwords = read_passwords(options.passwords)
    make = ScriptedProplet if options.scripted else Proplet
    proplets = [
        make(loop, journal, options, identity, passwords[identity])
        for identity in identities(options)
    ]
    if options.control:
        ControlPipe(options.control, loop, proplets, journal)
    # As the real one: SIGTERM ends it at once, and nothing is published.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    for proplet in proplets:
        proplet.start()
    loop.run()


if __name__ == "__main__":
    main()
