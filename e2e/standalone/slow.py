#!/usr/bin/env python3
"""Watchers of propeller-standalone that do not read, while more is written than the history keeps.

Whoever reads gets every acknowledged write, in order, as if the others were not there; the server's memory stays
within its bounds; who reads at last gets what came next without a gap, then 410 (or is cut off, and gets it when it
tries again), and goes on with a list. Those that go away without a word leave nothing behind.

usage: slow.py PROGRAM FOLDER
"""
import http.client
import json
import os
import random
import socket
import threading
import time

from server import PATH, PATIENCE_S, Connection, expect, in_threads, play_on_a_server, revision, wait_until

KEYS, TEXT, WRITES_EACH = 4, 200_000, 170  # 136 MB; the history keeps 64 MiB
SLOW, DEAF, READERS = 12, 12, 2
MEMORY_KIB = 192 << 10
COMPACTION_S = 180


class Small(Connection):
    """Takes next to nothing that it does not read."""

    def connect(self):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(PATIENCE_S)
        plain.connect((self.host, self.port))
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


class Reader(threading.Thread):
    """Reads events until one that says that it is the last."""

    def __init__(self, server, since):
        super().__init__()
        self.connection = server.connect()
        self.events = self.connection.watch(since)
        self.seen, self.failure = [], None
        self.start()

    def run(self):
        text = ""
        while text != "end":
            try:
                line = self.events.readline()
            except OSError as error:
                line, self.failure = b"", repr(error)
            if not line:
                self.failure = self.failure or "the stream has ended"
                return
            event = json.loads(line)
            if event["type"] != "MODIFIED":
                self.failure = f"{event['type']}: {str(event['object'])[:200]}"
                return
            self.seen.append(revision(event["object"]))
            text = event["object"]["data"]["t"]


def write_all(server):
    acked = []

    def write(i):
        connection, rng = server.connect(), random.Random(i)
        for n in range(WRITES_EACH):
            status, reply = connection.ask("PATCH", f"{PATH}/k{i}", {"data": {"t": f"{n} " + rng.choice("abcdef") * TEXT}})
            expect(status == 200, f"a write: {status} {str(reply)[:200]}")
            acked.append(revision(reply))

    in_threads(KEYS, write)
    status, last = server.connect().ask("PATCH", f"{PATH}/k0", {"data": {"t": "end"}})
    expect(status == 200, f"the last write: {status} {str(last)[:200]}")
    return [*sorted(acked), revision(last)]


def is_compacted(server, since):
    """Nobody can begin at this revision any more."""
    connection = server.connect()
    events = connection.watch(since)
    event = json.loads(events.readline())
    connection.close()
    expect(events.status == 200, f"a watch of a version that was there: {events.status} {event}")
    said = event["object"]
    if event["type"] == "ERROR":
        expect((said["code"], said["reason"]) == (410, "Expired"), f"a watch behind the history: {said}")
    return event["type"] == "ERROR"


def await_compaction(server, since):
    wait_until(lambda: is_compacted(server, since), "the history still goes back to the beginning", COMPACTION_S)


def lines_of(events):
    """Those that are whole: whoever takes nothing for a minute is cut off, in the middle of whatever it was."""
    try:
        for line in events:
            if line.endswith(b"\n"):
                yield line
    except (OSError, http.client.HTTPException):
        pass


def read_at_last(server, since, events, acked):
    """What came next without a gap, and then 410, at once or when it is tried again; how much it was."""
    seen, gone = [], False
    for line in lines_of(events):
        event = json.loads(line)
        expect(not gone, f"after 410: {str(event)[:200]}")
        gone = event["type"] == "ERROR"
        if gone:
            expect(event["object"]["code"] == 410, f"a slow reader: {event}")
        else:
            seen.append(revision(event["object"]))
    expect(seen == acked[:len(seen)], f"a slow reader has not what came next: {seen[:20]}, {acked[:20]}")
    expect(len(seen) < len(acked), "a slow reader was not slow")
    if not gone:
        await_compaction(server, seen[-1] if seen else since)
    return len(seen), gone


def go_on(server):
    """As clients do after 410: a list, and a watch from there."""
    status, listed = server.connect().ask("GET", PATH)
    expect(status == 200, f"a list: {status}")
    connection = server.connect()
    events = connection.watch(revision(listed))
    status, written = server.connect().ask("PATCH", f"{PATH}/k0", {"data": {"t": "last"}})
    expect(status == 200, f"a write: {status} {str(written)[:200]}")
    event = json.loads(events.readline())
    expect(revision(event["object"]) == revision(written), f"after a list: {str(event)[:200]}")
    connection.close()


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def play(server, *_):
    for i in range(KEYS):
        status, said = server.connect().ask("POST", PATH, {"metadata": {"name": f"k{i}"}})
        expect(status == 201, f"a new object: {said}")
    since = revision(server.connect().ask("GET", PATH)[1])
    open_before = descriptors(server)
    connections = [Small(server) for _ in range(SLOW + DEAF)]
    silent = [(connection, connection.watch(since)) for connection in connections]
    readers = [Reader(server, since) for _ in range(READERS)]
    began = time.monotonic()
    acked = write_all(server)
    took = time.monotonic() - began
    for reader in readers:
        reader.join(PATIENCE_S)
        expect(not reader.failure, f"a reader: {reader.failure}")
        expect(reader.seen == acked, f"a reader saw {len(reader.seen)} of {len(acked)} writes")
        reader.connection.close()
    await_compaction(server, since)
    status, said = server.connect().ask("GET", f"{PATH}?resourceVersion={since}&resourceVersionMatch=Exact")
    expect((status, said.get("reason")) == (410, "Expired"), f"a list of what is gone: {status} {said}")
    memory = server.memory("VmHWM")
    expect(memory <= MEMORY_KIB, f"most memory: {memory} KiB")
    for connection, _ in silent[SLOW:]:
        connection.sock.close()
        connection.close()
    ends = [read_at_last(server, since, events, acked) for _, events in silent[:SLOW]]
    counts = [count for count, _ in ends]
    for connection, _ in silent[:SLOW]:
        connection.close()
    go_on(server)
    # The connections are closed; the store keeps some files open that it has read.
    wait_until(lambda: descriptors(server) <= open_before + (SLOW + DEAF) // 2, f"{descriptors(server)} descriptors stay open")
    print(f"slow: {SLOW + DEAF} watchers that do not read, {len(acked)} writes of {TEXT} bytes in {took:.1f} s, "
          f"{READERS} readers saw all of them; then {min(counts)} to {max(counts)} events and 410, "
          f"{sum(gone for _, gone in ends)} on the same connection; VmHWM {memory} KiB")


if __name__ == "__main__":
    play_on_a_server(play)
