"""Links that a test cuts: what is cut stalls and is not refused, other links go on, and nothing is lost in the end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

from ottla.testing.links import Links, _inode_of

SECONDS_MAX = 60
#: Another process that connects, sends a line and prints what comes back.
OTHER = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as link:
    link.sendall(b"other\\n")
    print(link.makefile().readline().strip(), flush=True)
"""


class World:
    def __init__(self) -> None:
        self.others: dict[str, int] = {}
        self.links = Links(lambda: {"us": os.getpid(), **self.others})

    async def open(self) -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line)
            writer.close()

        self.server = await asyncio.start_server(echo, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.proxy = await self.links.proxy("server", lambda: self.port)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.proxy)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work, SECONDS_MAX)

    asyncio.run(limited())


async def is_silent(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(0.2):
            await reader.readline()
    except TimeoutError:
        return True
    return False


def test_what_is_cut_stalls_and_goes_on_when_it_is_healed() -> None:
    async def work() -> None:
        world = World()
        await world.open()
        reader, writer = await world.connect()
        writer.write(b"one\n")
        assert await reader.readline() == b"one\n"
        world.links.cut("server", "us")
        writer.write(b"two\n")
        assert await is_silent(reader)
        late_reader, late_writer = await world.connect()
        late_writer.write(b"late\n")
        assert await is_silent(late_reader)
        world.links.heal()
        assert await reader.readline() == b"two\n"
        assert await late_reader.readline() == b"late\n"
        await world.links.close()

    run(work())


def test_other_links_of_the_same_end_go_on() -> None:
    async def work() -> None:
        world = World()
        await world.open()
        world.links.cut("us", "server")
        command = [sys.executable, "-c", OTHER, str(world.proxy)]
        other = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        world.others["other"] = other.pid
        said, _ = await other.communicate()
        assert said == b"other\n"
        await world.links.close()

    run(work())


def test_an_end_that_goes_away_is_felt_by_the_other() -> None:
    async def work() -> None:
        world = World()
        await world.open()
        reader, writer = await world.connect()
        writer.write_eof()
        assert await reader.readline() == b""
        world.server.close()
        await world.server.wait_closed()
        reader, _ = await world.connect()
        assert await reader.readline() == b""
        await world.links.close()

    run(work())


def test_a_connection_is_told_from_others_that_have_its_port() -> None:
    """The system gives a port away again where the other end is another one: a link to nobody would never be cut."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ends = []
        port = 0
        for server in (one, other):
            end = socket.socket()
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            end.bind(("127.0.0.1", port))
            port = end.getsockname()[1]
            end.connect(server.getsockname())
            ends.append(end)
        for end in ends:
            assert _inode_of(port, end.getpeername()[1]) == str(os.fstat(end.fileno()).st_ino)
            end.close()
