"""Requests that come before the broker can answer them: it serves other brokers, and does not know the cluster yet.

What a controller announces, and what else brokers ask of one another, is served from the registration on: roles and
metadata come by these requests. A client's first request waits here until the broker knows everything, and its
connection with it, as it would wait for a broker that has not opened its port. Which of the two a connection is shows
in its requests only, where clients and brokers share a listener.

    holding ── the broker is informed: `release` ──▶ each request is served as if it came now

What is held has a bound: beyond it connections are closed, and their clients come again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from ottla import logs
from ottla.handlers.calls.peer import RequestBuffer
from ottla.handlers.routes import BEFORE_AUTHENTICATION, BETWEEN_BROKERS
from ottla.protocol.fields import REQUEST_FIELDS
from ottla.server.connection import Connection
from ottla.server.dispatching import Brackets, Dispatch, ServeFrame

log_event = logs.logger("server")

#: A start takes seconds at the most, and clients ask for versions and metadata first.
HELD_BYTES_MAX: Final = 32 * 1024 * 1024
#: Served while clients wait: who may say how it authenticates, and other brokers.
_SERVED: Final = BEFORE_AUTHENTICATION | BETWEEN_BROKERS


class _HeldFrame:
    """A request in memory of its own. Implements `RequestBuffer`."""

    __slots__ = ("data", "view")

    def __init__(self, frame: memoryview) -> None:
        self.data = bytearray(frame)
        self.view = memoryview(self.data)

    def keep(self, start: int, end: int) -> memoryview:
        return self.view[start:end]


class HeldRequests:
    """Implements `Dispatch` until the broker is ready."""

    hot: Mapping[int, ServeFrame] = MappingProxyType({})
    patient: frozenset[int] = frozenset()

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        #: In the order in which they came: one of each connection, which takes no other meanwhile.
        self._held: dict[Connection, _HeldFrame] = {}
        self._bytes = 0

    @property
    def round(self) -> Brackets:
        return self._dispatch.round

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None:
        key, _, _ = REQUEST_FIELDS.unpack_from(buffer.data, start)
        if key in _SERVED:
            self._dispatch.serve(connection, buffer, start, end)
            return
        if self._bytes + end - start > HELD_BYTES_MAX:
            log_event.warning_limited("closing a connection: too much waits for the start", peer=connection.host)
            connection.abort()
            return
        self._held[connection] = _HeldFrame(buffer.view[start:end])
        self._bytes += end - start
        connection.answer_later(partial(self._forget, connection), waits=True)

    def _forget(self, connection: Connection) -> None:
        """Its client has gone."""
        frame = self._held.pop(connection, None)
        if frame is not None:
            self._bytes -= len(frame.data)

    def release(self) -> None:
        """Has all served that waited. From here on others go to the dispatcher by themselves."""
        held, self._held = self._held, {}
        self._bytes = 0
        brackets = self.round
        brackets.begin()
        try:
            for connection, frame in held.items():
                if not connection.closed:
                    self._serve(connection, frame)
        finally:
            brackets.end()

    def _serve(self, connection: Connection, frame: _HeldFrame) -> None:
        # Behind it are those that came since: they are looked at in the next turn of the loop.
        connection.finish()
        key, version, correlation = REQUEST_FIELDS.unpack_from(frame.data, 0)
        serve = self._dispatch.hot.get(key) if connection.is_open else None
        try:
            if serve is not None:
                serve(connection, frame, 0, len(frame.data), version, correlation)
            else:
                self._dispatch.serve(connection, frame, 0, len(frame.data))
        except Exception as fault:
            log_event.error("a request that waited for the start failed", peer=connection.host, error=repr(fault))
            connection.abort()
