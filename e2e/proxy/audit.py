#!/usr/bin/env python3
"""An API server's audit log for one that keeps none: passes requests on, and writes a line about each.

    audit.py --listen PORT --server HOST:PORT --certificate FILE --key FILE --authority FILE --user NAME --log FILE

The lines are those of kube-apiserver at the level Metadata, as far as e2e reads them: user, verb, objectRef,
responseStatus, requestURI. Whoever sends its requests here is NAME.
"""

import argparse
import asyncio
import collections
import json
import urllib.parse

from http_faults import FaultyServer, Exchange

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


def reference(path):
    """objectRef of a path; None for those that are about no resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    ref = {"apiGroup": group, "apiVersion": version}
    if rest[0] == "namespaces" and len(rest) > 2:
        ref["namespace"] = rest[1]
        rest = rest[2:]
    ref.update(zip(("resource", "name", "subresource"), rest))
    return ref


def verb_of(method, ref, query):
    if method == "GET":
        if urllib.parse.parse_qs(query).get("watch", ["0"])[0] in ("1", "true"):
            return "watch"
        return "get" if "name" in ref else "list"
    if method == "DELETE":
        return "delete" if "name" in ref else "deletecollection"
    return VERBS.get(method, method.lower())


class AuditedExchange(Exchange):
    """Requests of a connection come one after the other, and so do their answers."""

    def __init__(self, server, reader, writer):
        super().__init__(server, reader, writer)
        self.asked = collections.deque()
        self.head = b""

    async def _pass_on(self, request):
        method, uri, _ = request.split(b"\r\n", 1)[0].decode().split(" ")
        self.asked.append((method, uri))
        self.head = b""
        await super()._pass_on(request)

    def _saw(self, data):
        """The first line of an answer says what became of the request."""
        if not self.asked:
            return
        self.head += data[:1024]
        while (end := self.head.find(b"\r\n")) >= 0:
            code = int(self.head[:end].split(b" ")[1])
            if code >= 200:
                self.faulty.note(*self.asked.popleft(), code)
                return
            rest = self.head.find(b"\r\n\r\n")
            if rest < 0:
                return
            self.head = self.head[rest + 4 :]


class AuditedServer(FaultyServer):
    exchange = AuditedExchange

    def __init__(self, options, server):
        super().__init__(options, server)
        self.user = options.user
        self.log = open(options.log, "a", encoding="utf-8", buffering=1)

    def note(self, method, uri, code):
        url = urllib.parse.urlsplit(uri)
        ref = reference(url.path)
        if ref is None:
            return
        line = {"user": {"username": self.user}, "verb": verb_of(method, ref, url.query), "objectRef": ref,
                "responseStatus": {"code": code}, "requestURI": uri}
        self.log.write(json.dumps(line, separators=(",", ":")) + "\n")


async def main():
    parser = argparse.ArgumentParser()
    for name in ("certificate", "key", "authority", "user", "log", "server"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--listen", type=int, required=True)
    options = parser.parse_args()
    host, _, port = options.server.rpartition(":")
    await AuditedServer(options, (host, int(port))).open(options.listen)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
