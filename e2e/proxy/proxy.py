#!/usr/bin/env python3
"""A TCP proxy in front of a broker that understands MQTT 3.1.1 and does what it is told to.

Lines written to the control pipe, each answered by a line of the journal:
  drop N WORD     the next N messages from clients whose topic holds WORD never arrive; the sender
                  is told that they did, as by a broker that dies a moment later
  lose N WORD     the next N messages from the broker whose topic holds WORD never arrive; the broker
                  is told that they did: lost as in a broker that forgets what is in flight
  hold WORD       from the next message from the broker whose topic holds WORD on, that client
                  hears nothing, acknowledgements neither, nor that the broker has died; for several
                  WORDs if said several times
  delay WORD      from the next message from the broker whose topic holds WORD on, that client gets
                  no messages, but everything else: acknowledgements, and answers to subscriptions
  release         of all of them; what was delayed arrives in its order
  cut             every connection is closed, and whatever is under way on it is gone
  refuse | accept new connections are closed at once, and are not
The journal has a line for each message dropped, each client held or delayed and each connection.
"""

import argparse
import asyncio
import json
import sys
import time

from control import listen_to

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 3, 4, 5, 6, 7


class Closed(Exception):
    """The other side ended the connection, or sent what is no packet."""


async def read_packet(reader):
    """(first byte, the whole packet)."""
    try:
        packet = bytearray(await reader.readexactly(1))
        length = shift = 0
        while True:
            byte = (await reader.readexactly(1))[0]
            packet.append(byte)
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
            if shift > 21:
                raise Closed("a length of more than four bytes")
        header = len(packet)
        packet += await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise Closed(str(error)) from error
    return packet, header


class Publish:
    """What is read of a PUBLISH packet: topic, QoS, number."""

    def __init__(self, packet, header):
        self.qos = packet[0] >> 1 & 3
        end = header + 2 + int.from_bytes(packet[header : header + 2], "big")
        self.topic = packet[header + 2 : end].decode("utf-8", "replace")
        self.number = bytes(packet[end : end + 2]) if self.qos else b""


class Connection:
    def __init__(self, proxy, client, broker):
        self.proxy, self.client, self.broker = proxy, client, broker
        self.dropped = set()  # numbers of dropped QoS 2 messages: their PUBREL is answered here
        self.released = asyncio.Event()
        self.released.set()
        self.delayed = None  # packets, from the first that is delayed on: the broker's window bounds them
        self.is_closed = False

    def close(self):
        self.is_closed = True
        for _reader, writer in (self.client, self.broker):
            writer.close()
        self.released.set()

    def release(self):
        self.released.set()
        for packet in self.delayed or []:
            self.client[1].write(packet)
        self.delayed = None

    def _is_delayed(self, packet, message):
        if self.delayed is None:
            if not self.proxy.delays(message.topic):
                return False
            self.delayed = []
            self.proxy.write("delayed")
        self.delayed.append(packet)
        return True

    async def run(self):
        ways = [asyncio.create_task(way) for way in (self._upwards(), self._downwards())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        self.close()

    async def _upwards(self):
        while True:
            packet, header = await read_packet(self.client[0])
            if not self._is_dropped(packet, header):
                self.broker[1].write(packet)
                await self.broker[1].drain()

    def _is_dropped(self, packet, header):
        kind = packet[0] >> 4
        if kind == PUBREL and bytes(packet[header:]) in self.dropped:
            self.dropped.remove(bytes(packet[header:]))
            self._answer(PUBCOMP, bytes(packet[header:]))
            return True
        if kind != PUBLISH:
            return False
        message = Publish(packet, header)
        if not self.proxy.takes_away("drop", message.topic):
            return False
        if message.qos == 2:
            self.dropped.add(message.number)
        if message.qos:
            self._answer(PUBACK if message.qos == 1 else PUBREC, message.number)
        return True

    def _is_lost(self, message):
        """Of QoS 0 and 1, which are all that a controller asks for."""
        if not self.proxy.takes_away("lose", message.topic):
            return False
        if message.qos:
            self.broker[1].write(bytes([PUBACK << 4, 2]) + message.number)
        return True

    def _answer(self, kind, number):
        self.client[1].write(bytes([kind << 4, 2]) + number)

    async def _downwards(self):
        while True:
            packet, header = await read_packet(self.broker[0])
            if packet[0] >> 4 == PUBLISH:
                message = Publish(packet, header)
                if self._is_lost(message) or self._is_delayed(packet, message):
                    continue
                if self.proxy.holds(message.topic):
                    self.released.clear()
                    self.proxy.write("held")
            await self.released.wait()
            if self.is_closed:
                return  # what was held is gone
            self.client[1].write(packet)
            await self.client[1].drain()


class Proxy:
    def __init__(self, options):
        self.options = options
        self.connections = set()
        self.taken = []  # [verb, messages left, word]
        self.holding = []  # words
        self.delaying = []
        self.is_refusing = False
        self.journal = open(options.journal, "a", encoding="utf-8", buffering=1)

    def write(self, event, **fields):
        print(json.dumps({"time": time.time(), "event": event, **fields}), file=self.journal)

    def takes_away(self, verb, topic):
        for rule in self.taken:
            if rule[0] == verb and rule[1] and rule[2] in topic:
                rule[1] -= 1
                self.write("dropped", topic=topic)
                return True
        return False

    def holds(self, topic):
        return any(word in topic for word in self.holding)

    def delays(self, topic):
        return any(word in topic for word in self.delaying)

    async def accept(self, reader, writer):
        if self.is_refusing:
            writer.close()
            return
        try:
            broker = await asyncio.open_connection(self.options.host, self.options.port)
        except OSError as error:
            self.write("unreachable", error=str(error))
            writer.close()
            return
        connection = Connection(self, (reader, writer), broker)
        self.connections.add(connection)
        self.write("connected", count=len(self.connections))
        try:
            await connection.run()
        finally:
            self.connections.discard(connection)
            self.write("closed", count=len(self.connections))

    def obey(self, line):
        verb, *arguments = line.split()
        if verb in ("drop", "lose"):
            self.taken.append([verb, int(arguments[0]), arguments[1]])
        elif verb == "hold":
            self.holding.append(arguments[0])
        elif verb == "delay":
            self.delaying.append(arguments[0])
        elif verb == "release":
            self.holding = []
            self.delaying = []
            for connection in self.connections:
                connection.release()
        elif verb == "cut":
            for connection in list(self.connections):
                connection.close()
        elif verb in ("refuse", "accept"):
            self.is_refusing = verb == "refuse"
        else:
            raise ValueError(f"unknown verb '{verb}'")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--listen", type=int, required=True, metavar="PORT")
    parser.add_argument("--address", default="127.0.0.1", help="where it listens")
    parser.add_argument("--broker", required=True, metavar="HOST:PORT")
    parser.add_argument("--control", required=True, metavar="FIFO")
    parser.add_argument("--journal", required=True, metavar="FILE")
    options = parser.parse_args()
    options.host, _, port = options.broker.rpartition(":")
    options.port = int(port)
    return options


async def serve(options):
    proxy = Proxy(options)
    listen_to(options.control, proxy.obey, proxy.write)
    server = await asyncio.start_server(proxy.accept, options.address, options.listen)
    proxy.write("listening")
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(serve(parse_arguments()))
    except KeyboardInterrupt:
        sys.exit(130)
