#!/usr/bin/env python3
"""Says whatever should not be said: ten messages nobody should heed for every start that it hears.

They go around through the table below, so a load of a hundred Tasks meets each sort many times.
The journal has a line `sent` and, when the broker has it, `acknowledged` for each, with the `kind`
of message and the `reason` under which a controller has to count it; `late` stands for the three
of which it depends on the moment which one it is: other_proplet, other_channel, not_running.
"""

import argparse
import itertools
import json
import uuid

import paho.mqtt.client as mqtt
from device import Journal, read_passwords
from loop import Loop

LARGE_EVERY = 97  # messages between two of 2 MiB
LARGE = 2 << 20
KEEP_ALIVE = 30
HOUSEKEEPING = 1
RECONNECT = 1


def encoded(**fields):
    return json.dumps(fields).encode()


def forged(ident, proplet, text="forged"):
    return encoded(task_id=ident, proplet_id=proplet, results=text, error=None)


def nested(depth):
    return b'{"task_id":' + b"[" * depth + b"]" * depth + b"}"


# Each takes (id that is being computed, identity that computes it); topic kind, reason, payload.
SORTS = (
    ("results", "malformed", lambda i, d: b"no JSON at all"),
    ("results", "malformed", lambda i, d: b""),
    ("results", "malformed", lambda i, d: encoded(task_id=7, results="x")),
    ("results", "malformed", lambda i, d: encoded(task_id=i, proplet_id=d, error={"not": "text"})),
    ("results", "malformed", lambda i, d: encoded(task_id=None)),
    ("results", "malformed", lambda i, d: b"[" + forged(i, d) + b"]"),
    ("results", "malformed", lambda i, d: nested(100000)),
    ("results", "malformed", lambda i, d: forged(i, d)[:-9]),
    ("results", "malformed", lambda i, d: forged(i, d) + b"{}"),
    ("results", "malformed", lambda i, d: b'{"task_id":"' + i.encode() + b'","error":"\xfe"\x01"}'),
    ("results", "malformed", lambda i, d: b"\x00\xff" * 500),
    ("results", "unknown_task", lambda i, d: forged(str(uuid.uuid4()), d)),
    ("results", "unknown_task", lambda i, d: forged("../../" + "x" * 5000, d)),
    ("results", "unknown_task", lambda i, d: b'{"task_id":"t-20","results":"","error":"\xf3\xa0?\xff"}'),
    ("results", "unknown_task", lambda i, d: b'{"task_id":"a\x01b","results":1e999}'),
    ("results", "other_attempt", lambda i, d: forged(i + ".7", d)),
    ("results", "other_attempt", lambda i, d: forged(i + ".99999999999999999999", d)),
    ("results", "late", lambda i, d: forged(i, "somebody-else")),
    ("results", "late", lambda i, d: forged(i, "")),
    ("elsewhere", "late", lambda i, d: forged(i, d)),
    ("alive", "malformed", lambda i, d: b"{"),
    ("alive", "malformed", lambda i, d: encoded(proplet_id=d, status=True)),
    ("alive", "malformed", lambda i, d: nested(100000)),
    ("alive", "ignored", lambda i, d: encoded(proplet_id="somebody-else", status="offline")),
    ("create", "malformed", lambda i, d: encoded(proplet_id=["a"], metadata={})),
    ("create", "malformed", lambda i, d: b'"create"'),
    ("create", "ignored", lambda i, d: encoded(proplet_id="somebody-else", metadata="text")),
    ("metrics", "malformed", lambda i, d: b"[]"),
    ("metrics", "malformed", lambda i, d: encoded(proplet_id=7, cpu_metrics="hot")),
    ("task_metrics", "malformed", lambda i, d: encoded(task_id={}, metrics=[])),
    ("task_metrics", "malformed", lambda i, d: b"\xc3\x28"),
    ("task_metrics", "ignored", lambda i, d: encoded(task_id=i, proplet_id="somebody-else")),
    ("surprise", "ignored", lambda i, d: b"a topic that nobody knows"),
)
LARGE_SORTS = (
    ("results", "malformed", lambda i, d: b"x" * LARGE),
    ("results", "late", lambda i, d: forged(i, "somebody-else", "x" * LARGE)),
    ("results", "unknown_task", lambda i, d: forged(str(uuid.uuid4()), d, "x" * LARGE)),
    ("alive", "malformed", lambda i, d: b'{"proplet_id":"' + b"x" * LARGE),
)


class Hostile:
    def __init__(self, loop, journal, options):
        self.loop, self.journal, self.options = loop, journal, options
        self.sorts, self.large = itertools.cycle(SORTS), itertools.cycle(LARGE_SORTS)
        self.sent = 0
        self.under_way = {}  # message number -> (kind, reason)
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "hostile")
        client.username_pw_set(options.user, read_passwords(options.passwords)[options.user])
        client.max_queued_messages_set(0)
        client.on_connect, client.on_message = self._connected, self._message
        client.on_publish = self._acknowledged
        client.on_disconnect = lambda *_: loop.after(RECONNECT, self._connect)
        loop.attach(client)
        self.client = client

    def start(self):
        self._connect()
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    def _connect(self):
        try:
            self.client.connect(self.options.host, self.options.port, KEEP_ALIVE)
        except OSError:
            self.loop.after(RECONNECT, self._connect)

    def _housekeeping(self):
        self.client.loop_misc()
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    def _topic(self, channel, suffix):
        return f"m/{self.options.domain}/c/{channel}/control/{suffix}"

    def _connected(self, client, _userdata, _flags, _reason, _properties):
        client.subscribe(self._topic(self.options.channel, "manager/start"), 1)
        self.journal.write("hostile", "connected")

    def _message(self, _client, _userdata, message):
        start = json.loads(message.payload)
        for _ in range(self.options.per_start):
            self.sent += 1
            is_large = not self.options.no_large and self.sent % LARGE_EVERY == 0
            self._say(next(self.large if is_large else self.sorts), start)

    def _say(self, sort, start):
        kind, reason, payload = sort
        channel = self.options.channel if kind != "elsewhere" else self.options.elsewhere
        suffix = "proplet/" + ("results" if kind == "elsewhere" else kind)
        self.journal.write("hostile", "sent", kind=kind, reason=reason)
        text = payload(start["id"], start["proplet_id"])
        number = self.client.publish(self._topic(channel, suffix), text, qos=1).mid
        self.under_way[number] = kind, reason

    def _acknowledged(self, _client, _userdata, number, _reason, _properties):
        kind, reason = self.under_way.pop(number)
        self.journal.write("hostile", "acknowledged", kind=kind, reason=reason)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", required=True, metavar="HOST:PORT")
    parser.add_argument("--domain", required=True)
    parser.add_argument("--channel", required=True)
    parser.add_argument("--elsewhere", required=True, help="another channel with a Proplet")
    parser.add_argument("--user", required=True, help="an account that may say anything")
    parser.add_argument("--passwords", required=True, metavar="FILE", help="lines identity:secret")
    parser.add_argument("--journal", required=True, metavar="FILE")
    parser.add_argument("--per-start", type=int, default=10, metavar="N", help="instead of ten")
    parser.add_argument("--no-large", action="store_true", help="none of 2 MiB")
    options = parser.parse_args()
    options.host, _, port = options.broker.rpartition(":")
    options.port = int(port)
    return options


def main():
    options = parse_arguments()
    loop = Loop()
    Hostile(loop, Journal(options.journal), options).start()
    loop.run()


if __name__ == "__main__":
    main()
