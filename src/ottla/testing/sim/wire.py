"""A client that sends exactly what it is given: Kafka frames over a simulated connection."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

from ottla.model import TopicPartition
from ottla.ports import Network
from ottla.protocol.apis import api
from ottla.protocol.fields import INT32, LENGTH_BYTES
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message

#: How long an answer is waited for. A machine without power says nothing.
ANSWER_S_MAX: Final = 3.0


class Unreachable(Exception):
    """No answer: refused, broken, timed out. Whether the request was carried out is not known."""


class Wire(asyncio.Protocol):
    """One connection; answers come in the order of the requests."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._asked: deque[tuple[int, int, int, asyncio.Future[Any]]] = deque()
        self._correlation = 0
        self.lost: str | None = None

    @classmethod
    async def open(cls, network: Network, host: str, port: int, client_id: str) -> Wire:
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                _, wire = await network.connect(lambda: cls(client_id), host, port)
        except OSError as error:  # TimeoutError is one
            raise Unreachable(f"cannot connect: {error!r}") from error
        assert isinstance(wire, cls)
        return wire

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        while len(received) >= LENGTH_BYTES:
            end = LENGTH_BYTES + INT32.unpack_from(received)[0]
            if len(received) < end:
                break
            frame = bytes(received[LENGTH_BYTES:end])
            del received[:end]
            self._answered(frame)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(f"connection lost: {error!r}")

    def _answered(self, frame: bytes) -> None:
        key, version, correlation, future = self._asked.popleft()
        found, _, position = decode_response_header(frame, key, version)
        assert found == correlation, f"answer {found} where {correlation} was due"
        response, end = api(key).response_type().decode(frame, version, position)
        assert end == len(frame), f"{len(frame) - end} bytes behind an answer"
        if not future.done():
            future.set_result(response)

    def _fail(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        while self._asked:
            future = self._asked.popleft()[3]
            if not future.done():
                future.set_exception(Unreachable(why))
                future.exception()  # nobody may be waiting for it any more

    # Requests

    def send(self, message: Message, version: int) -> asyncio.Future[Any]:
        """The future is the decoded answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.lost is not None or self._transport is None or self._transport.is_closing():
            future.set_exception(Unreachable(self.lost or "closed"))
            future.exception()
            return future
        self._correlation += 1
        key = message.API_KEY
        header = RequestHeader(
            api_key=key, api_version=version, correlation_id=self._correlation, client_id=self._client_id
        )
        if not _expects_no_answer(message):
            self._asked.append((key, version, self._correlation, future))
        self._transport.write(encode_request(header, message))
        return future

    async def answer(self, future: asyncio.Future[Any]) -> Any:
        """Waits for an answer; raises Unreachable, and then the connection is closed."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await asyncio.shield(future)
        except TimeoutError:
            self.abort("no answer in time")
            raise Unreachable("no answer in time") from None

    async def ask(self, message: Message, version: int) -> Any:
        return await self.answer(self.send(message, version))

    def abort(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._fail(why)


def _expects_no_answer(message: Any) -> bool:
    return bool(message.API_KEY == 0 and message.acks == 0)


class Client:
    """Connects when there is something to say, and again when the connection was lost."""

    def __init__(self, network: Network, name: str, host: str, port: int) -> None:
        self.name = name
        self._network = network
        self._host = host
        self._port = port
        self._wire: Wire | None = None

    async def connected(self) -> Wire:
        """Raises Unreachable."""
        if self._wire is None or self._wire.lost is not None:
            self._wire = await Wire.open(self._network, self._host, self._port, self.name)
        return self._wire

    async def ask(self, message: Message, version: int) -> Any:
        """One attempt; raises Unreachable."""
        return await (await self.connected()).ask(message, version)

    # One broker is all there is

    async def leader_of(self, tp: TopicPartition) -> int:
        del tp
        return 0

    def broker(self, broker: int) -> Client:
        del broker
        return self

    def epoch_of(self, tp: TopicPartition) -> int:
        del tp
        return -1

    def forget(self, tp: TopicPartition) -> None:
        """Nobody else could lead it."""

    async def ask_leader(self, tp: TopicPartition, message: Message, version: int) -> Any:
        del tp
        return await self.ask(message, version)

    async def ask_controller(self, message: Message, version: int) -> Any:
        return await self.ask(message, version)

    def close(self) -> None:
        if self._wire is not None:
            self._wire.abort("closed by us")
            self._wire = None
