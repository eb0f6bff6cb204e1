"""A Fetch that is sent again and again with another offset: its constant parts, and its answer but for the numbers.

librdkafka and others fetch without sessions, so each request of a connection differs from the last in one number. It is
recognised in place by what stands before and behind the offset; parsing it and building its answer piece by piece would
take three times as long as reading 16 KiB of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.handlers.calls.peer import Peer, RequestBuffer
from ottla.handlers.fetch.reading import CONSUMER, READ_UNCOMMITTED
from ottla.handlers.fetch.sessions import FINAL_EPOCH, NO_SESSION
from ottla.protocol.fields import INT64, REQUEST_FIELDS_BYTES
from ottla.protocol.hot.fetch import FetchRequest
from ottla.protocol.hot.fetch_template import OFFSET_BYTES, AnswerHead, sole_offset_at
from ottla.records.batch import HEADER_SIZE
from ottla.replication.leader import Leader
from ottla.replication.traffic import Traffic
from ottla.security.policy import Policy
from ottla.storage.log.cursor import Cursor

if TYPE_CHECKING:
    from ottla.native.fetch_lane import FetchLane, FetchRun

#: What is remembered of a request at the most: a client id, a topic and a few numbers take a tenth of it.
REMEMBERED_BYTES_MAX: Final = 1024
_UNPACK_OFFSET: Final = INT64.unpack_from


class FetchMemo:
    __slots__ = (
        "cursor",
        "epoch",
        "has_lane",
        "head",
        "leader",
        "log",
        "max_bytes",
        "min_bytes",
        "offset_at",
        "policy",
        "prefix",
        "producers",
        "room",
        "suffix",
        "traffic",
        "version",
    )

    def __init__(
        self,
        version: int,
        prefix: bytes,
        suffix: bytes,
        request: FetchRequest,
        leader: Leader,
        max_bytes: int,
        policy: int,
    ) -> None:
        topic, ((partition, *_),) = request.topics[0]
        self.version = version
        #: The number of the policy that allowed it.
        self.policy = policy
        self.prefix = prefix
        self.suffix = suffix
        #: Where the offset stands, from the frame's start.
        self.offset_at = REQUEST_FIELDS_BYTES + len(prefix)
        self.leader = leader
        #: That of the leader when the request was fenced.
        self.epoch = leader.epoch
        self.log = leader.log
        #: Whose answer to the request's first way was the log's last stable offset, so that it has read what there was.
        self.producers = leader.log.producer_memory
        self.cursor = Cursor(leader.log)
        self.min_bytes = max(1, request.min_bytes)
        self.max_bytes = max_bytes
        #: Whether a lane was opened for it, or cannot be.
        self.has_lane = False
        #: Of the topic, where answers are counted.
        self.traffic = Traffic()
        self.head = AnswerHead(version, topic, partition)
        #: What there must be for an answer besides its records, and for the header behind them that is read with them.
        self.room = self.head.bytes_max + HEADER_SIZE

    def offset(self, buffer: RequestBuffer, start: int, end: int) -> int:
        """The offset that the frame asks for, if it is like the remembered one; else -1."""
        at = start + self.offset_at
        data = buffer.data
        if (
            at + OFFSET_BYTES + len(self.suffix) == end
            and data[start + REQUEST_FIELDS_BYTES : at] == self.prefix
            and data[at + OFFSET_BYTES : end] == self.suffix
        ):
            offset: int = _UNPACK_OFFSET(data, at)[0]
            return offset
        return -1

    def stable(self) -> int:
        """The last stable offset, or -1 where it is the high watermark: no transaction is open."""
        producers = self.producers.loaded
        return -1 if producers is None or producers.is_stable else self.leader.last_stable_offset

    def lane(self, run: FetchRun, policy: Policy, fd: int, peer: Peer) -> FetchLane | None:
        """What recognises the same requests and is compiled; None where there is too much in them for it."""
        places, head = self.log.places, self.head
        try:
            return run.lane(
                fd,
                peer,
                self.version,
                (self.prefix, self.suffix),
                (policy, self.policy),
                (self.leader, self.epoch, self.log, self.producers),
                (places, places.known, places.remember, self.log.near),
                (self.traffic, self.min_bytes, self.max_bytes),
                (head.middle, head.rest, head.tail, head.has_log_start, head.is_compact),
            )
        except ValueError:
            return None


def remember(
    buffer: RequestBuffer,
    start: int,
    end: int,
    version: int,
    request: FetchRequest,
    leader: Leader,
    bytes_max: int,
    policy: int,
) -> FetchMemo | None:
    """A memo of the request, where it is of the kind that can be recognised."""
    if (
        request.session_id != NO_SESSION
        or request.session_epoch != FINAL_EPOCH
        or request.replica_id != CONSUMER
        or request.isolation_level != READ_UNCOMMITTED
        or request.forgotten
        or len(request.topics) != 1
        or len(request.topics[0][1]) != 1
        or end - start > REMEMBERED_BYTES_MAX
    ):
        return None
    *_, partition_max_bytes = request.topics[0][1][0]
    max_bytes = min(partition_max_bytes, request.max_bytes, bytes_max)
    if max_bytes < 0:
        return None
    at = sole_offset_at(buffer.data, start, end, version, request)
    if at is None:
        return None
    prefix, suffix = bytes(buffer.data[start + REQUEST_FIELDS_BYTES : at]), bytes(buffer.data[at + OFFSET_BYTES : end])
    return FetchMemo(version, prefix, suffix, request, leader, max_bytes, policy)
