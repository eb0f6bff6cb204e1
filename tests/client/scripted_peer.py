"""A peer whose every byte the test decides: a TCP server that calls the script with each connection."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from ottla.protocol.apis import APIS, ApiKey
from ottla.protocol.generated.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.header import RequestHeader, decode_request_header, encode_response
from ottla.protocol.message import Message
from tests.client.proxy import read_frame


class Peer:
    """One accepted connection, from the broker's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> RequestHeader:
        """The next request's header."""
        return decode_request_header(await read_frame(self.reader))[0]

    async def answer(self, header: RequestHeader, message: Message, version: int | None = None) -> None:
        used = header.api_version if version is None else version
        await self.send(encode_response(header.api_key, used, header.correlation_id, message))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def negotiate(self, **ranges: tuple[int, int]) -> None:
        """Answers ApiVersions with everything, or with `ranges` (by ApiKey's names) instead where they are given."""
        header = await self.request()
        assert header.api_key == ApiKey.API_VERSIONS
        await self.answer(header, all_versions(**ranges))


def all_versions(**ranges: tuple[int, int]) -> ApiVersionsResponse:
    keys = [
        ApiVersion(api_key=key, min_version=row.min, max_version=row.max)
        for key, row in APIS.items()
        if ApiKey(key).name not in ranges
    ]
    keys += [
        ApiVersion(api_key=ApiKey[name], min_version=low, max_version=high) for name, (low, high) in ranges.items()
    ]
    return ApiVersionsResponse(api_keys=keys)


Script = Callable[[Peer], Awaitable[None]]


class ScriptedServer:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.port = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
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

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                await self._script(Peer(reader, writer))
        finally:
            writer.close()
            self._tasks.discard(task)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body
