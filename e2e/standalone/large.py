#!/usr/bin/env python3
"""What propeller-standalone holds in memory, without the controller, while it does something large and afterwards.

What many clients needed goes back to the system when they have gone, also where the memory of one that stays lies
above it. To delete a collection needs memory for its answer and no more; to list one as a Table, too, however large
its objects are.

usage: large.py PROGRAM FOLDER
"""
import base64
import json

from server import PATH, expect, in_threads, play_on_a_server, revision, wait_until

OBJECTS, TEXT, WRITERS = 6000, 4000, 16
WATCHES, WATCHERS = 400, 4  # a user has 128 at most
# Of what all clients needed; where nothing is given back nine tenths stay.
REST_RATIO = 0.3
# Of what the answer has in bytes. A buffer that grows needs half as much again; whoever holds the objects, too, and
# trees of them, needs eight times as much.
ANSWER_RATIO = 3

TASKS = "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/default/tasks"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LARGE, READERS = 100, 8
MODULE = base64.b64encode(b"\0asm\1\0\0\0" + bytes(517000)).decode()
# Besides the answer, of each reader: a chunk of 1 MiB and its last object as they are in the store, and one object as
# a tree and as a text. Whoever reads all objects at once needs 67 MiB.
LIST_KIB = 6 << 10


def give_back(server):
    """KiB that the clients needed, and how much of that stays when all but the last one have gone."""
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
    return needed


def fill(server, path, count, body):
    def some(first):
        connection = server.connect()
        for i in range(first, count, WRITERS):
            status, said = connection.ask("POST", path, {"metadata": {"name": f"n{i:04}"}, **body})
            expect(status == 201, f"a new object: {said}")

    in_threads(WRITERS, some)


def call_at_once(server, count, method, path, member, length, **headers):
    """KiB of the answer to each of so many at once, and how many were needed at most."""
    sizes = []

    def call(_):
        response = server.connect().call(method, path, **headers)
        body = response.read()
        expect(response.status == 200 and len(json.loads(body)[member]) == length, f"{method} {path}: {response.status} {body[:200]}")
        sizes.append(len(body) >> 10)

    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # VmHWM is counted from now on
    before = server.memory("VmRSS")
    in_threads(count, call)
    return sizes[0], server.memory("VmHWM") - before


def play(server, *_):
    needed = give_back(server)
    fill(server, TASKS, LARGE, {"apiVersion": "propeller.propeller.abstractmachines.fr/v1", "kind": "Task",
                                "spec": {"name": "t", "functionName": "main", "file": MODULE}})
    server.kill()  # what the writers needed would hide what the readers need
    server.start()
    server.connect().ask("GET", PATH)
    table, peak = call_at_once(server, READERS, "GET", TASKS, "rows", LARGE, Accept=TABLE)
    most = READERS * (table * ANSWER_RATIO + LIST_KIB)
    expect(peak <= most, f"{READERS} Tables of {table} KiB at once needed {peak} KiB, which is more than {most}")
    fill(server, PATH, OBJECTS, {"data": {"t": "x" * TEXT}})
    size, deletion = call_at_once(server, 1, "DELETE", PATH, "items", OBJECTS)
    expect(deletion <= size * ANSWER_RATIO, f"a deletion with an answer of {size} KiB needed {deletion} KiB")
    print(f"large: {WATCHES} clients needed {needed} KiB and gave them back; {READERS} Tables of {table} KiB of {LARGE} large "
          f"objects needed {peak} KiB; the deletion of {OBJECTS} objects with an answer of {size} KiB needed {deletion} KiB")


if __name__ == "__main__":
    play_on_a_server(play)
