"""What a handler sees of the connection that a request came on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.ports import File
from ottla.security.principal import Principal

if TYPE_CHECKING:
    from ottla.native.lane import Lane


class Slot:
    """The place of one answer in a connection's order; `data` is None until the answer is known, empty for acks=0."""

    __slots__ = ("data",)

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data


class FilePiece:
    """A piece of a segment on its way out; the lease keeps the file open however slow the reader is."""

    __slots__ = ("count", "file", "position")

    def __init__(self, file: File, position: int, count: int) -> None:
        self.file = file
        self.position = position
        self.count = count
        file.lease()


Outgoing = bytes | bytearray | memoryview | FilePiece


class Received(Protocol):
    """The buffer that a frame stands in: `data` to search and unpack, `view` to slice without a copy."""

    data: bytearray
    view: memoryview


class Peer(Protocol):
    principal: Principal
    slots: Any
    #: Answers that were handed over and have not left.
    answers: Any
    unsent: Any
    busy: bool
    closed: bool
    cancel: Callable[[], None] | None
    produces_open: int
    #: What handlers remember of the last request of their kind, to recognise its like.
    produce_memo: Any
    fetch_memo: Any

    @property
    def holds_buffer(self) -> bool:
        """Bytes behind this request wait in its buffer, which must stay as it is."""
        ...

    @property
    def host(self) -> str: ...

    @property
    def listener_name(self) -> str: ...

    def answer(self, data: Outgoing) -> None:
        """Hands over the next answer, or a piece of it."""
        ...

    def answer_now(self, data: bytes | memoryview) -> None:
        """Sends an answer that nothing stands before."""
        ...

    def finish(self) -> None:
        """The request that made the connection busy is done; what waited behind it may go on."""
        ...

    def hold(self, slot: Slot) -> None:
        """Keeps the place of an answer that is still to come."""
        ...

    def fill(self, slot: Slot, data: bytes) -> None:
        """Gives a waiting Produce its answer; it leaves when all before it have left."""
        ...

    def fileno(self) -> int:
        """The socket's descriptor; -1 where there is none."""
        ...

    def take_lane(self, lane: Lane) -> None:
        """From now on the lane receives whatever comes while nothing is in progress."""
        ...

    def leave_lane(self) -> None:
        """What the lane knows is of the past: the connection receives by itself again."""
        ...

    def left_over(self, rest: bytes | None) -> None:
        """What a lane could not send of an answer; None: the peer has gone."""
        ...

    def abort(self) -> None:
        """Closes the connection: the only answer to a client that broke the protocol, or asked for none."""
        ...
