"""A follower's Fetch that is sent again and again for one partition of its session, with other numbers.

acks=all waits for two such requests, so that they are most of what replication costs a leader with small records:
parsed, looked up and answered piece by piece, each takes as long as ten of the Produce requests that it carries. Here
one is recognised by its bytes, and what it asks for is looked at with the checks of `reading.py` and nothing else. The
same is done for one that names nothing, behind an answer without records. Whatever those checks do not find in order,
and any other news of the session, takes the ordinary way, which this one leaves untouched until it knows that it can go
on: nothing is noted before `look` has given something.

    frame ──is it like the last one?──▶ look ──▶ the follower has all below its offset ──▶ answered, or parked
                                                              a change ──▶ look ──▶ answered, or parked on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.handlers.calls.peer import RequestBuffer
from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.reading import FetchReader
from ottla.handlers.fetch.sessions import Session
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.fields import REQUEST_FIELDS_BYTES
from ottla.protocol.header import request_body_start
from ottla.protocol.hot.fetch import HEAD_15, PARTITION_12, FetchRequest
from ottla.protocol.hot.fetch_template import AnswerHead
from ottla.replication.leader import Leader
from ottla.storage.errors import CorruptLog, OffsetOutsideLog, StorageFault
from ottla.storage.log.reader import EMPTY, Slice

if TYPE_CHECKING:
    from ottla.handlers.fetch.in_steps import WatchedFetch
    from ottla.handlers.fetch.watched import WatchedPartition

#: The first version whose request does not begin with the replica's id.
VERSION_MIN: Final = 15
#: What is remembered of a request at the most.
REMEMBERED_BYTES_MAX: Final = 1024
EPOCH_MAX: Final = 2**31 - 1

# Where the numbers stand, from the begin of the body: how long to wait; then what is the same each time, up to the
# session's epoch; behind that one topic, its id and one partition; and the partition's row, without its tagged fields.
_WAIT_BYTES: Final = 4
_EPOCH_AT: Final = 17
_TOPICS_AT: Final = 21
_ROW_AT: Final = _TOPICS_AT + 1 + 16 + 1
_TAIL_AT: Final = _ROW_AT + PARTITION_12.size - 1


class FollowerMemo:
    __slots__ = (
        *(
            "_body",
            "_head",
            "_limits",
            "_nothing",
            "_nothing_size",
            "_row_tail",
            "_size",
            "_topics",
            "answer_head",
            "fetch",
            "leader",
            "max_bytes",
        ),
        *("min_bytes", "policy", "reader", "session", "topic", "version", "watched"),
    )

    def __init__(
        self,
        frame: bytes,
        body: int,
        fetch: WatchedFetch,
        session: Session,
        watched: WatchedPartition,
        leader: Leader,
        policy: int,
    ) -> None:
        """`frame` is without its length, and `body` where in it the header ends."""
        self.version = fetch.version
        #: The number of the policy that allowed it.
        self.policy = policy
        self._size = len(frame)
        self._body = body
        self._head = frame[REQUEST_FIELDS_BYTES:body]
        self._limits = frame[body + _WAIT_BYTES : body + _EPOCH_AT]
        self._topics = frame[body + _TOPICS_AT : body + _ROW_AT]
        self._row_tail = frame[body + _TAIL_AT :]
        #: Of a request that names no partition: behind the row and its topic all is the same.
        self._nothing = b"\x01" + self._row_tail[2:]
        self._nothing_size = body + _TOPICS_AT + len(self._nothing)
        self.session = session
        self.watched = watched
        self.leader = leader
        self.reader: FetchReader = fetch.reader
        self.min_bytes, self.max_bytes = fetch.min_bytes, fetch.max_bytes
        self.topic = watched.asked.topic
        self.answer_head = AnswerHead(fetch.version, self.topic, watched.asked.partition, session.id)
        #: Stands for each of the requests while it waits.
        self.fetch = fetch

    def read(self, data: bytearray, start: int, end: int) -> tuple[int, int, AskedPartition | None] | None:
        """How long a frame waits, its session's epoch and what it asks for, if it is like the remembered one; None in
        the last place where it asks for the same as before."""
        body, size = start + self._body, end - start
        if (
            size not in (self._size, self._nothing_size)
            or data[start + REQUEST_FIELDS_BYTES : body] != self._head
            or data[body + _WAIT_BYTES : body + _EPOCH_AT] != self._limits
        ):
            return None
        wait_ms, _, _, _, _, session_epoch = HEAD_15(data, body)
        if size == self._nothing_size:
            return (wait_ms, session_epoch, None) if data[body + _TOPICS_AT : end] == self._nothing else None
        if data[body + _TOPICS_AT : body + _ROW_AT] != self._topics or data[body + _TAIL_AT : end] != self._row_tail:
            return None
        row = PARTITION_12.unpack_from(data, body + _ROW_AT)
        if row[0] != self.watched.asked.partition:
            return None
        return wait_ms, session_epoch, AskedPartition(self.topic, *row)

    def look(self, asked: AskedPartition) -> Slice | None:
        """What there is for the follower, or None where the ordinary way is to look. Notes nothing."""
        leader, reader = self.leader, self.reader
        log = leader.log
        places, offset, epoch = log.places, asked.fetch_offset, asked.last_fetched_epoch
        end = places.end_offset
        if (
            not leader.active
            or leader.epoch != asked.current_leader_epoch
            or not places.start_offset <= offset <= end
            or asked.max_bytes < 0
            or not reader.is_replica(leader)
            or log.config.leader_throttled_replicas
        ):
            return None
        try:
            if epoch >= 0 and log.epochs.end_offset_for(epoch, end) != (epoch, end):
                return None
            if offset == end:
                return EMPTY
            if log.is_far(offset, end):
                return None
            found = log.read(offset, min(asked.max_bytes, self.max_bytes), end)
        except (OffsetOutsideLog, CorruptLog, StorageFault):
            return None
        # What is written to is in memory.
        return found if found.size and found.file is log.active.open_file else None

    def answer(self, correlation: int, records: bytes) -> bytes:
        """A whole frame with these records, or with the watermark alone, of which the follower knows from now on."""
        leader, watched, head = self.leader, self.watched, self.answer_head
        high_watermark, log_start = leader.high_watermark, leader.log.places.start_offset
        before = bytearray(head.bytes_max)
        at = head.fill(before, correlation, high_watermark, log_start, len(records), leader.last_stable_offset)
        leader.isr.followers[self.reader.replica_id].answered_watermark = high_watermark
        watched.error = ErrorCode.NONE
        watched.high_watermark, watched.log_start_offset = high_watermark, log_start
        if records:
            self.session.partitions.sent_records(watched)
        else:
            self.session.partitions.looked_at(watched, is_news=False)
        return b"".join((memoryview(before)[:at], records, head.tail))


def remember_follower(
    fetch: WatchedFetch,
    request: FetchRequest,
    key: tuple[str | bytes, int],
    buffer: RequestBuffer,
    start: int,
    end: int,
    policy: int,
) -> FollowerMemo | None:
    """A memo of a request that asked for this one partition, where it is of the kind that can be recognised."""
    session, reader = fetch.session, fetch.reader
    if (
        session is None
        or session.is_closed
        or session.beat is None
        or not reader.is_follower
        or type(reader) is not FetchReader
        or fetch.version < VERSION_MIN
        or fetch.min_bytes < 1
        or request.isolation_level
        or end - start > REMEMBERED_BYTES_MAX
    ):
        return None
    watched = session.partitions.of(key)
    if watched is None or not isinstance(watched.stands_at, TopicPartition):
        return None
    leader = reader.leader(watched.asked)
    if not isinstance(leader, Leader):
        return None
    frame = bytes(buffer.data[start:end])
    body = request_body_start(frame, 0, len(frame))
    memo = FollowerMemo(frame, body, fetch, session, watched, leader, policy)
    # Where it was said in another way than it is expected, it is not recognised, nor is any other.
    return memo if memo.read(bytearray(frame), 0, len(frame)) == _said(frame, body, watched) else None


def _said(frame: bytes, body: int, watched: WatchedPartition) -> tuple[int, int, AskedPartition]:
    wait_ms, _, _, _, _, session_epoch = HEAD_15(frame, body)
    return wait_ms, session_epoch, watched.asked
