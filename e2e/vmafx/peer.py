#!/usr/bin/env python3
"""A VMAFX controller and its trainers, which say what a file says:

    peer.py --script FILE --journal FILE --grpc PORT --http PORT [--tls CERTIFICATE KEY]

Its GetJob is that of controller/vmafx/vmafx.proto, by the library of gRPC. The script is JSON, and is read for each
request:

    jobs      id -> answer: {status, node, error, updated_at, score}
    any       the answer for each other id: one, or a list from which the number at the end of the id chooses.
              null or absent: it is NOT_FOUND
    grpc      a status of gRPC in place of all answers; 0 or absent: none
    healthz   HTTP status of /healthz; 200 if absent
    trainers  name -> what GET /<namespace>/<name>/status answers; another name is 404

A status that is a number is sent as it is. An answer may also say what a bad server does: {"grpc": number} a status
of gRPC, {"hang": true} no answer, {"bytes": number} an error of this length, {"score": "nan"}.

A line of the journal is one request, or the first of a connection of gRPC: {"ask": "job" | "healthz" | "trainer" |
"connection", "name"}.
"""

import argparse
import http.server
import json
import pathlib
import re
import socketserver
import sys
import threading
from concurrent import futures

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "controller/vmafx"))
MESSAGES, SERVICES = grpc.protos_and_services("vmafx.proto")
CODES = {code.value[0]: code for code in grpc.StatusCode}
WORKERS = 8

OPTIONS = argparse.Namespace()
LOCK = threading.Lock()


def script():
    return json.loads(OPTIONS.script.read_text(encoding="utf-8"))


def note(ask, name):
    with LOCK, open(OPTIONS.journal, "a", encoding="utf-8") as journal:
        journal.write(json.dumps({"ask": ask, "name": name}) + "\n")


def answer_of(said, name):
    if name in said.get("jobs", {}):
        return said["jobs"][name]
    every = said.get("any")
    number = re.search(r"[0-9]*$", name)[0]
    return every[int(number or 0) % len(every)] if isinstance(every, list) else every


class Controller(SERVICES.VmafxControllerServicer):
    def __init__(self):
        self.peers = set()

    def GetJob(self, request, context):  # pylint: disable=invalid-name
        if context.peer() not in self.peers:
            self.peers.add(context.peer())
            note("connection", "")
        note("job", request.job_id)
        said = script()
        job = answer_of(said, request.job_id)
        code = said.get("grpc") or (job.get("grpc", 0) if job else grpc.StatusCode.NOT_FOUND.value[0])
        if code:
            context.abort(CODES[code], "as the script says")
        if job.get("hang"):
            ended = threading.Event()
            context.add_callback(ended.set)
            ended.wait()
        status = job["status"]
        return MESSAGES.Job(
            id=request.job_id, status=status if isinstance(status, int) else MESSAGES.JobStatus.Value(status),
            assigned_node=job.get("node", ""), error=job.get("error", "x" * job.get("bytes", 0)),
            updated_at=job.get("updated_at", 0), final_score=float(job.get("score", 0)))


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
    parser.add_argument("--tls", type=pathlib.Path, nargs=2)
    parser.parse_args(namespace=OPTIONS)
    server = grpc.server(futures.ThreadPoolExecutor(WORKERS))
    SERVICES.add_VmafxControllerServicer_to_server(Controller(), server)
    address = f"127.0.0.1:{OPTIONS.grpc}"
    if OPTIONS.tls:
        certificate, key = (file.read_bytes() for file in OPTIONS.tls)
        server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
    else:
        server.add_insecure_port(address)
    server.start()
    Threads(("127.0.0.1", OPTIONS.http), Pages).serve_forever()


if __name__ == "__main__":
    main()
