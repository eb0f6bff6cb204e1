"""What rounds ask of the dispatcher: where each frame goes, and what stands around the requests of a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from ottla.handlers.calls.peer import RequestBuffer
from ottla.server.connection import Connection

#: (connection, buffer, start, end, version, correlation id); start is behind the length, at the API key.
ServeFrame = Callable[[Connection, RequestBuffer, int, int, int, int], None]


class Dispatch(Protocol):
    @property
    def hot(self) -> Mapping[int, ServeFrame]:
        """By API key: those that serve themselves inside the round."""
        ...

    @property
    def patient(self) -> frozenset[int]:
        """API keys of requests that come in crowds, and whose senders wait for one another anyway."""
        ...

    @property
    def round(self) -> Brackets:
        """What stands around the requests of a round."""
        ...

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None: ...


class Brackets(Protocol):
    #: When the round began that is open.
    began_ms: int

    def begin(self) -> None: ...

    def end(self) -> None:
        """Writes what the round staged and makes the answers that waited for it. Faults stay inside."""
        ...


class NotYet:
    """Stands in until the broker is open: nothing is read before, so there is nothing to serve or to write."""

    hot: Mapping[int, ServeFrame] = MappingProxyType({})
    patient: frozenset[int] = frozenset()
    began_ms = 0

    @property
    def round(self) -> Brackets:
        return self

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None:
        connection.abort()

    def begin(self) -> None: ...

    def end(self) -> None: ...
