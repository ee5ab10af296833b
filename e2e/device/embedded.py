#!/usr/bin/env python3
"""A test device that behaves as the microcontroller firmware does, its limits included.

One identity a process, because the firmware has one thread: while a module runs, nothing is read
and no heartbeat leaves. It was never seen on a wire; everything here was read from its source.
Options are those of device.py, as far as it has them. Its journal has the same events, and `deaf`.
"""

import argparse
import base64
import binascii
import json
import os
import re
import signal
import urllib.request

import paho.mqtt.client as mqtt
import wasmtime
from device import Journal, read_passwords
from loop import Loop
from training import version_of

PAYLOAD_MAX = 1023  # a longer one is cut, and its rest blocks the input for good
IDENT_MAX = 63
IMAGE_MAX = 255
BASE64_MAX = 1023
INPUTS_MAX = 16
REPLY_MAX = 4095  # of an HTTP server
HTTP_SECONDS = 30
METRICS_INTERVAL = 30
HOUSEKEEPING = 1
# What happens to stand in a buffer that nobody filled: no UTF-8, and a control character.
GARBAGE = b"\xfe\x01\xa0?\xff"
GARBAGE_READ = "\ufffd \ufffd?\ufffd"  # what a reader can make of it
TRAP = "WASM execution failed: Exception: unreachable"


class Refused(Exception):
    """Dropped with a line of its log; nothing is published."""


class Failed(Exception):
    """An error result: `sent` stands in the message, `read` is what it says."""

    def __init__(self, sent, read):
        super().__init__(read)
        self.sent, self.read = sent, read


def text_of(message, key, limit):
    if not isinstance(message.get(key), str):
        raise Refused(f"{key} is not a string")
    return message[key][:limit]


