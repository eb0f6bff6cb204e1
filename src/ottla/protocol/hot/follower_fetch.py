"""Fetch, 12 to 18, from the follower's side: requests made of few pieces, answers read where they were received.

A follower asks each leader in a fetch session (KIP-227): a request names the partitions whose place has changed since
the last one, and an answer those that have news. Where nothing has changed, a request is a constant but for three
numbers. Records of an answer are views on the buffer that it came in.

A version's differences are those of `fetch.py`: topics by id from 13 on, the replica's state as a tagged field from 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import Final, NamedTuple

from ottla.protocol.apis import ApiKey
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT32, LENGTH_BYTES
from ottla.protocol.hot.fetch import PARTITION_12
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    put_compact_count,
    put_compact_string,
    put_nullable_string,
    read_compact_count,
    read_compact_string,
    read_tag,
    read_tag_count,
    read_uvarint,
    skip_tags,
)

#: The first version in which a request says the last leader epoch that was fetched, and an answer where logs part.
DIVERGING: Final = 12
BY_ID: Final = 13
REPLICA_STATE: Final = 15
NEWEST: Final = 18
#: Where a frame has what its sender's connection fills in.
CORRELATION_AT: Final = 8

#: A topic by its name, or by its id from version 13 on.
TopicKey = str | bytes
#: (partition, current leader epoch, fetch offset, last fetched epoch, log start offset, partition max bytes)
AskedRow = tuple[int, int, int, int, int, int]

_FIXED: Final = Struct(">hhi").pack
_REPLICA: Final = Struct(">i").pack
_LIMITS: Final = Struct(">iiibii")
_REPLICA_STATE: Final = Struct(">BBBiqB").pack
_PACK_ROW: Final = PARTITION_12.pack
_PACK_INT32: Final = INT32.pack_into
#: Throttle time, error, session id.
_ANSWER_HEAD: Final = Struct(">ihi")
#: Partition, error, high watermark, last stable offset, log start offset.
_ANSWER_ROW: Final = Struct(">ihqqq")
_UNPACK_ROW: Final = _ANSWER_ROW.unpack_from
_INT32_BYTES: Final = 4
_EPOCH_OFFSET: Final = Struct(">iq")
_LEADER: Final = Struct(">ii")
#: Two numbers of 64 bits and no tagged field.
_ABORTED_BYTES: Final = 17
_ROW_BYTES_MIN: Final = _ANSWER_ROW.size + 1 + _INT32_BYTES + 1 + 1


class FetchRequests:
    """Makes the requests of one follower to one leader, in one version."""

    __slots__ = ("_head", "_limits_at", "_nothing_new", "_tail", "by_id", "replica_epoch", "version")

    def __init__(self, version: int, client_id: str, replica_id: int, replica_epoch: int) -> None:
        assert DIVERGING <= version <= NEWEST
        self.version = version
        self.by_id = version >= BY_ID
        self.replica_epoch = replica_epoch
        head = bytearray(LENGTH_BYTES)
        head += _FIXED(ApiKey.FETCH, version, 0)
        put_nullable_string(head, client_id)
        head.append(0)
        if version < REPLICA_STATE:
            head += _REPLICA(replica_id)
        self._head = bytes(head)
        self._limits_at = len(head)
        #: No rack, and the tagged fields.
        self._tail = b"\x01\x00"
        if version >= REPLICA_STATE:
            self._tail = b"\x01" + _REPLICA_STATE(1, 1, 13, replica_id, replica_epoch, 0)
        nothing_new = head + bytes(_LIMITS.size) + b"\x01\x01" + self._tail
        _PACK_INT32(nothing_new, 0, len(nothing_new) - LENGTH_BYTES)
        self._nothing_new = nothing_new

    def nothing_new(self, wait_ms: int, min_bytes: int, max_bytes: int, session_id: int, epoch: int) -> bytearray:
        """A whole frame, but for its correlation id; its session's partitions are asked for as they were."""
        frame = self._nothing_new[:]
        _LIMITS.pack_into(frame, self._limits_at, wait_ms, min_bytes, max_bytes, 0, session_id, epoch)
        return frame

    def with_changes(
        self,
        wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        session_id: int,
        epoch: int,
        rows: Mapping[TopicKey, Iterable[AskedRow]],
        forgotten: Mapping[TopicKey, list[int]],
    ) -> bytearray:
        """The same with partitions that are asked for anew, or from another place, and with some that are not."""
        frame = bytearray(self._head)
        frame += _LIMITS.pack(wait_ms, min_bytes, max_bytes, 0, session_id, epoch)
        put_compact_count(frame, len(rows))
        for topic, partitions in rows.items():
            self._put_topic(frame, topic)
            packed = [_PACK_ROW(*row) for row in partitions]
            put_compact_count(frame, len(packed))
            frame += b"".join(packed)
            frame.append(0)
        put_compact_count(frame, len(forgotten))
        for topic, numbers in forgotten.items():
            self._put_topic(frame, topic)
            put_compact_count(frame, len(numbers))
            frame += Struct(f">{len(numbers)}i").pack(*numbers)
            frame.append(0)
        frame += self._tail
        _PACK_INT32(frame, 0, len(frame) - LENGTH_BYTES)
        return frame

    def read(self, frame: memoryview) -> tuple[int, int, Iterator[AnswerRow]]:
        """An answer's error, its session's id, and its partitions; raises DecodeError."""
        try:
            # The header: the correlation id, which the connection has looked at, and tagged fields.
            at = skip_tags(frame, INT32.size, len(frame))
            _, error, session_id = _ANSWER_HEAD.unpack_from(frame, at)
        except DECODE_FAULTS as fault:
            raise _no_answer(self.version, fault) from fault
        return error, session_id, read_rows(frame, self.version, at + _ANSWER_HEAD.size)

    def _put_topic(self, frame: bytearray, topic: TopicKey) -> None:
        if self.by_id:
            assert isinstance(topic, bytes)
            assert len(topic) == 16
            frame += topic
        else:
            assert isinstance(topic, str)
            put_compact_string(frame, topic)


