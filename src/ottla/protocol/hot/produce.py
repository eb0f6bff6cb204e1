"""Produce, 0 to 13: the request as positions of its batches in the receive buffer, the answer from tuples.

A version's differences: a transactional id from 3, compact lengths and tagged fields from 9, topic ids instead of
names from 13; in the answer a throttle time from 1, the append time from 2, the log's start from 5, errors by record
from 8, and from 10 tagged fields that say who leads instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, Final

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.hot.framing import (
    NodeEndpoint,
    begin_answer,
    finish_answer,
    put_node_endpoints_tag,
    put_tag,
)
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    LENGTH_MAX,
    HotBuffer,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_nullable_string,
    put_string,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tags,
    uuid_bytes,
)

#: (partition, where its records begin, where they end); both are -1 where the records are null.
PartitionRecords = tuple[int, int, int]
#: (name, or id from version 13 on; partitions)
TopicRecords = tuple[str | bytes, list[PartitionRecords]]
#: (transactional id, acks, timeout in ms, topics)
ProduceParts = tuple[str | None, int, int, list[TopicRecords]]
#: (partition, error code, base offset, log append time in ms, log start offset, [(batch index, message)], error
#: message), and behind these, optionally, (leader id, leader epoch) or None.
PartitionAnswer = tuple[Any, ...]
TopicAnswer = tuple[str | bytes, Sequence[PartitionAnswer]]

ACKS_TIMEOUT = Struct(">hi").unpack_from
INT32 = Struct(">i").unpack_from
INDEX_LENGTH = Struct(">ii").unpack_from
PACK_INT32 = Struct(">i").pack
_PACK_INT32_PAIR = Struct(">ii").pack
_PACK_ANSWER_0 = Struct(">ihq").pack
_PACK_ANSWER_2 = Struct(">ihqq").pack
_PACK_ANSWER_5 = Struct(">ihqqq").pack
_PACK_GOOD_8 = Struct(">ihqqqih").pack
_GOOD_9 = b"\x01\x00\x00"  # no record errors, no message, no tagged fields


#: Topics, and partitions of topics with several, that a broker parses at once, in a quarter of a millisecond each.
PLAIN_PARTS_MAX: Final = 64
#: A struct with tagged fields, of which no client sends any, is counted as so many: it may have 64.
_TAGGED_PARTS: Final = 25


class TooManyParts(Exception):
    """A request with more topics and partitions than the caller wants to have parsed at once."""


def parse_produce(
    buf: HotBuffer, pos: int, version: int, end: int | None = None, parts_max: int = LENGTH_MAX
) -> ProduceParts:
    """Reads a request's body, which begins at `pos` and ends at `end` (or with `buf`); the rest is passed over.

    A frame of Produce is long because of its records, so that its size says nothing about the work: with `parts_max`
    the parser counts topics, and partitions, and gives up with `TooManyParts` (see `produce_steps`).
    """
    if not 0 <= version <= 13:
        raise DecodeError(f"ProduceRequest has no version {version}")
    if end is None:
        end = len(buf)
    try:
        if version >= 9:
            parts, pos = _parse_flexible(buf, pos, version, end, parts_max)
        else:
            parts, pos = _parse_plain(buf, pos, version, end, parts_max)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no ProduceRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"a ProduceRequest that ends at {pos} in a frame that ends at {end}")
    return parts


def _parse_flexible(buf: HotBuffer, pos: int, version: int, end: int, room: int) -> tuple[ProduceParts, int]:
    # The varints of one byte are read in place: a call costs as much as all the rest of a field.
    transactional_id = None
    if buf[pos] == 0:
        pos += 1
    else:
        transactional_id, pos = read_compact_nullable_string(buf, pos, end)
    acks, timeout_ms = ACKS_TIMEOUT(buf, pos)
    pos += 7
    topic_count = buf[pos - 1] - 1
    if not 0 <= topic_count < 0x7F:
        topic_count, pos = read_compact_count(buf, pos - 1, end, 3)
    if topic_count > room:
        raise TooManyParts
    topics: list[TopicRecords] = []
    for _ in range(topic_count):
        topic: str | bytes
        if version >= 13:
            topic = bytes(buf[pos : pos + 16])
            pos += 16
        else:
            topic, pos = read_compact_string(buf, pos, end)
        count = buf[pos] - 1
        pos += 1
        if not 0 <= count < 0x7F:
            count, pos = read_compact_count(buf, pos - 1, end, 6)
        if count > 1:
            room -= count
            if room < 0:
                raise TooManyParts
        partitions: list[PartitionRecords] = []
        for _ in range(count):
            (index,) = INT32(buf, pos)
            length, pos = read_uvarint(buf, pos + 4)
            if length == 0:
                partitions.append((index, -1, -1))
            else:
                start = pos
                pos += length - 1
                if pos > end:
                    raise DecodeError(f"records of {length - 1} bytes with {end - start} bytes left")
                partitions.append((index, start, pos))
            if buf[pos] == 0:
                pos += 1
            else:
                pos = skip_tags(buf, pos, end)
                room = _less_tagged(room)
        if buf[pos] == 0:
            pos += 1
        else:
            pos = skip_tags(buf, pos, end)
            room = _less_tagged(room)
        topics.append((topic, partitions))
    pos = pos + 1 if buf[pos] == 0 else skip_tags(buf, pos, end)
    return (transactional_id, acks, timeout_ms, topics), pos


def _less_tagged(room: int) -> int:
    if room < _TAGGED_PARTS:
        raise TooManyParts
    return room - _TAGGED_PARTS


def _parse_plain(buf: HotBuffer, pos: int, version: int, end: int, room: int) -> tuple[ProduceParts, int]:
    transactional_id = None
    if version >= 3:
        transactional_id, pos = read_nullable_string(buf, pos, end)
    acks, timeout_ms = ACKS_TIMEOUT(buf, pos)
    topic_count, pos = read_count(buf, pos + 6, end, 6)
    if topic_count > room:
        raise TooManyParts
    topics: list[TopicRecords] = []
    for _ in range(topic_count):
        topic, pos = read_string(buf, pos, end)
        count, pos = read_count(buf, pos, end, 8)
        if count > 1:
            room -= count
            if room < 0:
                raise TooManyParts
        partitions: list[PartitionRecords] = []
        for _ in range(count):
            index, length = INDEX_LENGTH(buf, pos)
            pos += 8
            if length < 0:
                partitions.append((index, -1, -1))
            else:
                start = pos
                pos += length
                if pos > end:
                    raise DecodeError(f"records of {length} bytes with {end - start} bytes left")
                partitions.append((index, start, pos))
        topics.append((topic, partitions))
    return (transactional_id, acks, timeout_ms, topics), pos


def encode_produce_response(
    version: int,
    topics: Sequence[TopicAnswer],
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
    correlation_id: int | None = None,
) -> bytes:
    """The answer's body; with a correlation id the whole frame. What a version cannot say is left out."""
    if not 0 <= version <= 13:
        raise EncodeError(f"ProduceResponse has no version {version}")
    out = begin_answer(correlation_id, flexible=version >= 9)
    try:
        if version >= 9:
            put_compact_count(out, len(topics))
            put_topics_flexible(out, version, topics)
            out += PACK_INT32(throttle_ms)
            put_node_endpoints_tag(out, node_endpoints if version >= 10 else ())
        else:
            out += PACK_INT32(len(topics))
            put_topics_plain(out, version, topics)
            if version >= 1:
                out += PACK_INT32(throttle_ms)
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of ProduceResponse cannot say: {fault}") from fault
    return finish_answer(out, correlation_id)


