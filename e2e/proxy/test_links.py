"""The network of links.py: what each verb does to what passes."""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import tempfile
import unittest

import links

PATIENCE = 30
CERTIFICATE = ("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test "
               "-addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}")  # fmt: skip


async def echo(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(100):
            writer.write(data)
        writer.close()


class Link(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.journal = os.path.join(self.folder.name, "journal")
        self.requests = []

    async def asyncTearDown(self):
        for server in self.network.servers:
            server.close()
        self.network.obey("heal *")
        self.network.obey("reset *")
        while self.network.links["x"].connections:
            await asyncio.sleep(0.01)
        self.network.journal.close()

    async def open(self, server_port, *more):
        """The only link's name is `x`; the kernel chooses where it listens."""
        options = links.parse_arguments(["--journal", self.journal, *more, f"x=0:127.0.0.1:{server_port}"])
        self.network = links.Network(options)
        await self.network.open()
        return self.network.servers[0].sockets[0].getsockname()[1]

    async def open_echo(self):
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        return await self.open(server.sockets[0].getsockname()[1])

    async def connected(self, port, **more):
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, **more), PATIENCE)

    async def said(self, reader, count):
        return await asyncio.wait_for(reader.readexactly(count), PATIENCE)

    async def is_closed(self, reader):
        try:
            return await asyncio.wait_for(reader.read(1), PATIENCE) == b""
        except ConnectionError:
            return True

    async def test_bytes_pass_and_the_connection_is_written_down(self):
        reader, writer = await self.connected(await self.open_echo())
        writer.write(b"hello")
        self.assertEqual(await self.said(reader, 5), b"hello")
        with open(self.journal, encoding="utf-8") as file:
            line = json.loads(file.readline())
        self.assertEqual((line["event"], line["link"]), ("opened", "x"))
        self.assertLessEqual(line["accepted"], line["time"])

    async def test_what_is_frozen_arrives_in_its_order_when_it_heals(self):
        port = await self.open_echo()
        reader, writer = await self.connected(port)
        self.network.obey("freeze x")
        writer.write(b"one ")
        late_reader, late_writer = await self.connected(port)
        late_writer.write(b"late")
        writer.write(b"two")
        answer = asyncio.create_task(reader.readexactly(7))
        for _ in range(100):
            await asyncio.sleep(0)
        self.assertFalse(answer.done())
        self.network.obey("heal x freeze")
        self.assertEqual(await asyncio.wait_for(answer, PATIENCE), b"one two")
        self.assertEqual(await self.said(late_reader, 4), b"late")

    async def test_a_refused_link_ends_what_is_there_and_what_comes(self):
        port = await self.open_echo()
        reader, writer = await self.connected(port)
        writer.write(b"a")
        await self.said(reader, 1)
        self.network.obey("refuse *")
        self.assertTrue(await self.is_closed(reader))
        new_reader, _ = await self.connected(port)
        self.assertTrue(await self.is_closed(new_reader))
        self.network.obey("heal *")
        reader, writer = await self.connected(port)
        writer.write(b"b")
        self.assertEqual(await self.said(reader, 1), b"b")

    async def test_one_fault_heals_and_the_other_stays(self):
        await self.open_echo()
        self.network.obey("slow x 50")
        self.network.obey("freeze x")
        self.network.obey("heal x slow")
        self.assertFalse(self.network.links["x"].flowing.is_set())
        self.assertEqual(self.network.links["x"].delay, 0)

    async def test_an_answer_is_slow(self):
        reader, writer = await self.connected(await self.open_echo())
        self.network.obey("slow x 50")
        begin = asyncio.get_running_loop().time()
        writer.write(b"a")
        await self.said(reader, 1)
        self.assertGreaterEqual(asyncio.get_running_loop().time() - begin, 0.04)

    async def test_what_nobody_knows_is_refused_by_name(self):
        await self.open_echo()
        for line, word in (("melt x", "melt"), ("freeze y", "'y'"), ("errors x 503 50", "'x'")):
            with self.assertRaisesRegex(ValueError, word):
                self.network.obey(line)

    # ---- HTTP ----

    async def open_https(self):
        pair = {name: os.path.join(self.folder.name, name) for name in ("key", "certificate")}
        command = ["openssl", *CERTIFICATE.format(**pair).split()]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair["certificate"], pair["key"])
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=context)
        self.client_context = ssl.create_default_context(cafile=pair["certificate"])
        more = ("--certificate", pair["certificate"], "--key", pair["key"], "--authority", pair["certificate"])
        return await self.open(server.sockets[0].getsockname()[1], *more)

    async def serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests.append(await reader.readexactly(2))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async def ask(self, port, count):
        """First lines of the answers to so many requests; None where there was none."""
        answers, reader = [], None
        for _ in range(count):
            if not reader:
                reader, writer = await self.connected(port, ssl=self.client_context)
            writer.write(b"PATCH /x HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi")
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
                await self.said(reader, int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                answers.append(head.split()[1].decode())
            except (asyncio.IncompleteReadError, ConnectionError):
                answers.append(None)
                reader = None
        return answers

    async def test_requests_are_answered_with_errors_as_often_as_told(self):
        port = await self.open_https()
        self.assertEqual(await self.ask(port, 2), ["200", "200"])
        self.network.obey("errors x 429 50")
        self.assertEqual(await self.ask(port, 6), ["200", "429"] * 3)
        self.assertEqual(len(self.requests), 5)
        self.network.obey("heal x errors")
        self.assertEqual(await self.ask(port, 2), ["200", "200"])

    async def test_lost_answers_are_of_requests_that_were_executed(self):
        port = await self.open_https()
        self.network.obey("lose x 50")
        self.assertEqual(await self.ask(port, 6), ["200", None] * 3)
        self.assertEqual(len(self.requests), 6)


if __name__ == "__main__":
    unittest.main()