class AnswerRow(NamedTuple):
    """What an answer has of one partition."""

    topic: TopicKey
    partition: int
    error: int
    high_watermark: int
    log_start: int
    #: Empty where there are none.
    records: memoryview
    #: The leader's epoch up to which the logs may be the same, and where that ended; None where they have not parted.
    diverging: tuple[int, int] | None
    #: Id and leader epoch of the leader, where the answer names one.
    leader: tuple[int, int] | None


def read_rows(frame: memoryview, version: int, at: int) -> Iterator[AnswerRow]:
    """An answer's partitions, one after the other, as far as it is sound; raises DecodeError where it is not.

    It may be left at any place.
    """
    by_id = version >= BY_ID
    end = len(frame)
    try:
        topics, at = read_compact_count(frame, at, end, 3)
        for _ in range(topics):
            topic: TopicKey
            if by_id:
                topic = bytes(frame[at : at + 16])
                at += 16
            else:
                topic, at = read_compact_string(frame, at, end)
            partitions, at = read_compact_count(frame, at, end, _ROW_BYTES_MIN)
            for _ in range(partitions):
                row, at = _read_row(frame, topic, at, end)
                yield row
            at = skip_tags(frame, at, end)
        at = skip_tags(frame, at, end)
    except DECODE_FAULTS as fault:
        raise _no_answer(version, fault) from fault
    if at > end:
        raise DecodeError(f"a FetchResponse that ends at {at} in a frame that ends at {end}")


def _read_row(frame: memoryview, topic: TopicKey, at: int, end: int) -> tuple[AnswerRow, int]:
    partition, error, high_watermark, _, log_start = _UNPACK_ROW(frame, at)
    at += _ANSWER_ROW.size
    if frame[at] < 2:  # no aborted transactions: null or empty
        at += 1
    else:
        aborted, at = read_compact_count(frame, at, end, _ABORTED_BYTES)
        for _ in range(aborted):
            at = skip_tags(frame, at + _ABORTED_BYTES - 1, end)
    at += _INT32_BYTES  # the preferred read replica
    length, at = read_uvarint(frame, at)
    stop = at + max(0, length - 1)
    if stop > end:
        raise DecodeError(f"records of {length - 1} bytes in an answer that has {end - at} left")
    records = frame[at:stop]
    if frame[stop] == 0:
        return AnswerRow(topic, partition, error, high_watermark, log_start, records, None, None), stop + 1
    diverging, leader, at = _read_tags(frame, stop, end)
    return AnswerRow(topic, partition, error, high_watermark, log_start, records, diverging, leader), at


def _read_tags(frame: memoryview, at: int, end: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None, int]:
    diverging: tuple[int, int] | None = None
    leader: tuple[int, int] | None = None
    count, at = read_tag_count(frame, at, end)
    for _ in range(count):
        tag, start, at = read_tag(frame, at, end)
        if tag == 0:
            if at - start < _EPOCH_OFFSET.size:
                raise DecodeError(f"a diverging epoch of {at - start} bytes")
            epoch, offset = _EPOCH_OFFSET.unpack_from(frame, start)
            diverging = (epoch, offset) if epoch >= 0 else None
        elif tag == 1:
            if at - start < _LEADER.size:
                raise DecodeError(f"a current leader of {at - start} bytes")
            leader = _LEADER.unpack_from(frame, start)
    return diverging, leader, at


def _no_answer(version: int, fault: Exception) -> DecodeError:
    return DecodeError(f"these bytes are no FetchResponse of version {version}: {fault}")
