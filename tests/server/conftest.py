"""A broker in this process, in a thread with a loop of its own, and raw sockets to it."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, Self, TypeVar

import pytest

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.controller.interface import TopicToCreate
from ottla.model import ErrorCode
from ottla.ports.real import real_ports
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.testing.shifting import Shift, ShiftedClock, ShiftedLoop, advance

T = TypeVar("T")
#: For what comes at once: the machine may be busy with others.
SECONDS_MAX = 60.0


class BrokerThread:
    """Starts and stops with `with`; `run` carries a coroutine over to the broker's loop."""

    def __init__(self, folder: str, **properties: str) -> None:
        self.properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": f"{folder}/logs",
            # Many records of tests are years old. Retention looks half a minute behind the start, and takes the closed
            # segments of such; the others it closes, and takes with the next look.
            "log.retention.ms": "-1",
        }
        self.properties.update(properties)
        self.loop = self._new_loop()
        self.broker: Broker
        self.port = 0
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    async def _start(self) -> None:
        self.ports = real_ports()
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port

    async def _stop(self) -> None:
        await self.broker.stop()
        self.ports.network.close()
        self.ports.workers.close()

    def __exit__(self, *exc: object) -> None:
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(SECONDS_MAX)
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(SECONDS_MAX)

    def look(self, question: Callable[[Broker], T]) -> T:
        """Asks the broker something on its own loop."""

        async def ask() -> T:
            return question(self.broker)

        return self.run(ask())

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        overrides = {key.replace("_", "."): value for key, value in configs.items()}
        assert self.broker.services is not None
        (created,) = self.run(
            self.broker.services.controller.create_topics([TopicToCreate(name, partitions, 1, configs=overrides)])
        )
        assert created.error == ErrorCode.NONE, created

    def connect(self) -> Peer:
        return Peer(self.port)


class MovedBroker(BrokerThread):
    """Its time goes on when a test says so: what is to be idle for minutes is, and what is not has a minute for it."""

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        self._shift = Shift()
        return ShiftedLoop(self._shift)

    async def _start(self) -> None:
        ports = real_ports()
        self.ports = replace(ports, clock=ShiftedClock(ports.clock, self._shift))
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port

    def advance(self, by: str) -> None:
        async def settled() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.run(advance(by, settled))


class Peer:
    """A client that says exactly what it is told to say."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.correlation = 0
        self.client_id = "test"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def frame(self, message: Message, version: int) -> bytes:
        self.correlation += 1
        header = RequestHeader(
            api_key=message.API_KEY, api_version=version, correlation_id=self.correlation, client_id=self.client_id
        )
        return encode_request(header, message)

    def exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            piece = self.socket.recv(size - len(got))
            if not piece:
                raise EOFError(f"closed after {len(got)} of {size} bytes")
            got += piece
        return bytes(got)

    def receive(self) -> bytes:
        """One answer without its length."""
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def ask(self, message: Message, version: int, answer: type[Message]) -> Any:
        self.send(self.frame(message, version))
        return self.answer(answer, version)

    def answer(self, answer: type[Message], version: int) -> Any:
        raw = self.receive()
        correlation, _, at = decode_response_header(raw, answer.API_KEY, version)
        response, end = answer.decode(raw, version, at)
        assert end == len(raw)
        self.last_correlation = correlation
        return response

    def is_closed(self) -> bool:
        """Waits until the broker has closed the connection; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path_factory.mktemp("broker"))) as broker:
        broker.create_topic("t", 2)
        yield broker


@pytest.fixture
def peer(running: BrokerThread) -> Iterator[Peer]:
    with running.connect() as client:
        yield client


@pytest.fixture
def make_broker(tmp_path: Any) -> Callable[..., BrokerThread]:
    def make(**properties: str) -> BrokerThread:
        return BrokerThread(str(tmp_path), **{key.replace("_", "."): value for key, value in properties.items()})

    return make
