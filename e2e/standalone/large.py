#!/usr/bin/env python3
"""What propeller-standalone holds in memory, without the controller, while it does something large and afterwards.

What many clients needed goes back to the system when they have gone, also where the memory of one that stays lies
above it. To delete a collection needs memory for its answer and no more.

usage: large.py PROGRAM FOLDER
"""
import json
import threading
import time

from server import PATH, PATIENCE_S, ask, bearer, expect, of_status, play_on_a_server, revision, watch

OBJECTS, TEXT, WRITERS = 6000, 4000, 16
WATCHES = 400
# Of what all clients needed; where nothing is given back nine tenths stay.
REST_RATIO = 0.3
# Of what the answer has in bytes. A buffer that grows needs half as much again; whoever holds the objects, too, and
# trees of them, needs eight times as much.
DELETION_RATIO = 3


def give_back(server):
    """KiB that the clients needed, and how much of that stays when all but the last one have gone."""
    before = of_status(server, "VmRSS")
    since = revision(ask(server.connect(), server, "GET", PATH)[1])
    watches = [watch(server, since) for _ in range(WATCHES)]
    needed = of_status(server, "VmRSS") - before
    for connection, response in watches[:-1]:
        response.close()
        connection.close()
    deadline = time.monotonic() + PATIENCE_S
    while (left := of_status(server, "VmRSS") - before) > needed * REST_RATIO:
        expect(time.monotonic() < deadline, f"{WATCHES} clients needed {needed} KiB, of which {left} stay without them")
        time.sleep(0.5)
    return needed, left


def fill(server):
    def some(first):
        connection = server.connect()
        for i in range(first, OBJECTS, WRITERS):
            status, said = ask(connection, server, "POST", PATH,
                               {"metadata": {"name": f"c{i:04}"}, "data": {"t": "x" * TEXT}})
            expect(status == 201, f"a new object: {said}")

    writers = [threading.Thread(target=some, args=(i,)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def delete_all(server):
    """KiB of the answer, and how many more were needed at most."""
    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # VmHWM is counted from now on
    before = of_status(server, "VmRSS")
    connection = server.connect()
    connection.request("DELETE", PATH, headers=bearer(server))
    response = connection.getresponse()
    body = response.read()
    expect(response.status == 200, f"the deletion: {response.status} {body[:200]}")
    items = len(json.loads(body)["items"])
    expect(items == OBJECTS, f"the answer has {items} of {OBJECTS} objects")
    status, listed = ask(connection, server, "GET", PATH)
    expect(status == 200 and not listed["items"], f"after the deletion: {status} {str(listed)[:200]}")
    return len(body) >> 10, of_status(server, "VmHWM") - before


def play(server):
    needed, left = give_back(server)
    fill(server)
    size, peak = delete_all(server)
    expect(peak <= size * DELETION_RATIO, f"a deletion with an answer of {size} KiB needed {peak} KiB")
    print(f"large: {WATCHES} clients needed {needed} KiB, of which {left} stayed without them; the deletion of {OBJECTS} "
          f"objects with an answer of {size} KiB needed {peak} KiB")


if __name__ == "__main__":
    play_on_a_server(play)
