#!/usr/bin/env python3
"""A VMAFX controller and its trainers, which say what a file says: peer.py --script FILE --journal FILE --grpc PORT --http PORT

No library of gRPC: GetJob alone, over a small HTTP/2 server that reads no header and answers in order. The tests of
the client (common/tests/test_grpc_client.c) have the rest of the protocol. The script is JSON, and is read for each
request:

    jobs      id -> {status, node, error, updated_at, score}
    any       the same of each other id; absent: it is NOT_FOUND
    grpc      a status of gRPC in place of all answers; 0 or absent: none
    healthz   HTTP status of /healthz; 200 if absent
    trainers  name -> what GET /<namespace>/<name>/status answers; another name is 404

A line of the journal is one request, or one connection of gRPC: {"ask": "job" | "healthz" | "trainer" | "connection",
"name"}.
"""

import argparse
import http.server
import json
import pathlib
import socketserver
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 4, 6, 7, 8, 9
ACK = END_STREAM = 1
END_HEADERS = 4
STATUSES = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
NOT_FOUND = 5

OPTIONS = argparse.Namespace()
LOCK = threading.Lock()


def script():
    return json.loads(OPTIONS.script.read_text(encoding="utf-8"))


def note(ask, name):
    with LOCK, open(OPTIONS.journal, "a", encoding="utf-8") as journal:
        journal.write(json.dumps({"ask": ask, "name": name}) + "\n")


# ---- protobuf ----


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(field, value):
    data = value.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data if data else b""


def job_message(name, job):
    return b"".join([
        text(1, name), varint(2 << 3), varint(STATUSES.index(job["status"])), text(5, job.get("node", "")),
        text(6, job.get("error", "")), varint(8 << 3), varint(job.get("updated_at", 0)), varint(9 << 3 | 1),
        struct.pack("<d", job.get("score", 0))])


# ---- HTTP/2 ----


def literal(name, value):
    """A header that is not indexed, without Huffman codes; both are shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Grpc(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def send(self, kind, flags, stream, payload=b""):
        self.wfile.write(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def answer(self, stream, body):
        name = body[7:].decode()  # prefix of the frame, tag, length
        said = script()
        note("job", name)
        job = said.get("jobs", {}).get(name) or said.get("any")
        status = said.get("grpc", 0) or (0 if job else NOT_FOUND)
        start = b"\x88" + literal("content-type", "application/grpc")
        end = literal("grpc-status", str(status))
        if status:
            self.send(HEADERS, END_HEADERS | END_STREAM, stream, start + end)
            return
        message = job_message(name, job)
        self.send(HEADERS, END_HEADERS, stream, start)
        self.send(DATA, 0, stream, b"\0" + struct.pack(">I", len(message)) + message)
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, end)

    def handle(self):
        bodies = {}
        if self.rfile.read(len(PREFACE)) != PREFACE:
            return
        note("connection", "")
        self.send(SETTINGS, 0, 0)
        while len(head := self.rfile.read(9)) == 9:
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            payload = self.rfile.read(length)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.send(kind, ACK, 0, payload if kind == PING else b"")
            elif kind == DATA:
                bodies[stream] = bodies.get(stream, b"") + payload
                if length:  # else the client may send 64 KiB in all
                    self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", length))
                if flags & END_STREAM:
                    self.answer(stream, bodies.pop(stream))
            elif kind == GOAWAY or kind > CONTINUATION:
                return  # a preface that is sent again is no frame


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        said, parts, body = script(), self.path.strip("/").split("/"), b""
        if parts[-1] == "healthz":
            note("healthz", parts[0])
            status = said.get("healthz", 200)
        else:
            note("trainer", parts[1])
            trainer = said.get("trainers", {}).get(parts[1])
            status, body = (200, json.dumps(trainer).encode()) if trainer else (404, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--script", type=pathlib.Path, required=True)
    parser.add_argument("--journal", type=pathlib.Path, required=True)
    parser.add_argument("--grpc", type=int, required=True)
    parser.add_argument("--http", type=int, required=True)
    parser.parse_args(namespace=OPTIONS)
    pages = Threads(("127.0.0.1", OPTIONS.http), Pages)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    Threads(("127.0.0.1", OPTIONS.grpc), Grpc).serve_forever()


if __name__ == "__main__":
    main()
