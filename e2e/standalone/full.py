#!/usr/bin/env python3
"""Fills the disk under propeller-standalone while writers are at work, again and again, and looks at what is left.

While it is full each write is refused with a Status that says so and is not there afterwards; reads, lists and
watches go on, also after kill -9. When there is room again writes go on by themselves, and everything that was
acknowledged is there. Runs in a mount namespace of its own (`unshare --mount`), where FOLDER becomes a small disk.

usage: full.py PROGRAM FOLDER [--rounds N] [--writers N] [--seed N]
"""
import http.client
import json
import os
import random
import subprocess
import threading
import time

from kill import Key, acknowledge, check_keys, check_watch, write_once
from server import PATH, PATIENCE_S, expect, play_on_a_server

DISK_MIB = 24
KEYS_EACH = 2
REFUSALS_EACH = 10
WRITES_EACH = 10
NO_SPACE = "no space left on the disk"


class Tally:
    """What the writers were told since it was made."""

    def __init__(self):
        self.changed = threading.Condition()
        self.acks = {}
        self.acks_of, self.refusals_of = {}, {}
        self.failure = None

    def count(self, of, writer):
        with self.changed:
            of[writer] = of.get(writer, 0) + 1
            self.changed.notify_all()

    def fail(self, message):
        with self.changed:
            self.failure = self.failure or message
            self.changed.notify_all()

    def wait(self, name, writers, count):
        """Until each writer has that many acks or refusals more."""
        of = getattr(self, name)
        with self.changed:
            goal = {writer: of.get(writer, 0) + count for writer in range(writers)}
            done = self.changed.wait_for(
                lambda: self.failure or all(of.get(writer, 0) >= least for writer, least in goal.items()), PATIENCE_S)
            expect(not self.failure, self.failure)
            expect(done, f"the writers do not get {count} {name}: {of}")


def check_refusal(status, reply):
    expect(status == 503 and reply["kind"] == "Status" and reply["status"] == "Failure"
           and reply["reason"] == "ServiceUnavailable" and reply["code"] == 503 and NO_SPACE in reply["message"],
           f"a write is refused with {status} {reply}")


def write_and_count(connection, key, tally, writer):
    status, reply = write_once(connection, key)
    if status not in (200, 201):
        check_refusal(status, reply)
        key.asked = None  # it was not written at all
        tally.count(tally.refusals_of, writer)
        return
    if acknowledge(key, reply):
        with tally.changed:
            tally.acks[key.revision] = (key.name, key.acked)
    tally.count(tally.acks_of, writer)


class Writers:
    """They write until they are told to stop; each has keys of its own."""

    def __init__(self, server, keys, count, tally):
        self.server, self.tally = server, tally
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._write, args=(i, keys[i::count])) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _write(self, number, keys):
        try:
            connection = self.server.connect()
            while not self.stopping.is_set():
                for key in keys:
                    write_and_count(connection, key, self.tally, number)
        except (OSError, http.client.HTTPException, ValueError, SystemExit) as failure:
            self.tally.fail(f"a writer: {failure!r}")

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        expect(not self.tally.failure, self.tally.failure)


class Disk:
    def __init__(self, folder):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", folder], check=True)
        self.folder = folder
        self.filler = os.path.join(folder, "filler")

    def fill(self, leave):
        """All but so many bytes, at this moment."""
        room = os.statvfs(self.folder)
        try:
            with open(self.filler, "wb", buffering=0) as file:
                left = room.f_bavail * room.f_bsize - leave
                while left > 0:
                    left -= file.write(b"x" * min(left, 65536))
        except OSError:
            pass  # it is full

    def top_up(self):
        """Nothing is left, whatever was freed meanwhile."""
        try:
            with open(self.filler, "ab", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
        except OSError:
            pass

    def free(self):
        os.unlink(self.filler)


def read_while_full(server, keys):
    """What users see while the writers are refused."""
    connection = server.connect()
    for path in (PATH, f"{PATH}/{keys[0].name}", "/readyz?verbose", "/version", "/api/v1/namespaces"):
        response = connection.call("GET", path)
        text = response.read()
        expect(response.status in (200, 404), f"GET {path} on a full disk: {response.status} {text[:200]}")


def play_round(server, disk, keys, options, rng, head):
    """One round; returns the newest revision, how many writes were acknowledged and refused."""
    tally = Tally()
    writers = Writers(server, keys, options.writers, tally)
    tally.wait("acks_of", options.writers, WRITES_EACH)
    disk.fill(rng.choice([0, 5000, 70000, 300000]))
    disk_is_full(disk, tally, options.writers)
    read_while_full(server, keys)
    writers.stop()
    full_at = check_keys(server, keys)
    check_watch(server, head, full_at, tally.acks)
    disk.top_up()
    server.kill()
    server.start()
    expect(check_keys(server, keys) == full_at, "another revision after kill -9 on a full disk")
    check_watch(server, head, full_at, tally.acks)
    watching = server.connect()
    events = watching.watch(full_at, timeoutSeconds=PATIENCE_S)
    writers = Writers(server, keys, options.writers, tally)
    tally.wait("refusals_of", options.writers, REFUSALS_EACH)
    disk.free()
    began = time.monotonic()
    tally.wait("acks_of", options.writers, WRITES_EACH)
    went_on = time.monotonic() - began
    event = json.loads(events.readline())
    expect(event["type"] != "ERROR", f"a watch that was open while the disk was full: {event}")
    watching.close()
    writers.stop()
    now = check_keys(server, keys)
    check_watch(server, head, now, tally.acks)
    return now, sum(tally.acks_of.values()), sum(tally.refusals_of.values()), went_on


def disk_is_full(disk, tally, writers):
    """Small writes find room for a while that a large one did not: until all are refused."""
    while True:
        disk.top_up()
        before = sum(tally.acks_of.values())
        tally.wait("refusals_of", writers, REFUSALS_EACH)
        if sum(tally.acks_of.values()) == before:
            return


def play(server, options, disk):
    rng = random.Random(options.seed)
    keys = [Key(f"key-{i:03}") for i in range(options.writers * KEYS_EACH)]
    head, acked, refused, slowest = 1, 0, 0, 0
    for _ in range(options.rounds):
        head, acks, refusals, went_on = play_round(server, disk, keys, options, rng, head)
        acked, refused, slowest = acked + acks, refused + refusals, max(slowest, went_on)
    print(f"full: {options.rounds} full disks under {options.writers} writers and kill -9, {acked} writes acknowledged, "
          f"none lost, {refused} refused, none of them written; all write again after {slowest * 1000:.0f} ms at most")


if __name__ == "__main__":
    play_on_a_server(play, Disk, rounds=4, writers=6, seed=1)
