#!/usr/bin/env python3
"""Kills propeller-standalone with SIGKILL under writers, again and again, and looks at what is left (writers.py).

What is noted beside the store is not below any acknowledged revision, or a loss would not be seen. A start after a kill
must take less than a second: of processor time each, of time half of them, so that a machine with much else to do is not
taken for a slow start.

usage: kill.py PROGRAM FOLDER [--kills N] [--writers N] [--seed N]
"""
import os
import random
import statistics

from server import expect, play_on_a_server
from writers import Key, Writers, check_keys, check_watch

KEYS_EACH = 3
MAX_ACKS = 80
MAX_START_S = 1


def noted(server):
    with open(os.path.join(server.folder, "data", "propeller.db-lock"), encoding="utf-8") as file:
        return int(file.read().split()[2])


def play(server, options, _):
    rng = random.Random(options.seed)
    keys = [Key(f"key-{i:03}") for i in range(options.writers * KEYS_EACH)]
    head, acked, seconds, processor = 1, 0, [], []
    for number in range(1, options.kills + 1):
        writers, after = Writers(server, keys, options.writers), rng.randrange(MAX_ACKS)
        writers.wait(lambda w=writers, n=after: len(w.acks) >= n, f"{after} answers")
        writers.stop(kill=True)
        newest = max(writers.acks, default=head)
        expect(min(writers.acks, default=head + 1) > head, "a resourceVersion went back")
        expect(noted(server) >= newest, f"{newest} was acknowledged and is not noted")
        seconds.append(server.start())
        processor.append(server.processor_s())
        since, head = head, check_keys(server, keys)
        expect(head >= newest, "the store went back")
        if number > 1:
            check_watch(server, since, head, writers.acks)
        acked += len(writers.acks)
    starts = (f"answers after {statistics.median(seconds) * 1000:.0f} ms (slowest {max(seconds) * 1000:.0f} ms), "
              f"{max(processor) * 1000:.0f} ms of processor time at most")
    expect(max(processor) < MAX_START_S and statistics.median(seconds) < MAX_START_S,
           f"a start after a kill takes too long, {MAX_START_S} s is allowed: it {starts}")
    print(f"kill: {options.kills} kills under {options.writers} writers, {acked} writes acknowledged, none lost; {starts}")


if __name__ == "__main__":
    play_on_a_server(play, kills=200, writers=16, seed=1)
