#!/usr/bin/env python3
"""Kills propeller-standalone with SIGKILL under writers, again and again, and looks at what is left.

Each writer has keys (ConfigMaps) of its own and numbers its writes. After a kill every key must hold
the last write that was acknowledged, or the one that was under way, whole; a list must agree; and a
watch from the last look must tell each acknowledged write, at its resourceVersion, in order. A start after a
kill must take less than a second: of processor time each, of time half of them, so that a machine with much else
to do is not taken for a slow start.

usage: kill.py PROGRAM FOLDER [--kills N] [--writers N] [--seed N]
"""
import argparse
import http.client
import json
import random
import statistics
import sys
import threading

from server import PATH, PATIENCE_S, Server, ask, expect, processor_s

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


def write_once(connection, server, key, rnd):
    key.n += 1
    is_there = key.acked is not None and key.acked[1] is not None
    write = (key.n, None if is_there and key.n % 7 == 3 else text_of(key.name, key.n))
    key.asked = write
    if write[1] is None:
        status, reply = ask(connection, server, "DELETE", f"{PATH}/{key.name}")
        expect(status == 200, f"DELETE {key.name}: {status} {reply}")
        # The revision of a deletion is in no answer: the watch tells it.
        key.acked, key.revision = write, None
        return
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name}, "data": {"text": write[1]}}
    if is_there:
        body["metadata"]["resourceVersion"] = str(key.revision)
        status, reply = ask(connection, server, "PUT", f"{PATH}/{key.name}", body)
    else:
        status, reply = ask(connection, server, "POST", PATH, body)
    expect(status in (200, 201), f"write {key.n} of {key.name}: {status} {reply}")
    key.acked, key.revision = write, int(reply["metadata"]["resourceVersion"])
    rnd.ack(key.revision, key, write)


def write_until_killed(server, keys, rnd):
    try:
        connection = server.connect()
        while True:
            for key in keys:
                write_once(connection, server, key, rnd)
    except (OSError, http.client.HTTPException, ValueError):
        rnd.enough.set()  # it was killed
    except SystemExit as failure:
        rnd.failure = str(failure)
        rnd.enough.set()


def check_keys(connection, server, keys):
    found = {}
    for key in keys:
        status, reply = ask(connection, server, "GET", f"{PATH}/{key.name}")
        expect(status in (200, 404), f"GET {key.name}: {status} {reply}")
        text = reply["data"]["text"] if status == 200 else None
        held = [write for write in (key.acked, key.asked) if (write[1] if write else None) == text]
        expect(held, f"{key.name} holds neither write {key.acked and key.acked[0]} nor "
                     f"{key.asked and key.asked[0]}: {str(text)[:60]}")
        revision = int(reply["metadata"]["resourceVersion"]) if text else None
        if held[0] == key.acked and key.revision:
            expect(revision == key.revision, f"{key.name}: resourceVersion {revision}, told was {key.revision}")
        key.acked, key.revision = held[0], revision
        if text:
            found[key.name] = revision
    status, reply = ask(connection, server, "GET", PATH)
    listed = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in reply["items"]}
    expect(status == 200 and listed == found, "the list is not what the keys are")
    return int(reply["metadata"]["resourceVersion"])


def check_watch(server, since, head, acks):
    connection = server.connect()
    connection.request("GET", f"{PATH}?watch=1&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=1",
                       headers={"Authorization": "Bearer " + server.token})
    last = since
    missing = dict(acks)
    for line in connection.getresponse():
        event = json.loads(line)
        revision = int(event["object"]["metadata"]["resourceVersion"])
        if event["type"] == "BOOKMARK":
            continue
        expect(event["type"] in ("ADDED", "MODIFIED", "DELETED"), f"watch: {event}")
        expect(last < revision <= head, f"watch: resourceVersion {revision} after {last}")
        last = revision
        if revision in missing:
            name, write = missing.pop(revision)
            expect(event["object"]["metadata"]["name"] == name and event["object"]["data"]["text"] == write[1],
                   f"watch: {revision} is another write")
    expect(not missing, f"watch: resourceVersions {sorted(missing)} are lost")


def play(server, keys, writers, rng, head):
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
    expect(all(revision > head for revision in rnd.acks), "a resourceVersion went back")
    return rnd


class Starts:
    """After kills: seconds until it answers, and of processor time until then."""

    def __init__(self):
        self.seconds, self.processor = [], []

    def start(self, server):
        self.seconds.append(server.start())
        self.processor.append(processor_s(server))

    def __str__(self):
        return (f"answers after {statistics.median(self.seconds) * 1000:.0f} ms (slowest {max(self.seconds) * 1000:.0f} ms), "
                f"{max(self.processor) * 1000:.0f} ms of processor time at most")

    def check(self):
        expect(max(self.processor) < MAX_START_S and statistics.median(self.seconds) < MAX_START_S,
               f"a start after a kill takes too long, {MAX_START_S} s is allowed: it {self}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    server = Server(options.program, options.folder)
    keys = [Key(f"key-{i:03}") for i in range(options.writers * KEYS_EACH)]
    head, acked, starts = 1, 0, Starts()
    server.start()
    try:
        for number in range(1, options.kills + 1):
            rnd = play(server, keys, options.writers, rng, head)
            starts.start(server)
            connection = server.connect()
            since, head = head, check_keys(connection, server, keys)
            expect(head >= max(rnd.acks, default=since), "the store went back")
            if number > 1:
                check_watch(server, since, head, rnd.acks)
            acked += len(rnd.acks)
    finally:
        if server.process.poll() is None:
            server.process.terminate()
            server.process.wait()
    starts.check()
    print(f"kill: {options.kills} kills under {options.writers} writers, {acked} writes acknowledged, none lost; {starts}")


if __name__ == "__main__":
    sys.exit(main())
