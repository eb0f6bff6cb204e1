"""A TCP proxy in front of a real broker that understands frames, so that a test can say what goes wrong with which.

A rule sees each request before the broker does and says what becomes of it. Metadata's answers are rewritten so that
clients stay on the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ottla.protocol.apis import ApiKey, api
from ottla.protocol.generated.metadata import MetadataResponse
from ottla.protocol.generated.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.protocol.header import decode_request_header, decode_response_header, encode_response
from ottla.protocol.message import Message


@dataclass(frozen=True)
class Request:
    key: int
    version: int
    correlation_id: int
    frame: bytes
    body_at: int

    def decoded(self) -> Any:
        return api(self.key).request_type().decode(self.frame, self.version, self.body_at)[0]


@dataclass(frozen=True)
class Pass:
    """To the broker and back; `change` may alter the answer, which goes on its way when `until` is set."""

    change: Callable[[Any], None] | None = None
    until: asyncio.Event | None = None


@dataclass(frozen=True)
class Reply:
    """The proxy answers; the broker hears nothing."""

    message: Message


@dataclass(frozen=True)
class Raw:
    """The proxy sends these bytes instead of an answer; the broker hears nothing."""

    data: bytes


@dataclass(frozen=True)
class Cut:
    """The connection ends: before the broker hears of the request, or after it has answered, with so many bytes of
    the answer sent."""

    forwarded: bool = False
    answer_bytes: int = 0


@dataclass(frozen=True)
class Silence:
    """Nobody hears of the request, and nobody answers."""


Action = Pass | Reply | Raw | Cut | Silence
Rule = Callable[[Request], Action]


class Proxy:
    def __init__(self, upstream: str, rule: Rule | None = None) -> None:
        self._upstream = upstream.split(":")
        self.rule: Rule = rule or (lambda _: Pass())
        #: Every request that came, in order.
        self.requests: list[Request] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def count(self, key: int) -> int:
        return sum(one.key == key for one in self.requests)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._on_client, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._upstream)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await self._serve(reader, writer, upstream_reader, upstream_writer):
                    pass
        finally:
            writer.close()
            upstream_writer.close()
            self._tasks.discard(task)

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upstream_reader: asyncio.StreamReader,
        upstream_writer: asyncio.StreamWriter,
    ) -> bool:
        frame = await read_frame(reader)
        header, body_at = decode_request_header(frame)
        request = Request(header.api_key, header.api_version, header.correlation_id, frame, body_at)
        self.requests.append(request)
        action = self.rule(request)
        if isinstance(action, Silence):
            return True
        if isinstance(action, Reply):
            writer.write(encode_response(request.key, request.version, request.correlation_id, action.message))
            await writer.drain()
            return True
        if isinstance(action, Raw):
            writer.write(action.data)
            await writer.drain()
            return True
        if isinstance(action, Cut) and not action.forwarded:
            return False
        upstream_writer.write(struct.pack(">i", len(frame)) + frame)
        answer = await read_frame(upstream_reader)
        if isinstance(action, Cut):
            writer.write((struct.pack(">i", len(answer)) + answer)[: action.answer_bytes])
            await writer.drain()
            return False
        if action.until is not None:
            await action.until.wait()
        answer = self._changed(request, answer, action)
        writer.write(struct.pack(">i", len(answer)) + answer)
        await writer.drain()
        return True

    def _changed(self, request: Request, answer: bytes, action: Pass) -> bytes:
        if request.key != ApiKey.METADATA and action.change is None:
            return answer
        correlation_id, _, pos = decode_response_header(answer, request.key, request.version)
        message, _ = api(request.key).response_type().decode(answer, request.version, pos)
        if isinstance(message, MetadataResponse):
            for broker in message.brokers:
                broker.host, broker.port = "127.0.0.1", self.port
        if action.change is not None:
            action.change(message)
        return encode_response(request.key, request.version, correlation_id, message)[4:]


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def produce_refusal(request: Request, error: int, log_start_offset: int = -1) -> ProduceResponse:
    """The answer that refuses all partitions of a Produce request."""
    asked = request.decoded()
    assert isinstance(asked, ProduceRequest)
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=one.index,
                        error_code=error,
                        base_offset=-1,
                        log_start_offset=log_start_offset if request.version >= 5 else -1,
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in asked.topic_data
        ]
    )
