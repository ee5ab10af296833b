"""The control pipe of a proxy: lines that are obeyed, each answered by a line of the journal."""

import asyncio
import os

CHUNK = 65536


def listen_to(path, obey, write):
    """Held open for writing too, so that writers may come and go. obey(line) raises what is wrong
    with it; write(event, **fields) is the journal."""
    file = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    rest = b""

    def readable():
        nonlocal rest
        *lines, rest = (rest + os.read(file, CHUNK)).split(b"\n")
        for line in lines:
            try:
                obey(line.decode())
                write("control", line=line.decode())
            except (ValueError, IndexError, TypeError) as error:
                write("bad-control", line=line.decode(), error=str(error))

    asyncio.get_running_loop().add_reader(file, readable)
