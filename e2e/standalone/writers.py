"""Writers of ConfigMaps at propeller-standalone, and what must be there after a kill or on a full disk.

Each writer has keys of its own and numbers its writes. Every key must hold the last write that was acknowledged, or the
one that was under way, whole; a list must agree; and a watch must tell each acknowledged write, at its resourceVersion,
in order.
"""
import http.client
import json
import random
import threading

from server import PATH, PATIENCE_S, expect, revision

NO_SPACE = "no space left on the disk"


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

    def write(self, connection):
        """The next write: its status and what was said."""
        self.n += 1
        is_there = self.acked is not None and self.acked[1] is not None
        self.asked = (self.n, None if is_there and self.n % 7 == 3 else text_of(self.name, self.n))
        if self.asked[1] is None:
            return connection.ask("DELETE", f"{PATH}/{self.name}")
        metadata = {"name": self.name, **({"resourceVersion": str(self.revision)} if is_there else {})}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": self.asked[1]}}
        return connection.ask(*(("PUT", f"{PATH}/{self.name}") if is_there else ("POST", PATH)), body)

    def check(self, connection):
        """It holds what it must, which is what is known from now on."""
        status, reply = connection.ask("GET", f"{PATH}/{self.name}")
        expect(status in (200, 404), f"GET {self.name}: {status} {reply}")
        text = reply["data"]["text"] if status == 200 else None
        held = [write for write in (self.acked, self.asked) if (write[1] if write else None) == text]
        expect(held, f"{self.name} holds neither write {self.acked and self.acked[0]} nor "
                     f"{self.asked and self.asked[0]}: {str(text)[:60]}")
        now = revision(reply) if text else None
        if held[0] == self.acked and self.revision:
            expect(now == self.revision, f"{self.name}: resourceVersion {now}, told was {self.revision}")
        self.acked, self.revision = held[0], now


class Writers:
    """They write until they are told to stop, or the server is killed."""

    def __init__(self, server, keys, count):
        self.server, self.count = server, count
        self.changed, self.stopping, self.killed = threading.Condition(), False, False
        self.acks, self.acks_of, self.refusals_of = {}, [0] * count, [0] * count
        self.failure = None
        self.threads = [threading.Thread(target=self._run, args=(i, keys[i::count])) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, number, keys):
        try:
            connection = self.server.connect()
            while not self.stopping:
                for key in keys:
                    self._note(number, key, *key.write(connection))
        except (OSError, http.client.HTTPException, ValueError) as failure:
            self._fail(None if self.killed else f"a writer: {failure!r}")
        except SystemExit as failure:
            self._fail(str(failure))

    def _fail(self, failure):
        with self.changed:
            self.failure = self.failure or failure
            self.changed.notify_all()

    def _note(self, number, key, status, reply):
        with self.changed:
            if status in (200, 201):
                key.acked, key.asked = key.asked, None
                key.revision = revision(reply) if key.acked[1] is not None else None  # a deletion's is in no answer
                expect(key.revision not in self.acks, f"resourceVersion {key.revision} was given twice")
                if key.revision:
                    self.acks[key.revision] = (key.name, key.acked)
                self.acks_of[number] += 1
            else:
                expect(status == 503 and reply["reason"] == "ServiceUnavailable" and NO_SPACE in reply["message"],
                       f"write {key.n} of {key.name}: {status} {reply}")
                key.asked = None  # it was not written at all
                self.refusals_of[number] += 1
            self.changed.notify_all()

    def wait(self, holds, what):
        with self.changed:
            expect(self.changed.wait_for(lambda: self.failure or holds(), PATIENCE_S), f"the writers do not get {what}")
        expect(not self.failure, self.failure)

    def wait_each(self, of, more):
        """Until each of them has so many acks or refusals more."""
        goal = [count + more for count in of]
        self.wait(lambda: all(count >= least for count, least in zip(of, goal)), f"{more} more: {of}")

    def stop(self, kill=False):
        self.stopping, self.killed = True, kill
        if kill:
            self.server.kill()
        for thread in self.threads:
            thread.join()
        expect(not self.failure, self.failure)


def check_keys(server, keys):
    connection = server.connect()
    for key in keys:
        key.check(connection)
    status, reply = connection.ask("GET", PATH)
    listed = {item["metadata"]["name"]: revision(item) for item in reply["items"]}
    expect(status == 200 and listed == {key.name: key.revision for key in keys if key.revision}, "the list is not what the keys are")
    return revision(reply)


def check_watch(server, since, head, acks):
    last, missing = since, dict(acks)
    for line in server.connect().watch(since, allowWatchBookmarks="true", timeoutSeconds=1):
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
