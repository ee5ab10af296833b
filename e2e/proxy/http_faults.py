"""An HTTPS server in front of another one that answers some requests itself, or loses the answer."""

import asyncio
import json
import ssl

HEAD_BYTES = 65536
BODY_BYTES = 4 << 20
CHUNK = 65536
REASONS = {
    429: ("Too Many Requests", "TooManyRequests"),
    500: ("Internal Server Error", "InternalError"),
    503: ("Service Unavailable", "ServiceUnavailable"),
    504: ("Gateway Timeout", "Timeout"),
}


def answer(code):
    """As an API server says it."""
    text, reason = REASONS[code]
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body = json.dumps({**status, "message": f"chaos: {text}", "reason": reason, "code": code}).encode()
    retry = "Retry-After: 1\r\n" if code == 429 else ""
    head = f"HTTP/1.1 {code} {text}\r\nContent-Type: application/json\r\n{retry}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def body_length(head):
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
        if line.startswith(b"transfer-encoding:"):
            raise ValueError("bodies in chunks are not understood")
    return 0


class FaultyServer:
    """On a port of its own. HTTP/1.1 alone, so that a request and its answer can be told apart."""

    def __init__(self, options, server):
        self.server = server
        self.percent, self.code, self.sum, self.met = 0, None, 0, 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(options.certificate, options.key)
        self.context.set_alpn_protocols(["http/1.1"])
        self.towards = ssl.create_default_context(cafile=options.authority)
        self.towards.set_alpn_protocols(["http/1.1"])
        self.port = None

    async def open(self, port=0):
        server = await asyncio.start_server(
            self._accept, "127.0.0.1", port, ssl=self.context, limit=HEAD_BYTES
        )
        self.port = server.sockets[0].getsockname()[1]

    def set_fault(self, percent, code):
        """With a code these requests are answered so; without, their answers are lost."""
        if code is not None and code not in REASONS:
            raise ValueError(f"code {code} is none of {', '.join(map(str, REASONS))}")
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent} is not between 0 and 100")
        self.percent, self.code, self.met = percent, code, 0

    def _is_next_hit(self):
        """Spread evenly, without chance: the same requests in the same order meet the same."""
        self.sum += self.percent
        if self.sum < 100:
            return False
        self.sum -= 100
        return True

    async def _accept(self, reader, writer):
        try:
            await self.exchange(self, reader, writer).run()
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client sees a connection that ends
        finally:
            writer.transport.abort()

    def next_fate(self):
        """"pass", "answer" or "lose"."""
        if not self._is_next_hit():
            return "pass"
        self.met += 1
        return "answer" if self.code else "lose"


class Exchange:
    """One connection of a client: requests one after the other, answers as they come."""

    def __init__(self, faulty, reader, writer):
        self.faulty, self.reader, self.writer = faulty, reader, writer
        self.upstream = None
        self.pump = None
        self.is_lost = False

    async def run(self):
        try:
            while True:
                head = await self.reader.readuntil(b"\r\n\r\n")
                length = body_length(head)
                if length > BODY_BYTES:
                    raise ValueError("a body that large is not understood")
                request = head + await self.reader.readexactly(length)
                fate = self.faulty.next_fate()
                if fate == "answer":
                    self.writer.write(answer(self.faulty.code))
                    await self.writer.drain()
                else:
                    self.is_lost = fate == "lose"
                    await self._pass_on(request)
        finally:
            if self.upstream:
                self.pump.cancel()
                self.upstream.transport.abort()

    async def _pass_on(self, request):
        if not self.upstream:
            host, port = self.faulty.server
            reader, self.upstream = await asyncio.open_connection(
                host, port, ssl=self.faulty.towards, server_hostname=host
            )
            self.pump = asyncio.create_task(self._answers(reader))
        self.upstream.write(request)
        await self.upstream.drain()

    def _saw(self, data):
        """Of an answer, before it is passed on."""

    async def _answers(self, reader):
        try:
            while (data := await reader.read(CHUNK)) and not self.is_lost:
                self._saw(data)
                self.writer.write(data)
                await self.writer.drain()
        except OSError:
            pass
        self.writer.transport.abort()


FaultyServer.exchange = Exchange
