"""Serves `/metrics` over HTTP/1.0: one request a connection, answered from the registry when it is asked.

A scraper asks every few seconds, so nothing is kept open and nothing is cached. The port is for the operator's own
network and speaks no more HTTP than a scrape needs; what is not a scrape gets one line that says so.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.metrics import CONTENT_TYPE, Registry
from ottla.steps import in_turns

log_event = logs.logger("metrics")

PATH: Final = "/metrics"
#: A scrape's request line and headers have some 300 bytes.
REQUEST_BYTES_MAX: Final = 8 << 10
#: From the connection to its last byte; longer than that, and the scraper has given up.
SECONDS_MAX: Final = 10.0
#: Scrapers that ask at the same time; one more is closed at once.
CONNECTIONS_MAX: Final = 32

_HEAD_END: Final = b"\r\n\r\n"
_BARE_HEAD_END: Final = b"\n\n"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
}


class MetricsEndpoint:
    """The listening side. `start` raises OSError where the address cannot be had."""

    def __init__(self, registry: Registry, host: str, port: int) -> None:
        self.registry = registry
        self.host = host
        #: The port that was asked for, and once it listens the one it has.
        self.port = port
        self.connections: set[_Scrape] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Scrape(self), self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        log_event.info("metrics are served", address=self.address, path=PATH)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.abort()
            await self._server.wait_closed()
            self._server = None


class _Scrape(asyncio.Protocol):
    """One connection: a request's head comes in, an answer goes out, and that is all."""

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._head = bytearray()
        self._answered = False
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._rendering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._endpoint.connections) >= CONNECTIONS_MAX:
            transport.abort()
            return
        self._endpoint.connections.add(self)
        self._deadline = asyncio.get_running_loop().call_later(SECONDS_MAX, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._rendering is not None:
            self._rendering.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._answered:
            return
        self._head += data[: REQUEST_BYTES_MAX + 1 - len(self._head)]
        if _HEAD_END in self._head or _BARE_HEAD_END in self._head:
            self._begin_answer()
        elif len(self._head) > REQUEST_BYTES_MAX:
            self._answer(431, f"a request may have {REQUEST_BYTES_MAX} bytes\n")

    def eof_received(self) -> bool:
        if not self._answered:
            self.abort()
        return True  # A scraper that half-closes still gets its answer.

    def _decide(self) -> tuple[int, str]:
        line = bytes(self._head).split(b"\n", 1)[0].decode("latin-1").split()
        if len(line) != 3 or not line[2].startswith("HTTP/"):
            return 400, "this port speaks HTTP\n"
        method, target, _ = line
        if target.partition("?")[0] != PATH:
            return 404, f"metrics are under {PATH}\n"
        if method not in {"GET", "HEAD"}:
            return 405, "metrics can only be read\n"
        return 200, ""

    def _begin_answer(self) -> None:
        status, text = self._decide()
        if status != 200:
            self._answer(status, text)
            return
        self._answered = True
        self._rendering = asyncio.ensure_future(self._scrape())

    async def _scrape(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            text = await in_turns(self._endpoint.registry.rendering(), lambda: int(loop.time() * 1000))
        except Exception as fault:
            log_event.error("a scrape failed", reason=repr(fault))
            self.abort()
        else:
            self._answer(200, text)

    def _answer(self, status: int, text: str) -> None:
        assert self._transport is not None
        self._answered = True
        body = text.encode()
        head = [
            f"HTTP/1.0 {status} {_REASONS[status]}",
            f"Content-Type: {CONTENT_TYPE if status == 200 else 'text/plain; charset=utf-8'}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        if status == 405:
            head.append("Allow: GET, HEAD")
        self._transport.write("\r\n".join([*head, "", ""]).encode("ascii"))
        if not self._head.startswith(b"HEAD "):
            self._transport.write(body)
        self._head.clear()
        self._transport.close()
