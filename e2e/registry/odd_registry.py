#!/usr/bin/env python3
"""A registry whose blobs come in odd ways: odd_registry.py PORT UPSTREAM.

Everything else is what UPSTREAM (HOST:PORT) answers. The last part of the repository says how: `slow` sends 1 KiB a
second, `endless` goes on behind the last byte, and `cut` closes the connection after 300 KiB.
"""

import http.client
import http.server
import sys
import time

CUT = 300 << 10


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        connection = http.client.HTTPConnection(UPSTREAM, timeout=60)
        kept = {name: self.headers[name] for name in ("Accept", "Range") if self.headers[name]}
        connection.request(self.command, self.path, headers=kept)
        reply = connection.getresponse()
        body = reply.read()
        way = self.path.split("/")[-3] if "/blobs/" in self.path and self.command == "GET" else ""
        self.send_response(reply.status)
        for name in ("Content-Type", "Content-Range", "Docker-Content-Digest", "Content-Length"):
            if reply.getheader(name) and (name, way) != ("Content-Length", "endless"):
                self.send_header(name, reply.getheader(name))
        self.end_headers()
        try:
            self.send_body(way, body)
        except OSError:
            pass  # the controller has had enough
        self.close_connection = True

    do_HEAD = do_GET

    def send_body(self, way, body):
        if way == "slow":
            for at in range(0, len(body), 1024):
                self.wfile.write(body[at:at + 1024])
                time.sleep(1)
        elif way == "cut":
            self.wfile.write(body[:CUT])
        else:
            self.wfile.write(body)
        while way == "endless":
            self.wfile.write(bytes(1024))

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    UPSTREAM = sys.argv[2]
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
