#!/usr/bin/env python3
"""A token server for a registry of docker: token_server.py PORT KEY CERTIFICATE USER PASSWORD_FILE.

Gives USER a token to pull any repository; all others get a token for nothing. KEY is an RSA key in PEM that the
certificate, which the registry trusts, belongs to. Writes a line for each token to the standard output.
"""

import base64
import http.server
import json
import subprocess
import sys
import time
import urllib.parse
import uuid

LIFE_S = 300


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token_for(service, repository):
    lines = CERTIFICATE.strip().splitlines()
    now = int(time.time())
    access = [{"type": "repository", "name": repository, "actions": ["pull"]}] if repository else []
    head = {"typ": "JWT", "alg": "RS256", "x5c": ["".join(lines[1:-1])]}
    claims = {"iss": "e2e", "sub": "", "aud": service, "exp": now + LIFE_S, "nbf": now - 10, "iat": now,
              "jti": str(uuid.uuid4()), "access": access}
    text = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", KEY], input=text.encode(), check=True,
                               capture_output=True).stdout
    return f"{text}.{encoded(signature)}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        scope = query.get("scope", ["repository::"])[0].split(":")
        is_known = self.headers.get("Authorization") == f"Basic {LOGIN}"
        body = json.dumps({"token": token_for(query["service"][0], is_known and scope[1]),
                           "expires_in": LIFE_S}).encode()
        print("token for", scope[1] if is_known else "nothing", flush=True)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    PORT, KEY, certificate, user, password_file = sys.argv[1:]
    with open(certificate, encoding="ascii") as file:
        CERTIFICATE = file.read()
    with open(password_file, encoding="ascii") as file:
        LOGIN = base64.b64encode(f"{user}:{file.read().strip()}".encode()).decode()
    http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler).serve_forever()
