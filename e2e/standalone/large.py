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
LARGE, LARGE_BYTES, READERS = 100, 517000, 8
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
    for response in watches:
        expect(response.status == 200, f"a watch: {response.status}")
    needed = server.memory("VmRSS") - before
    for connection, response in zip(connections[:-1], watches):
        response.close()
        connection.close()
    wait_until(lambda: server.memory("VmRSS") - before <= needed * REST_RATIO,
               f"{WATCHES} clients needed {needed} KiB, of which more than {REST_RATIO:.0%} stay without them")
    return needed, server.memory("VmRSS") - before


def fill(server, path, count, make):
    def some(first):
        connection = server.connect()
        for i in range(first, count, WRITERS):
            status, said = connection.ask("POST", path, make(i))
            expect(status == 201, f"a new object: {said}")

    in_threads(WRITERS, some)


def make_small(i):
    return {"metadata": {"name": f"c{i:04}"}, "data": {"t": "x" * TEXT}}


def make_large(i):
    module = base64.b64encode(b"\0asm\1\0\0\0" + bytes(LARGE_BYTES)).decode()
    return {"apiVersion": "propeller.propeller.abstractmachines.fr/v1", "kind": "Task",
            "metadata": {"name": f"t{i:04}"}, "spec": {"name": "t", "functionName": "main", "file": module}}


def rss_from_now(server):
    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # VmHWM is counted from now on
    return server.memory("VmRSS")


def list_as_table(server, readers):
    """KiB of the answer to each of so many at once, and how many were needed at most."""
    answers = []

    def read(_):
        connection = server.connect()
        response = connection.call("GET", TASKS, Accept=TABLE)
        answers.append((response.status, response.read()))

    before = rss_from_now(server)
    in_threads(readers, read)
    expect(len(answers) == readers, f"{len(answers)} of {readers} tables were read")
    for status, body in answers:
        expect(status == 200 and len(json.loads(body)["rows"]) == LARGE, f"a table: {status} {body[:200]}")
    return len(answers[0][1]) >> 10, server.memory("VmHWM") - before


def delete_all(server):
    """KiB of the answer, and how many more were needed at most."""
    before = rss_from_now(server)
    connection = server.connect()
    response = connection.call("DELETE", PATH)
    body = response.read()
    expect(response.status == 200, f"the deletion: {response.status} {body[:200]}")
    items = len(json.loads(body)["items"])
    expect(items == OBJECTS, f"the answer has {items} of {OBJECTS} objects")
    status, listed = connection.ask("GET", PATH)
    expect(status == 200 and not listed["items"], f"after the deletion: {status} {str(listed)[:200]}")
    return len(body) >> 10, server.memory("VmHWM") - before


def play(server, *_):
    needed, left = give_back(server)
    fill(server, TASKS, LARGE, make_large)
    server.kill()  # what the writers needed would hide what the readers need
    server.start()
    server.connect().ask("GET", PATH)
    tables = []
    for readers in (1, READERS):
        table, peak = list_as_table(server, readers)
        most = readers * (table * ANSWER_RATIO + LIST_KIB)
        expect(peak <= most, f"{readers} Tables of {table} KiB at once needed {peak} KiB, which is more than {most}")
        tables.append(f"{peak} KiB for {readers} of them at once")
    fill(server, PATH, OBJECTS, make_small)
    size, peak = delete_all(server)
    expect(peak <= size * ANSWER_RATIO, f"a deletion with an answer of {size} KiB needed {peak} KiB")
    print(f"large: {WATCHES} clients needed {needed} KiB, of which {left} stayed without them; a Table of {table} "
          f"KiB of {LARGE} large objects needed {', '.join(tables)}; the deletion of {OBJECTS} objects with an answer "
          f"of {size} KiB needed {peak} KiB")


if __name__ == "__main__":
    play_on_a_server(play)