def put_topics_flexible(out: bytearray, version: int, topics: Iterable[TopicAnswer]) -> None:
    for topic, partitions in topics:
        if isinstance(topic, str):
            if version >= 13:
                raise EncodeError(f"version {version} names topics by id, not {topic!r}")
            put_compact_string(out, topic)
        else:
            if version < 13:
                raise EncodeError(f"version {version} names topics by name, not by id")
            out += uuid_bytes(topic)
        put_compact_count(out, len(partitions))
        for answer in partitions:
            out += _PACK_ANSWER_5(*answer[:5])
            leader = answer[7] if len(answer) > 7 and version >= 10 else None
            if not answer[5] and answer[6] is None and leader is None:
                out += _GOOD_9
                continue
            put_compact_count(out, len(answer[5]))
            for batch_index, message in answer[5]:
                out += PACK_INT32(batch_index)
                put_compact_nullable_string(out, message)
                out.append(0)
            put_compact_nullable_string(out, answer[6])
            if leader is None or leader == (-1, -1):
                out.append(0)
            else:
                out.append(1)
                put_tag(out, 0, _PACK_INT32_PAIR(*leader) + b"\x00")
        out.append(0)


def put_topics_plain(out: bytearray, version: int, topics: Iterable[TopicAnswer]) -> None:
    for topic, partitions in topics:
        if not isinstance(topic, str):
            raise EncodeError(f"version {version} names topics by name, not by id")
        put_string(out, topic)
        out += PACK_INT32(len(partitions))
        for answer in partitions:
            if version < 2:
                out += _PACK_ANSWER_0(*answer[:3])
            elif version < 5:
                out += _PACK_ANSWER_2(*answer[:4])
            elif version < 8:
                out += _PACK_ANSWER_5(*answer[:5])
            elif not answer[5] and answer[6] is None:
                out += _PACK_GOOD_8(*answer[:5], 0, -1)
            else:
                out += _PACK_ANSWER_5(*answer[:5])
                out += PACK_INT32(len(answer[5]))
                for batch_index, message in answer[5]:
                    out += PACK_INT32(batch_index)
                    put_nullable_string(out, message)
                put_nullable_string(out, answer[6])
