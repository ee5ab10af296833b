#!/usr/bin/env python3
"""What many clients of propeller-standalone needed goes back to the system when they have gone, also where the memory of
one that stays lies above it. That lists and deletions of collections hold a chunk at a time is a unit test.

usage: large.py PROGRAM FOLDER
"""
from server import PATH, expect, play_on_a_server, revision, wait_until

WATCHES, WATCHERS = 400, 4  # a user has 128 at most
# Of what all clients needed; where nothing is given back nine tenths stay.
REST_RATIO = 0.3


def play(server, *_):
    """All but the last client go."""
    before = server.memory("VmRSS")
    since = revision(server.connect().ask("GET", PATH)[1])
    tokens = [server.add_user(f"watcher{i}") for i in range(WATCHERS)]
    connections = [server.connect(tokens[i % WATCHERS]) for i in range(WATCHES)]
    watches = [connection.watch(since) for connection in connections]
    expect({response.status for response in watches} == {200}, "a watch is refused")
    needed = server.memory("VmRSS") - before
    for connection, response in zip(connections[:-1], watches):
        response.close()
        connection.close()
    wait_until(lambda: server.memory("VmRSS") - before <= needed * REST_RATIO,
               f"{WATCHES} clients needed {needed} KiB, of which more than {REST_RATIO:.0%} stay without them")
    print(f"large: {WATCHES} clients needed {needed} KiB and gave them back")


if __name__ == "__main__":
    play_on_a_server(play)
