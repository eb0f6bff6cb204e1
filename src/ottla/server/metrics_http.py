"""Serves `/metrics`, `/health` and `/ready` over HTTP/1.0: one request a connection.

A scraper asks every few seconds, so nothing is kept open and nothing is cached. The port is for the operator's own
network and speaks no more HTTP than a scrape needs; what is not a scrape gets one line that says so. It may be open
to more than scrapers all the same, so what connections cost is bounded: in number, in bytes, in time, and in what they
take of one turn of the loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla import logs
from ottla.metrics import CONTENT_TYPE, Registry
from ottla.ports.host_names import mistyped_as_unknown
from ottla.server.scrapes import ScrapedText, Scrapes

log_event = logs.logger("metrics")

PATH: Final = "/metrics"
#: Whether the process is well: one that is not should be started again.
HEALTH_PATH: Final = "/health"
#: Whether clients are served: not while the broker starts or stops.
READY_PATH: Final = "/ready"
#: A scrape's request line and headers have some 300 bytes.
REQUEST_BYTES_MAX: Final = 8 << 10
#: What may come behind a request, which nobody reads: a second request, mostly. More, and the connection is closed.
BEHIND_BYTES_MAX: Final = 8 << 10
#: From the connection to its last byte; longer than that, and the scraper has given up.
SECONDS_MAX: Final = 10.0
#: Connections at the same time. One more takes the place of the one that has been idle longest, where one is: that says
#: nothing, or takes nothing of its answer.
CONNECTIONS_MAX: Final = 32
#: Connections that are accepted in one turn of the loop: a tenth of a millisecond each.
ACCEPTS_A_TURN: Final = 8
#: Connections that wait in the system to be accepted.
BACKLOG: Final = 1024

_HEAD_END: Final = b"\r\n\r\n"
_BARE_HEAD_END: Final = b"\n\n"
_PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Condition(NamedTuple):
    """How a broker is, for a program that decides on starting it again or on sending clients to it."""

    #: Why it can go on no more; None where it is well.
    fault: str | None
    #: "starting", "ready" or "stopping".
    stage: str


READY: Final = Condition(None, "ready")


class MetricsEndpoint:
    """The listening side. `start` raises OSError where the address cannot be had."""

    def __init__(self, registry: Registry, host: str, port: int, condition: Callable[[], Condition]) -> None:
        self.scrapes = Scrapes(registry)
        self.condition = condition
        self.host = host
        #: The port that was asked for, and once it listens the one it has.
        self.port = port
        self.connections: dict[_Scrape, None] = {}
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        # Asyncio accepts as many in one turn as it lets wait: few, while the system lets more wait.
        with mistyped_as_unknown():
            self._server = await loop.create_server(lambda: _Scrape(self), self.host, self.port, backlog=ACCEPTS_A_TURN)
        for listening in self._server.sockets:
            with socket.socket(fileno=os.dup(listening.fileno())) as same:
                same.listen(BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        log_event.info("metrics are served", address=self.address, path=PATH)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.abort()
            self.scrapes.close()
            await self._server.wait_closed()
            self._server = None

    def has_room(self) -> bool:
        """Whether one more may come: that some are idle, or slow, keeps no scraper out."""
        if len(self.connections) < CONNECTIONS_MAX:
            return True
        idle = min((each for each in self.connections if each.is_idle), key=lambda each: each.moved_s, default=None)
        if idle is None:
            return False
        idle.abort()
        del self.connections[idle]
        return True


class _Scrape(asyncio.Protocol):
    """One connection: a request's head comes in, an answer goes out, and that is all."""

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint
        self._head = bytearray()
        self._received = 0
        self._answered = False
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[None] | None = None
        #: What is being sent, the next chunk of it, and whether the socket takes none for now.
        self._text: ScrapedText | None = None
        self._at = 0
        self._is_full = False
        self._more: asyncio.Handle | None = None
        #: When it came, or last took something of its answer.
        self.moved_s = asyncio.get_running_loop().time()

    @property
    def is_idle(self) -> bool:
        """Whether it keeps us waiting: with its request, or by not reading."""
        return not self._answered or self._is_full

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._endpoint.has_room():
            transport.abort()
            return
        # No more than one chunk is copied to a connection that does not read.
        transport.set_write_buffer_limits(0)
        self._endpoint.connections[self] = None
        self._deadline = asyncio.get_running_loop().call_later(SECONDS_MAX, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.connections.pop(self, None)
        if self._text is not None:
            self._text.readers.pop(self, None)
            self._text = None
        for handle in (self._deadline, self._waiting, self._more):
            if handle is not None:
                handle.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # -- the request

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._answered:
            if self._received > REQUEST_BYTES_MAX + BEHIND_BYTES_MAX:
                self.abort()
            return
        searched = max(len(self._head) - len(_HEAD_END), 0)
        self._head += data[: REQUEST_BYTES_MAX + 1 - len(self._head)]
        if self._head.find(_HEAD_END, searched) >= 0 or self._head.find(_BARE_HEAD_END, searched) >= 0:
            self._answer_request()
        elif len(self._head) > REQUEST_BYTES_MAX:
            self._answer(431, f"a request may have {REQUEST_BYTES_MAX} bytes\n")

    def eof_received(self) -> bool:
        if not self._answered:
            self.abort()
        return True  # A scraper that half-closes still gets its answer.

    def _answer_request(self) -> None:
        line = bytes(self._head).split(b"\n", 1)[0].decode("latin-1").split()
        if len(line) != 3 or not line[2].startswith("HTTP/"):
            self._answer(400, "this port speaks HTTP\n")
            return
        method, target, _ = line
        path = target.partition("?")[0]
        condition = self._endpoint.condition()
        if path not in {PATH, HEALTH_PATH, READY_PATH}:
            self._answer(404, f"metrics are under {PATH}; {HEALTH_PATH} and {READY_PATH} say how the broker is\n")
        elif method not in {"GET", "HEAD"}:
            self._answer(405, f"{path} can only be read\n")
        elif path == PATH:
            self._answered = True
            self._waiting = asyncio.ensure_future(self._scrape())
        elif condition.fault is not None:
            self._answer(503, f"the broker gives up: {condition.fault}\n")
        elif path == HEALTH_PATH:
            self._answer(200, "ok\n")
        else:
            self._answer(200 if condition.stage == READY.stage else 503, f"{condition.stage}\n")

    # -- the answer

    async def _scrape(self) -> None:
        try:
            text = await self._endpoint.scrapes.text()
        except Exception:  # it stands in the log
            self.abort()
            return
        if self._transport is None or self._transport.is_closing():
            return
        self._begin(200, text.bytes, CONTENT_TYPE)
        if not self._wants_body:
            self._transport.close()
            return
        self._text = text
        text.readers[self] = self.abort
        self._send_some()

    def _send_some(self) -> None:
        """A chunk in each turn of the loop, as long as the socket takes it."""
        assert self._transport is not None
        self._more = None
        if self._text is None or self._is_full or self._transport.is_closing():
            return
        self._transport.write(self._text.chunks[self._at])
        self._at += 1
        self.moved_s = asyncio.get_running_loop().time()
        if self._at == len(self._text.chunks):
            self._transport.close()
        elif not self._is_full:
            self._more = asyncio.get_running_loop().call_soon(self._send_some)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._send_some()

    @property
    def _wants_body(self) -> bool:
        return not self._head.startswith(b"HEAD ")

    def _answer(self, status: int, text: str) -> None:
        body = text.encode()
        self._begin(status, len(body), _PLAIN)
        assert self._transport is not None
        if self._wants_body:
            self._transport.write(body)
        self._transport.close()

    def _begin(self, status: int, size: int, content_type: str) -> None:
        assert self._transport is not None
        self._answered = True
        head = [
            f"HTTP/1.0 {status} {_REASONS[status]}",
            f"Content-Type: {content_type}",
            f"Content-Length: {size}",
            "Connection: close",
        ]
        if status == 405:
            head.append("Allow: GET, HEAD")
        self._transport.write("\r\n".join([*head, "", ""]).encode("ascii"))
