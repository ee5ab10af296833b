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

from server import PATH, PATIENCE_S, Connection, expect, in_threads, play_on_a_server, revision, wait_until

KEYS, TEXT, WRITES_EACH = 4, 200_000, 85  # 68 MB; the history keeps 32 MiB
SLOW, DEAF, READERS = 12, 12, 2
MEMORY_KIB = 192 << 10


class Small(Connection):
    """Takes next to nothing that it does not read."""

    def connect(self):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(PATIENCE_S)
        plain.connect((self.host, self.port))
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


def write(server, name, text):
    status, reply = server.connect().ask("PATCH", f"{PATH}/{name}", {"data": {"t": text}})
    expect(status == 200, f"a write: {status} {str(reply)[:200]}")
    return revision(reply)


def write_and_read(server, since):
    """KEYS write, READERS read: what was acknowledged, which each of these has seen."""
    acked, seen = [], [[] for _ in range(READERS)]

    def work(i):
        if i < READERS:
            for line in server.connect().watch(since):
                event = json.loads(line)
                expect(event["type"] == "MODIFIED", f"a reader: {str(event)[:200]}")
                seen[i].append(revision(event["object"]))
                if len(seen[i]) == KEYS * WRITES_EACH:
                    return
            expect(False, "the stream of a reader has ended")
        for n in range(WRITES_EACH):
            acked.append(write(server, f"k{i - READERS}", f"{n} " + random.choice("abcdef") * TEXT))

    in_threads(READERS + KEYS, work)
    acked.sort()
    expect(all(those == acked for those in seen), f"readers saw {list(map(len, seen))} of {len(acked)} writes")
    return acked


def is_compacted(server, since):
    """Nobody can begin at this revision any more."""
    connection = server.connect()
    event = json.loads(connection.watch(since).readline())
    connection.close()
    said = event["object"]
    expect(event["type"] != "ERROR" or (said["code"], said["reason"]) == (410, "Expired"), f"a watch behind the history: {said}")
    return event["type"] == "ERROR"


def await_compaction(server, since):
    wait_until(lambda: is_compacted(server, since), "the history still goes back to the beginning")


def lines_of(events):
    """Those that are whole: whoever takes nothing for a minute is cut off, in the middle of whatever it was."""
    try:
        for line in events:
            if line.endswith(b"\n"):
                yield json.loads(line)
    except (OSError, http.client.HTTPException):
        pass


def read_at_last(server, since, events, acked):
    """What came next without a gap, and then 410, at once or when it is tried again; how much it was."""
    seen, gone = [], False
    for event in lines_of(events):
        expect(not gone, f"after 410: {str(event)[:200]}")
        gone = event["type"] == "ERROR"
        if gone:
            expect(event["object"]["code"] == 410, f"a slow reader: {event}")
        else:
            seen.append(revision(event["object"]))
    expect(seen == acked[:len(seen)] and len(seen) < len(acked), f"a slow reader has not what came next: {seen[:20]}, {acked[:20]}")
    if not gone:
        await_compaction(server, seen[-1] if seen else since)
    return len(seen)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def play(server, *_):
    for i in range(KEYS):
        status, said = server.connect().ask("POST", PATH, {"metadata": {"name": f"k{i}"}})
        expect(status == 201, f"a new object: {said}")
    since = revision(server.connect().ask("GET", PATH)[1])
    open_before = descriptors(server)
    connections = [Small(server) for _ in range(SLOW + DEAF)]
    silent = [connection.watch(since) for connection in connections]
    acked = write_and_read(server, since)
    await_compaction(server, since)
    status, said = server.connect().ask("GET", f"{PATH}?resourceVersion={since}&resourceVersionMatch=Exact")
    expect((status, said.get("reason")) == (410, "Expired"), f"a list of what is gone: {status} {said}")
    memory = server.memory("VmHWM")
    expect(memory <= MEMORY_KIB, f"most memory: {memory} KiB")
    for connection in connections[SLOW:]:
        connection.sock.close()
        connection.close()
    counts = [read_at_last(server, since, events, acked) for events in silent[:SLOW]]
    for connection in connections[:SLOW]:
        connection.close()
    # As clients do after 410: a list, and a watch from there.
    events = server.connect().watch(revision(server.connect().ask("GET", PATH)[1]))
    written = write(server, "k0", "last")
    expect(revision(json.loads(events.readline())["object"]) == written, "a watch after a list")
    # The connections are closed; the store keeps some files open that it has read.
    wait_until(lambda: descriptors(server) <= open_before + (SLOW + DEAF) // 2, f"{descriptors(server)} descriptors stay open")
    print(f"slow: {SLOW + DEAF} watchers that do not read, {len(acked)} writes of {TEXT} bytes, {READERS} readers saw all of them; "
          f"then {min(counts)} to {max(counts)} events and 410; VmHWM {memory} KiB")


if __name__ == "__main__":
    play_on_a_server(play)