def input_of(value):
    """A number cut to 32 bits; whatever is no number becomes 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    bits = int(value) & 0xFFFFFFFF if is_number else 0
    return bits - (1 << 32) if bits >> 31 else bits


def run_module(binary, inputs):
    """Always the export `main`; all its i32 results, joined by commas."""
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store.set_wasi(wasmtime.WasiConfig())
    try:
        instance = linker.instantiate(store, wasmtime.Module(engine, binary))
    except wasmtime.WasmtimeError as error:
        raise Failed(b"WASM load failed", "WASM load failed") from error
    main = instance.exports(store).get("main")
    if main is None:
        raise Failed(GARBAGE, GARBAGE_READ)
    try:
        value = main(store, *inputs)
    except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
        raise Failed(TRAP.encode(), TRAP) from error
    values = value if isinstance(value, (list, tuple)) else [value]
    kinds = [str(kind) for kind in main.type(store).results]
    texts = [str(value) for value, kind in zip(values, kinds) if kind == "i32"]
    if not texts:
        raise Failed(GARBAGE, GARBAGE_READ)
    return ",".join(texts)


def fetch_model(env):
    """It keeps what it fetched, and has no way to give it to the module."""
    uri = env.get("MODEL_URI", "")
    registry = env.get("MODEL_REGISTRY_URL", "http://model-registry:8081")
    if not uri or not re.match(r"http://[0-9.]+(:|/|$)", registry):  # it resolves no names, and knows no TLS
        return None
    try:
        with urllib.request.urlopen(f"{registry}/models/{version_of(uri)}", timeout=HTTP_SECONDS) as reply:
            return reply.read(REPLY_MAX).decode(errors="replace")
    except (OSError, ValueError):
        return None


class Microcontroller:
    def __init__(self, loop, journal, options, secret):
        self.loop, self.journal, self.options = loop, journal, options
        self.identity = options.identity
        self.prefix = f"m/{options.domain}/c/{options.channel}/"
        self.waiting = None  # (id, inputs) of the last start: whatever module comes is run for it
        self.env = {}  # of that start; with ROUND_ID it is training
        self.results = {}  # message number -> id
        self.is_deaf = False
        journal.write(self.identity, "boot")
        # Manual, and never done: it has no PUBACK. Nor does it reconnect.
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, self.identity, clean_session=False, manual_ack=True
        )
        client.username_pw_set(self.identity, secret)
        will = {"status": "offline", "proplet_id": self.identity, "namespace": "embedded"}
        client.will_set(self.prefix + "control/proplet/alive", json.dumps(will), qos=1)
        client.on_connect, client.on_disconnect = self._connected, self._disconnected
        client.on_message, client.on_publish = self._message, self._acknowledged
        loop.attach(client, lambda: not self.is_deaf)
        self.client = client

    def start(self):
        self.client.connect(self.options.host, self.options.port, self.options.keep_alive)
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    # ---- connection ----

    def _housekeeping(self):
        if not self.is_deaf:  # its pings are answered, and it cannot read the answers
            self.client.loop_misc()
        self.loop.after(HOUSEKEEPING, self._housekeeping)

    def _disconnected(self, _client, _userdata, _flags, reason, _properties):
        self.journal.write(self.identity, "disconnected", reason=str(reason))

    def _connected(self, client, _userdata, _flags, reason, _properties):
        if reason.is_failure:
            self.journal.write(self.identity, "refused", reason=str(reason))
            return
        topics = ("control/manager/start", "control/manager/stop", "registry/server")
        client.subscribe([(self.prefix + topic, 1) for topic in topics])
        self.journal.write(self.identity, "connected")
        self._publish("control/proplet/create", self._create())
        self.loop.after(self.options.alive_interval, self._heartbeat)
        self.loop.after(METRICS_INTERVAL, self._metrics)

    def _publish(self, suffix, message):
        return self._send(self.prefix + suffix, json.dumps(message, separators=(",", ":")).encode())

    def _send(self, topic, payload):
        number = self.client.publish(topic, payload, qos=1).mid
        while self.is_deaf and self.client.socket() and self.client.want_write():
            self.client.loop_write()
        return number

    # ---- what it says about itself ----

    def _create(self):
        known = {"description": "embedded device", "tags": ["embedded"], "location": "bench"}
        machine = {"environment": "embedded", "os": "zephyr", "hostname": "zephyr"}
        sizes = {"cpu_arch": "xtensa", "total_memory_bytes": 524288, "ip": ""}
        versions = {"proplet_version": "0.1.0", "wasm_runtime": "wamr"}
        metadata = {**known, **machine, **sizes, **versions}
        return {"proplet_id": self.identity, "namespace": "embedded", "metadata": metadata}

    def _heartbeat(self):
        self.loop.after(self.options.alive_interval, self._heartbeat)
        alive = {"status": "alive", "proplet_id": self.identity, "namespace": "embedded"}
        self._publish("control/proplet/alive", alive)

    def _metrics(self):
        self.loop.after(METRICS_INTERVAL, self._metrics)
        cpu = {"user_seconds": 0, "system_seconds": 0, "percent": 0}
        memory = {"rss_bytes": 0, "heap_alloc_bytes": 18432, "heap_sys_bytes": 65536}
        heap = {"heap_inuse_bytes": 18432, "heap_free_bytes": 47104, "heap_max_alloc_bytes": 21504}
        message = {"proplet_id": self.identity, "namespace": "embedded", "timestamp": 61234}
        usage = {"cpu_metrics": cpu, "memory_metrics": {**memory, **heap}}
        self._publish("control/proplet/metrics", {**message, **usage})

    # ---- commands ----

    def _message(self, _client, _userdata, message):
        if self.is_deaf:
            return
        if len(message.payload) > PAYLOAD_MAX:
            self.is_deaf = True
            self.journal.write(self.identity, "deaf", bytes=len(message.payload))
            return
        handlers = {"start": self._start, "stop": self._stop, "server": self._chunk}
        try:
            payload = json.loads(message.payload)
            if not isinstance(payload, dict):
                raise Refused("not an object")
            handlers[message.topic.rpartition("/")[2]](payload)
        except (ValueError, Refused) as why:
            self.journal.write(self.identity, "dropped", topic=message.topic, why=str(why))

    def _start(self, message):
        """Whoever it is for: proplet_id is not read."""
        ident = text_of(message, "id", IDENT_MAX)
        text_of(message, "name", IDENT_MAX)
        inputs = [input_of(value) for value in (message.get("inputs") or [])[:INPUTS_MAX]]
        self.waiting = ident, inputs
        self.env = message.get("env") or {}
        if "ROUND_ID" in self.env:
            model = fetch_model(self.env)
            self.journal.write(self.identity, "model", task=ident, text=model)
        if message.get("file"):
            self._run(ident, inputs, text_of(message, "file", BASE64_MAX + 1))
        else:
            name = text_of(message, "image_url", IMAGE_MAX)
            self._publish("registry/proplet", {"app_name": name})

    def _chunk(self, message):
        """One message is a whole module, for whomever it was meant."""
        data = text_of(message, "data", BASE64_MAX + 1)
        if self.waiting:
            self._run(*self.waiting, data)

    def _stop(self, message):
        ident = text_of(message, "id", IDENT_MAX)
        text_of(message, "name", IDENT_MAX)
        text_of(message, "state", IDENT_MAX)
        # Read by the thread that runs modules: whatever it means has ended.
        self.journal.write(self.identity, "unknown-stop", task=ident)

    def _run(self, ident, inputs, text):
        if len(text) > BASE64_MAX:
            raise Refused("file is too long")
        try:
            binary = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise Refused("file is no base64") from error
        self.journal.write(self.identity, "start", task=ident, inputs=inputs)
        try:
            results, sent, error = run_module(binary, inputs), None, None
        except Failed as failure:
            results, sent, error = "", failure.sent, failure.read
        self.journal.write(self.identity, "computed", task=ident)
        if "ROUND_ID" in self.env:
            self._hand_over(ident, results, sent)
            return
        self.journal.write(self.identity, "result", task=ident, results=results, error=error)
        # Built by hand, as it does: no proplet_id, no error on success, nothing is escaped.
        parts = [b'{"task_id":"', ident.encode(), b'","results":"', results.encode(), b'"']
        parts += [b"}"] if sent is None else [b',"error":"', sent, b'"}']
        self.results[self._send(self.prefix + "control/proplet/results", b"".join(parts))] = ident

    def _hand_over(self, ident, results, sent):
        """On the topic of its round, and nowhere else. Its JSON reader takes the first number of
        "7,-1" and forgets the rest; a number has no members, so nothing is added to it."""
        if sent is None:
            value, _ = json.JSONDecoder().raw_decode(results)
            payload = json.dumps(value, separators=(",", ":")).encode()
        else:
            known = ("round_id", self.env["ROUND_ID"]), ("proplet_id", self.identity)
            members = [*known, ("base_model_uri", self.env.get("MODEL_URI", ""))]
            parts = "".join(f'"{name}":"{text}",' for name, text in members)
            payload = f'{{{parts}"num_samples":0,"metrics":{{}},"update":{{}},"error":"'.encode()
            payload += sent + b'"}'
        self.journal.write(self.identity, "update", task=ident, how="topic", text=payload.decode(errors="replace"))
        self._send(f"fl/rounds/{self.env['ROUND_ID']}/updates/{self.identity}", payload)

    def _acknowledged(self, _client, _userdata, number, _reason, _properties):
        ident = self.results.pop(number, None)
        if ident is not None:
            self.journal.write(self.identity, "acknowledged", task=ident)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", required=True, metavar="HOST:PORT")
    parser.add_argument("--domain", required=True)
    parser.add_argument("--channel", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--passwords", required=True, metavar="FILE", help="lines identity:secret")
    parser.add_argument("--alive-interval", type=float, default=10)
    parser.add_argument("--keep-alive", type=int, default=30)
    parser.add_argument("--journal", metavar="FILE")
    options = parser.parse_args()
    options.host, _, port = options.broker.rpartition(":")
    options.port = int(port)
    return options


def main():
    options = parse_arguments()
    loop, journal = Loop(), Journal(options.journal)
    secret = read_passwords(options.passwords)[options.identity]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Microcontroller(loop, journal, options, secret).start()
    loop.run()


if __name__ == "__main__":
    main()
