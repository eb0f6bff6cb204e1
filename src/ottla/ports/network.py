"""Connections, served in rounds.

A network hands its owner everything that became ready since the last look, in one call: the owner receives from all,
writes its logs once, and answers all. A peer on another processor is then woken once a round and not once an answer,
which halves the cost of a small request. The real network keeps its sockets in an epoll set of its own that is itself
registered with the asyncio loop.

A connection is known to the network by the `token` that its owner returned when it was accepted, so that nothing has
to be looked up in a round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.ports.disk import Buffer, File

if TYPE_CHECKING:
    import asyncio  # 90 ms to import: a verb that only reads files does without

#: Bits of a round's events.
READABLE: Final = 1
WRITABLE: Final = 2
#: The peer has gone or the socket has failed: reading tells which.
BROKEN: Final = 4


class Channel(Protocol):
    """One accepted connection. Nothing here blocks: what cannot go on raises BlockingIOError; faults are OSError."""

    @property
    def peer(self) -> str:
        """The address of the other side, without the port."""
        ...

    @property
    def peer_port(self) -> int: ...

    def receive_into(self, view: memoryview) -> int:
        """Bytes received; 0 when the peer will send no more."""
        ...

    def send(self, data: Buffer) -> int:
        """How many bytes were taken, which may be fewer than given."""
        ...

    def send_buffers(self, buffers: Sequence[Buffer]) -> int: ...

    def send_file(self, file: File, position: int, count: int) -> int:
        """Sends a piece of a file, without it passing through this process where the system can."""
        ...

    def watch(self, *, reading: bool, writing: bool) -> None:
        """What rounds are wanted for. A muted connection (neither) still tells when it breaks."""
        ...

    def close(self) -> None: ...


class Listening(Protocol):
    @property
    def port(self) -> int: ...

    def close(self) -> None: ...


#: Called with a new connection; returns the owner's token for it, or None to refuse (the network closes it).
Accept = Callable[[Channel], Any]
#: Called with all that is ready: (token, events) pairs.
Round = Callable[[list[tuple[Any, int]]], None]


class Network(Protocol):
    def listen(self, host: str, port: int, accept: Accept, on_round: Round) -> Listening:
        """Accepts on an address (port 0: a free one). All connections of one `on_round` share its rounds."""
        ...

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """An outgoing connection in asyncio's own terms, for clients and fetchers."""
        ...

    def close(self) -> None: ...
