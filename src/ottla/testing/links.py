"""Links between processes of this host that a test may cut: a proxy in user space before each address.

A connection is known by the process that opened it, which the system says (/proc), so that one broker may be cut off
from another, and both go on with the third. What is cut stalls, as on a network that drops packets: nothing is refused,
nothing is closed, and bytes wait on either side until the link is healed or somebody gives up.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

_HOST: Final = "127.0.0.1"
_PIECE_BYTES: Final = 256 * 1024

#: Two ends, in either order.
Pair = frozenset[str]


class Links:
    """Proxies on one loop. Ends have names; `pids` says which process is which end."""

    def __init__(self, pids: Callable[[], Mapping[str, int]]) -> None:
        self._pids = pids
        self._cut: set[Pair] = set()
        self._healed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._pumps: set[asyncio.Task[None]] = set()

    async def proxy(self, name: str, port: Callable[[], int]) -> int:
        """The port of a new proxy before what this end listens on; `port` is asked at each connection."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(name, port(), reader, writer)

        server = await asyncio.start_server(accept, _HOST, 0)
        self._servers.append(server)
        chosen: int = server.sockets[0].getsockname()[1]
        return chosen

    def cut(self, one: str, other: str) -> None:
        self._cut.add(frozenset((one, other)))

    @property
    def are_whole(self) -> bool:
        return not self._cut

    def heal(self) -> None:
        self._cut.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)

    async def _serve(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._pumps.add(task)
        pair = frozenset((name, self._who(writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1])))
        try:
            await self._until_whole(pair)
            ahead, behind = await asyncio.open_connection(_HOST, port)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pump(pair, reader, behind))
                    group.create_task(self._pump(pair, ahead, writer))
            finally:
                behind.close()
        except (OSError, ExceptionGroup):
            pass  # either side has gone
        finally:
            self._pumps.discard(task)
            writer.close()

    async def _pump(self, pair: Pair, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(_PIECE_BYTES):
            await self._until_whole(pair)
            sink.write(data)
            await sink.drain()
        with suppress(OSError):
            sink.write_eof()

    async def _until_whole(self, pair: Pair) -> None:
        while pair in self._cut:
            await self._healed.wait()

    def _who(self, port: int, to_port: int) -> str:
        """The end whose process has this connection; "" where none of them has."""
        inode = _inode_of(port, to_port)
        for name, pid in self._pids().items():
            if inode is not None and _holds(pid, inode):
                return name
        return ""


def _inode_of(port: int, to_port: int) -> str | None:
    """Of the socket that is connected from one port to another: a second one may be connected from the same port, to
    somewhere else."""
    wanted = re.compile(rf"^\s*\d+: \w+:{port:04X} \w+:{to_port:04X} 01(?:\s+\S+){{5}}\s+(\d+)")
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table:
            if found := wanted.match(line):
                return found.group(1)
    return None


def _holds(pid: int, inode: str) -> bool:
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if os.readlink(f"{folder}/{name}") == f"socket:[{inode}]":
                    return True
    return False
