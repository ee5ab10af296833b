#!/usr/bin/env python3
"""Kills propeller-standalone with SIGKILL under writers, again and again, and looks at what is left.

Each writer has keys (ConfigMaps) of its own and numbers its writes. After a kill every key must hold
the last write that was acknowledged, or the one that was under way, whole; a list must agree; and a
watch from the last look must tell each acknowledged write, at its resourceVersion, in order. A start after a
kill must take less than a second: of processor time each, of time half of them, so that a machine with much else
to do is not taken for a slow start.

usage: kill.py PROGRAM FOLDER [--kills N] [--writers N] [--seed N]
"""
import http.client
import json
import random
import statistics
import threading

from server import PATH, PATIENCE_S, expect, play_on_a_server, revision

KEYS_EACH = 3
MAX_ACKS = 80
MAX_START_S = 1


def text_of(key, n):
    rng = random.Random(f"{key} {n}")
    return f"{key} {n} " + "".join(rng.choices("abcdefghij", k=rng.randrange(30000 if n % 50 == 0 else 300)))


class Key:
    """acked: the last write that is known to be there, None: none; asked: what may be there instead."""

    def __init__(self, name):
        self.name = name
        self.n = 0
        self.acked = self.asked = None
        self.revision = None


class Round:
    """What the writers were told between two kills."""

    def __init__(self, after):
        self.lock = threading.Lock()
        self.enough = threading.Event()
        self.after = after
        self.acks = {}
        self.failure = None

    def ack(self, revision, key, write):
        with self.lock:
            if revision in self.acks:
                self.failure = f"resourceVersion {revision} was given twice"
            self.acks[revision] = (key.name, write)
            if len(self.acks) >= self.after:
                self.enough.set()


def write_once(connection, key):
    """The next write of a key: its status and what was said. The key knows what is asked, not yet how it ended."""
    key.n += 1
    is_there = key.acked is not None and key.acked[1] is not None
    key.asked = (key.n, None if is_there and key.n % 7 == 3 else text_of(key.name, key.n))
    if key.asked[1] is None:
        return connection.ask("DELETE", f"{PATH}/{key.name}")
    metadata = {"name": key.name}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": key.asked[1]}}
    if not is_there:
        return connection.ask("POST", PATH, body)
    metadata["resourceVersion"] = str(key.revision)
    return connection.ask("PUT", f"{PATH}/{key.name}", body)


def acknowledge(key, reply):
    """The revision of the write; None for a deletion: that is in no answer, the watch tells it."""
    key.acked, key.asked = key.asked, None
    key.revision = revision(reply) if key.acked[1] is not None else None
    return key.revision


def write_until_killed(server, keys, rnd):
    try:
        connection = server.connect()
        while True:
            for key in keys:
                status, reply = write_once(connection, key)
                expect(status in (200, 201), f"write {key.n} of {key.name}: {status} {reply}")
                if acknowledge(key, reply):
                    rnd.ack(key.revision, key, key.acked)
    except (OSError, http.client.HTTPException, ValueError):
        rnd.enough.set()  # it was killed
    except SystemExit as failure:
        rnd.failure = str(failure)
        rnd.enough.set()


def check_keys(server, keys):
    found, connection = {}, server.connect()
    for key in keys:
        status, reply = connection.ask("GET", f"{PATH}/{key.name}")
        expect(status in (200, 404), f"GET {key.name}: {status} {reply}")
        text = reply["data"]["text"] if status == 200 else None
        held = [write for write in (key.acked, key.asked) if (write[1] if write else None) == text]
        expect(held, f"{key.name} holds neither write {key.acked and key.acked[0]} nor "
                     f"{key.asked and key.asked[0]}: {str(text)[:60]}")
        now = revision(reply) if text else None
        if held[0] == key.acked and key.revision:
            expect(now == key.revision, f"{key.name}: resourceVersion {now}, told was {key.revision}")
        key.acked, key.revision = held[0], now
        if text:
            found[key.name] = now
    status, reply = connection.ask("GET", PATH)
    listed = {item["metadata"]["name"]: revision(item) for item in reply["items"]}
    expect(status == 200 and listed == found, "the list is not what the keys are")
    return revision(reply)


def check_watch(server, since, head, acks):
    events = server.connect().watch(since, allowWatchBookmarks="true", timeoutSeconds=1)
    last = since
    missing = dict(acks)
    for line in events:
        event = json.loads(line)
        told = revision(event["object"])
        if event["type"] == "BOOKMARK":
            continue
        expect(event["type"] in ("ADDED", "MODIFIED", "DELETED"), f"watch: {event}")
        expect(last < told <= head, f"watch: resourceVersion {told} after {last}")
        last = told
        if told in missing:
            name, write = missing.pop(told)
            expect(event["object"]["metadata"]["name"] == name and event["object"]["data"]["text"] == write[1],
                   f"watch: {told} is another write")
    expect(not missing, f"watch: resourceVersions {sorted(missing)} are lost")


def play_round(server, keys, writers, rng, head):
    rnd = Round(rng.randrange(MAX_ACKS))
    threads = [threading.Thread(target=write_until_killed, args=(server, keys[i::writers], rnd)) for i in range(writers)]
    for thread in threads:
        thread.start()
    if rnd.after:
        expect(rnd.enough.wait(PATIENCE_S), "it does not answer the writers")
    server.kill()
    for thread in threads:
        thread.join()
    expect(not rnd.failure, str(rnd.failure))
    expect(min(rnd.acks, default=head + 1) > head, "a resourceVersion went back")
    return rnd


class Starts:
    """After kills: seconds until it answers, and of processor time until then."""

    def __init__(self):
        self.seconds, self.processor = [], []

    def start(self, server):
        self.seconds.append(server.start())
        self.processor.append(server.processor_s())

    def __str__(self):
        return (f"answers after {statistics.median(self.seconds) * 1000:.0f} ms (slowest {max(self.seconds) * 1000:.0f} ms), "
                f"{max(self.processor) * 1000:.0f} ms of processor time at most")

    def check(self):
        expect(max(self.processor) < MAX_START_S and statistics.median(self.seconds) < MAX_START_S,
               f"a start after a kill takes too long, {MAX_START_S} s is allowed: it {self}")


def play(server, options, _):
    rng = random.Random(options.seed)
    keys = [Key(f"key-{i:03}") for i in range(options.writers * KEYS_EACH)]
    head, acked, starts = 1, 0, Starts()
    for number in range(1, options.kills + 1):
        rnd = play_round(server, keys, options.writers, rng, head)
        starts.start(server)
        since, head = head, check_keys(server, keys)
        expect(head >= max(rnd.acks, default=since), "the store went back")
        if number > 1:
            check_watch(server, since, head, rnd.acks)
        acked += len(rnd.acks)
    starts.check()
    print(f"kill: {options.kills} kills under {options.writers} writers, {acked} writes acknowledged, none lost; {starts}")


if __name__ == "__main__":
    play_on_a_server(play, kills=200, writers=16, seed=1)
