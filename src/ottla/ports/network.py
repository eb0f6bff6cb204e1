"""Connections, served in rounds.

A network hands its owner everything that became ready since the last look, in one call: the owner receives from all,
writes its logs once, and answers all. A peer on another processor is then woken once a round and not once an answer,
which halves the cost of a small request. The real network keeps its sockets in an epoll set of its own that is itself
registered with the asyncio loop.

A connection is known to the network by the `token` that its owner returned when it was accepted, so that nothing has
to be looked up in a round. Rounds are level-triggered: what the owner leaves unread comes again, so it reads, mutes
or closes. A round may still name a connection that its owner has closed earlier in the same round; its channel then
raises OSError (EBADF), and never touches another that got the same descriptor.
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
#: The connection has failed, both ways. It comes with READABLE, as bytes may lie before the fault; reading then says
#: it. The owner closes the channel, or it comes again. A peer that merely ended its own side is not broken: that is
#: READABLE, reading gives 0, and answers still reach it. Portable networks may give READABLE or WRITABLE alone.
BROKEN: Final = 4


class Channel(Protocol):
    """One accepted connection. Nothing here blocks: what cannot go on raises BlockingIOError; faults are OSError."""

    @property
    def peer(self) -> str:
        """The address of the other side, without the port."""
        ...

    @property
    def peer_port(self) -> int: ...

    @property
    def is_local(self) -> bool:
        """Whether the other side is on this machine, as far as its address says."""
        ...

    def set_send_buffer(self, size: int) -> None:
        """How many bytes the system holds of what was sent and not taken; without it the system chooses."""
        ...

    def receive_into(self, view: memoryview) -> int:
        """Bytes received; 0 when the peer will send no more."""
        ...

    def send(self, data: Buffer) -> int:
        """How many bytes were taken, which may be fewer than given."""
        ...

    def send_buffers(self, buffers: Sequence[Buffer]) -> int:
        """The same for several, in one call where the system can; it may take only the first of very many."""
        ...

    def send_file(self, file: File, position: int, count: int) -> int:
        """Sends a piece of a file, without it passing through this process where the system can.

        Returns what was taken, which may be less than asked for; 0 where the file ends before `position`.
        """
        ...

    def fileno(self) -> int:
        """The descriptor for calls of the system's own; -1 where there is none, or no more."""
        ...

    def watch(self, *, reading: bool, writing: bool) -> None:
        """What rounds are wanted for. Of a muted connection (neither) it is still known when it breaks."""
        ...

    def close(self) -> None:
        """Closes it at once; may be called again, and from inside a round."""
        ...


class Listening(Protocol):
    @property
    def port(self) -> int: ...

    def pause(self) -> None:
        """Accepts no connection until `resume`: new ones wait in the system's backlog. Also out of `accept`."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None:
        """Accepts no more. What was accepted stays."""
        ...


#: Called with a new connection; returns the owner's token for it, or None to refuse (the network closes it).
Accept = Callable[[Channel], Any]
#: Called with all that is ready: (token, events) pairs. Says whether it pays to look for more before anything else has
#: its turn; not where it waits for the rest of something large, which is better taken in larger pieces.
Round = Callable[[list[tuple[Any, int]]], bool]


class Network(Protocol):
    @property
    def connections_end(self) -> int:
        """The first descriptor that no connection should have: from there on they are kept back for files."""
        ...

    def listen(self, host: str, port: int, accept: Accept, on_round: Round) -> Listening:
        """Accepts on an address (port 0: a free one). All connections of one `on_round` share its rounds."""
        ...

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """An outgoing connection in asyncio's own terms, for clients and fetchers."""
        ...

    def close(self) -> None:
        """Closes all that listens and all that was accepted. Outgoing connections have transports to close them."""
        ...
