#!/usr/bin/env python3
"""The network between the parts of a run: one TCP proxy with any number of named links.

    links.py --control FIFO --journal FILE [--certificate FILE --key FILE --authority FILE] LINK...

LINK is NAME=PORT:HOST:PORT, where it listens and where it leads. Lines written to the control pipe,
`VERB NAME[,NAME...] [ARGUMENT...]` (`*`: all of them), each answered by a line of the journal:
  freeze          nothing passes, and nobody is told: what is under way arrives after `heal`
  refuse          every connection is closed, and so are new ones at once
  reset           every connection is closed; new ones are served
  slow MS         what the server says arrives that much later
  errors CODE N   N of 100 HTTP requests are answered CODE and go no further; for TLS servers
  lose N          N of 100 HTTP requests are executed, and their answer is lost with its connection
  heal [VERB]     no more of what this verb began; without one, of nothing that it was told
Errors need the proxy to speak TLS itself, with --certificate; other times it passes bytes on.
The journal has a line `opened` for each connection with the proxy's own port towards the server,
and a line `met` when errors or losses end, with how many requests met them (code null: lost).
"""

import argparse
import asyncio
import json
import sys
import time

from control import listen_to
from http_faults import FaultyServer

CHUNK = 65536


class Link:
    def __init__(self, network, name, port, host, server_port):
        self.network, self.name, self.port = network, name, port
        self.server = host, server_port
        self.connections = set()
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.faulty = None  # the HTTP server that stands in between while there are errors
        self.is_refusing = False
        self.delay = 0.0

    # ---- what it can be told ----

    def freeze(self):
        self.flowing.clear()

    def refuse(self):
        self.is_refusing = True
        self.reset()

    def reset(self):
        for writer in list(self.connections):
            writer.transport.abort()

    def slow(self, milliseconds):
        self.delay = int(milliseconds) / 1000

    def errors(self, code, percent):
        self._stand_between(int(percent), int(code))

    def lose(self, percent):
        self._stand_between(int(percent), None)

    def heal(self, verb=None):
        if verb in (None, "freeze"):
            self.flowing.set()
        if verb in (None, "refuse"):
            self.is_refusing = False
        if verb in (None, "slow"):
            self.delay = 0.0
        if verb in (None, "errors", "lose") and self.faulty:
            self.network.write("met", link=self.name, code=self.faulty.code, requests=self.faulty.met)
            self.faulty = None
            self.reset()

    def _stand_between(self, percent, code):
        server = self.network.faulty_servers.get(self.name)
        if not server:
            raise ValueError(f"link '{self.name}' does not speak TLS")
        server.set_fault(percent, code)
        self.faulty = server
        self.reset()

    # ---- connections ----

    async def accept(self, reader, writer):
        accepted = time.time()
        await self.flowing.wait()
        if self.is_refusing:
            writer.transport.abort()
            return
        way = ("127.0.0.1", self.faulty.port) if self.faulty else self.server
        try:
            server_reader, server_writer = await asyncio.open_connection(*way)
        except OSError:
            writer.transport.abort()
            return
        port = server_writer.get_extra_info("sockname")[1]
        self.network.write("opened", link=self.name, port=port, accepted=accepted)
        pair = {writer, server_writer}
        self.connections |= pair
        await self._pass_on(reader, writer, server_reader, server_writer)
        self.connections -= pair

    async def _pass_on(self, reader, writer, server_reader, server_writer):
        ways = [
            asyncio.create_task(self._pump(reader, server_writer, is_answer=False)),
            asyncio.create_task(self._pump(server_reader, writer, is_answer=True)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, server_writer):
            end.close()

    async def _pump(self, reader, writer, is_answer):
        try:
            while data := await reader.read(CHUNK):
                if is_answer and self.delay:
                    await asyncio.sleep(self.delay)
                await self.flowing.wait()
                writer.write(data)
                await writer.drain()
            await self.flowing.wait()  # nor does the end of a connection arrive
        except ConnectionError:
            pass  # the other side is told by the end of this connection


class Network:
    VERBS = ("freeze", "refuse", "reset", "slow", "errors", "lose", "heal")

    def __init__(self, options):
        self.journal = open(options.journal, "a", encoding="utf-8", buffering=1)
        self.options = options
        self.links = {}
        self.servers = []
        self.faulty_servers = {}

    def write(self, event, **fields):
        print(json.dumps({"time": time.time(), "event": event, **fields}), file=self.journal)

    async def open(self):
        for text in self.options.link:
            name, _, way = text.partition("=")
            port, host, server_port = way.split(":")
            link = Link(self, name, int(port), host, int(server_port))
            self.links[name] = link
            self.servers.append(await asyncio.start_server(link.accept, "127.0.0.1", link.port))
            if self.options.certificate:
                self.faulty_servers[name] = FaultyServer(self.options, link.server)
                await self.faulty_servers[name].open()

    def obey(self, line):
        verb, names, *arguments = line.split()
        if verb not in self.VERBS:
            raise ValueError(f"unknown verb '{verb}'; known are {', '.join(self.VERBS)}")
        for name in self.links if names == "*" else names.split(","):
            if name not in self.links:
                raise ValueError(f"unknown link '{name}'; known are {', '.join(self.links)}")
            getattr(self.links[name], verb)(*arguments)


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--control", metavar="FIFO")
    parser.add_argument("--journal", required=True, metavar="FILE")
    parser.add_argument("--certificate", metavar="FILE", help="what TLS clients are shown")
    parser.add_argument("--key", metavar="FILE")
    parser.add_argument("--authority", metavar="FILE", help="who signed the certificate of TLS servers")
    parser.add_argument("link", nargs="+", metavar="NAME=PORT:HOST:PORT")
    return parser.parse_args(arguments)


async def serve(options):
    network = Network(options)
    await network.open()
    if options.control:
        listen_to(options.control, network.obey, network.write)
    network.write("listening")
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(serve(parse_arguments()))
    except KeyboardInterrupt:
        sys.exit(130)
