"""A served tree on a simulated machine, with clients that send what they are given."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from ottla.coordination.served.limits import ServedLimits
from ottla.coordination.served.server import TreeServer
from ottla.coordination.zookeeper.codes import NOTIFICATION_XID, OpCode
from ottla.coordination.zookeeper.frames import (
    decode_answer,
    decode_answer_header,
    decode_connect_answer,
    decode_event,
    encode_connect,
    encode_request,
)
from ottla.coordination.zookeeper.messages import ConnectAnswer, ConnectRequest, NodeEvent
from ottla.ports.memory import MemoryPorts, World
from ottla.ports.memory.processes import Process, task_of_a_process

T = TypeVar("T")

PORT = 2181
DIRECTORY = "/data/tree"


class SimulatedTree:
    def __init__(self, world: World, limits: ServedLimits | None = None) -> None:
        self.world = world
        self.ports: MemoryPorts = world.machine("tree")
        self.limits = limits or ServedLimits()
        self.lost: list[str] = []
        self.life = Process("tree")
        world.loop.set_task_factory(task_of_a_process)
        self.server = self._server()

    def _server(self) -> TreeServer:
        return TreeServer(self.ports, DIRECTORY, self.limits, on_lost=self.lost.append)

    @property
    def connect(self) -> str:
        return f"tree:{PORT}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run_until_complete(work)

    async def start(self) -> None:
        await self.world.loop.create_task(self.server.start("", PORT), context=self.life.context())

    async def restart(self) -> None:
        """A clean stop, and the next life."""
        await self.world.loop.create_task(self.server.stop(), context=self.life.context())
        await self.kill()

    async def kill(self) -> None:
        """SIGKILL, and the next life."""
        self.world.loop.end(self.life)
        await self._begin(self.world.kill("tree"))

    async def crash(self) -> None:
        """A power cut, and the next life."""
        self.world.loop.end(self.life)
        await self._begin(self.world.crash("tree"))

    async def _begin(self, ports: MemoryPorts) -> None:
        self.ports = ports
        self.life = Process("tree")
        self.server = self._server()
        await self.start()


class SimulatedClient(asyncio.Protocol):
    """One connection. `answers` and `events` are what came, in their order also in `frames`."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.closed = asyncio.Event()
        self.session: ConnectAnswer | None = None
        #: Answers (header and fields) and notifications as they came.
        self.frames: list[Any] = []
        self._buffer = b""
        self._asked: deque[tuple[int, int]] = deque()
        self._xid = 0
        self._came = asyncio.Event()

    @classmethod
    async def open(cls, tree: SimulatedTree, machine: str = "client") -> SimulatedClient:
        """Connected, and nothing more."""
        network = tree.world.machine(machine).network
        _, client = await network.connect(cls, "tree", PORT)
        assert isinstance(client, SimulatedClient)
        return client

    @classmethod
    async def greeted(
        cls,
        tree: SimulatedTree,
        timeout_ms: int = 6000,
        session: ConnectAnswer | None = None,
        machine: str = "client",
    ) -> SimulatedClient:
        client = await cls.open(tree, machine)
        known = (session.session_id, session.password) if session is not None else (0, bytes(16))
        client.write(encode_connect(ConnectRequest(0, 0, timeout_ms, *known)))
        await client.until(lambda: client.session is not None or client.closed.is_set())
        return client

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self._came.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            (length,) = struct.unpack_from(">i", self._buffer)
            if len(self._buffer) < 4 + length:
                break
            frame, self._buffer = self._buffer[4 : 4 + length], self._buffer[4 + length :]
            self._take(frame)
        self._came.set()

    def _take(self, frame: bytes) -> None:
        if self.session is None:
            self.session = decode_connect_answer(frame)
            return
        header, reader = decode_answer_header(frame)
        if header.xid == NOTIFICATION_XID:
            self.frames.append(decode_event(reader))
            return
        if self._asked and self._asked[0][0] == header.xid:
            _, op = self._asked.popleft()
        else:
            op = OpCode.PING
        self.frames.append((header, decode_answer(op, reader) if header.error == 0 else None))

    # Requests.

    def write(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def send(self, op: OpCode, request: tuple[Any, ...] | None = None, xid: int | None = None) -> int:
        if xid is None:
            self._xid += 1
            xid = self._xid
        if op != OpCode.PING:
            self._asked.append((xid, op))
        self.write(encode_request(xid, op, request))
        return xid

    async def call(self, op: OpCode, request: tuple[Any, ...] | None = None) -> Any:
        """The answer's fields; an error's code."""
        xid = self.send(op, request)
        await self.until(lambda: self.answer(xid) is not None or self.closed.is_set())
        answer = self.answer(xid)
        assert answer is not None, "the connection was closed"
        header, fields = answer
        return header.error or fields

    def answer(self, xid: int) -> Any:
        return next((each for each in self.frames if not isinstance(each, NodeEvent) and each[0].xid == xid), None)

    @property
    def events(self) -> list[NodeEvent]:
        return [each for each in self.frames if isinstance(each, NodeEvent)]

    async def until(self, condition: Any, seconds: float = 30) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._came.clear()
                await self._came.wait()

    def close(self) -> None:
        assert self.transport is not None
        self.transport.abort()
