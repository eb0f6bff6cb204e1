"""What a handler sees of the connection that a request came on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ottla.ports import File
from ottla.security.principal import Principal

if TYPE_CHECKING:
    from ottla.handlers.commit.memo import CommitMemo, CommitSeed
    from ottla.handlers.fetch.followers import FollowerMemo
    from ottla.handlers.fetch.memo import FetchMemo
    from ottla.handlers.produce.memo import ProduceMemo
    from ottla.handlers.transactions.memo import TransactionMemos
    from ottla.native.fetch_lane import FetchLane
    from ottla.native.lane import Lane
    from ottla.protocol.primitives import Buffer
    from ottla.replication.leader import Leader


#: A longer answer is a fault of ours: its handler has to bound it. Kafka's clients take 100 MB at the most.
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024


class Slot:
    """The place of one answer in a connection's order; `data` is None until the answer is known, empty for acks=0."""

    __slots__ = ("data",)

    def __init__(self, data: bytes | bytearray | None = None) -> None:
        self.data = data


class FilePiece:
    """A piece of a segment on its way out; the lease keeps the file open however slow the reader is."""

    __slots__ = ("count", "file", "leader", "position")

    def __init__(self, file: File, position: int, count: int, leader: Leader | None = None) -> None:
        self.file = file
        self.position = position
        self.count = count
        #: Of a follower's fetch: what lies above the watermark may be cut once it leads no more, and other records may
        #: stand at this place then. None where everything is below the watermark.
        self.leader = leader
        file.lease()

    @property
    def may_have_changed(self) -> bool:
        return self.leader is not None and not self.leader.present.active


Outgoing = bytes | bytearray | memoryview | FilePiece


class RequestBuffer(Protocol):
    """The buffer that a frame stands in: `data` to search and unpack, `view` to slice without a copy."""

    data: bytearray
    view: memoryview

    def keep(self, start: int, end: int) -> Buffer:
        """What stands there, to be kept for as long as it is wanted."""
        ...


class Peer(Protocol):
    """A connection, as handlers see it. Answers leave in the order of the requests."""

    #: What handlers remember of the last request of their kind, to recognise its like.
    produce_memo: ProduceMemo | None
    fetch_memo: FetchMemo | None
    follower_memo: FollowerMemo | None
    commit_memo: CommitMemo | CommitSeed | None
    transaction_memos: TransactionMemos | None

    @property
    def principal(self) -> Principal: ...

    @property
    def is_open(self) -> bool:
        """Whether its session lets it ask for more than how to say who it is."""
        ...

    @property
    def host(self) -> str: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    def fileno(self) -> int:
        """The socket's descriptor; -1 where there is none."""
        ...

    # -- a request whose turn it is

    def answer(self, data: Outgoing) -> None:
        """Hands over the next answer, or a piece of it."""
        ...

    def answer_now(self, data: bytes | bytearray | memoryview) -> None:
        """Sends an answer at once that nothing stands before: `is_clear` said so."""
        ...

    @property
    def is_clear(self) -> bool:
        """Nothing stands before the next answer, and the request's buffer holds nothing behind the request."""
        ...

    def answer_later(self, cancel: Callable[[], None] | None, *, waits: bool = False) -> None:
        """The request waits, and all behind it, until `finish`. Should the peer go away first, `cancel` is called."""
        ...

    def finish(self) -> None:
        """The request that waited is answered; what waited behind it may go on."""
        ...

    def finish_with(self, data: bytes | bytearray, now_ms: int) -> None:
        """The request that waited, since this round began, has this answer: it is sent at once where nothing stands
        before it, and what waited behind the request may go on."""
        ...

    def abort(self) -> None:
        """Closes the connection: the only answer where a request has failed, or its client asked for none."""
        ...

    def refuse(self) -> None:
        """Closes the connection of a client that broke the protocol; what it has asked before is still answered."""
        ...

    # -- Produce requests, which may follow one another before the first is answered

    def staged(self) -> None:
        """A request of this round is staged, and is answered when the round has been written."""
        ...

    def written(self) -> None:
        """It is about to be answered, or to be given a place to wait in."""
        ...

    def answer_in_turn(self, data: bytes) -> bool:
        """Answers a request that was just written, at once where nothing stands before it; False, and nothing is
        done, where others wait in front of it."""
        ...

    def hold(self, slot: Slot) -> None:
        """Keeps the place of an answer that is still to come."""
        ...

    def fill(self, slot: Slot, data: bytes | bytearray) -> None:
        """Gives a held place its answer, which leaves when all before it have left."""
        ...

    def take_lane(self, lane: Lane | FetchLane) -> None:
        """From now on the lane receives whatever comes while nothing is in progress."""
        ...

    def leave_lane(self) -> None:
        """What the lane knows is of the past: the connection receives by itself again."""
        ...

    def claim_places(self) -> None:
        """What is held for its lane gets places here: another way is about to serve the connection."""
        ...

    def left_over(self, rest: bytes | None) -> None:
        """What a lane could not send of an answer; None: the peer has gone."""
        ...
