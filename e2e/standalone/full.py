#!/usr/bin/env python3
"""Fills the disk under propeller-standalone while writers are at work, again and again, and looks at what is left
(writers.py).

While it is full each write is refused with a Status that says so and is not there afterwards; reads, lists and
watches go on, also after kill -9. When there is room again writes go on by themselves, and everything that was
acknowledged is there. Runs in a mount namespace of its own (`unshare --mount`), where FOLDER becomes a small disk.

usage: full.py PROGRAM FOLDER [--rounds N] [--writers N] [--seed N]
"""
import json
import os
import random
import subprocess

from server import PATH, PATIENCE_S, expect, play_on_a_server
from writers import Key, Writers, check_keys, check_watch

DISK_MIB = 24
KEYS_EACH = 2
EACH = 10  # refusals and acknowledged writes of each writer


class Disk:
    def __init__(self, folder):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", folder], check=True)
        self.folder, self.filler = folder, os.path.join(folder, "filler")

    def fill(self, leave=0):
        """All but so many bytes, at this moment."""
        room = os.statvfs(self.folder)
        left = room.f_bavail * room.f_bsize - leave
        try:
            with open(self.filler, "ab", buffering=0) as file:
                while left > 0 or not leave:
                    left -= file.write(b"x" * min(max(left, 4096), 65536))
        except OSError:
            pass  # it is full

    def free(self):
        os.unlink(self.filler)


def fill_under(disk, writers):
    """Small writes find room for a while that a large one did not: until all are refused."""
    before = -1
    while sum(writers.acks_of) != before:
        disk.fill()
        before = sum(writers.acks_of)
        writers.wait_each(writers.refusals_of, EACH)


def read_while_full(server, keys):
    """What users see while the writers are refused."""
    connection = server.connect()
    for path in (PATH, f"{PATH}/{keys[0].name}", "/readyz?verbose", "/version", "/api/v1/namespaces"):
        response = connection.call("GET", path)
        text = response.read()
        expect(response.status in (200, 404), f"GET {path} on a full disk: {response.status} {text[:200]}")


def play_round(server, disk, keys, options, rng, head):
    """One round; returns the newest revision, how many writes were acknowledged and refused."""
    before = Writers(server, keys, options.writers)
    before.wait_each(before.acks_of, EACH)
    disk.fill(rng.choice([1, 5000, 70000, 300000]))
    fill_under(disk, before)
    read_while_full(server, keys)
    before.stop()
    full_at = check_keys(server, keys)
    disk.fill()
    server.kill()
    server.start()
    expect(check_keys(server, keys) == full_at, "another revision after kill -9 on a full disk")
    check_watch(server, head, full_at, before.acks)
    events = server.connect().watch(full_at, timeoutSeconds=PATIENCE_S)
    after = Writers(server, keys, options.writers)
    after.wait_each(after.refusals_of, EACH)
    disk.free()
    after.wait_each(after.acks_of, EACH)
    event = json.loads(events.readline())
    expect(event["type"] != "ERROR", f"a watch that was open while the disk was full: {event}")
    after.stop()
    now = check_keys(server, keys)
    check_watch(server, head, now, {**before.acks, **after.acks})
    return now, len(before.acks) + len(after.acks), sum(before.refusals_of + after.refusals_of)


def play(server, options, disk):
    rng = random.Random(options.seed)
    keys = [Key(f"key-{i:03}") for i in range(options.writers * KEYS_EACH)]
    head, acked, refused = 1, 0, 0
    for _ in range(options.rounds):
        head, acks, refusals = play_round(server, disk, keys, options, rng, head)
        acked, refused = acked + acks, refused + refusals
    print(f"full: {options.rounds} full disks under {options.writers} writers and kill -9, {acked} writes acknowledged, "
          f"none lost, {refused} refused, none of them written")


if __name__ == "__main__":
    play_on_a_server(play, Disk, rounds=4, writers=6, seed=1)
