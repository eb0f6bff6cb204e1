"""Produce in steps: requests of more than `PLAIN_PARTS_MAX` topics and partitions, and the answers to them.

Same results and errors as `produce`. The frame may not go back to a pool before the request is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getsizeof

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.hot.framing import NodeEndpoint, begin_answer, put_node_endpoints_tag
from ottla.protocol.hot.produce import (
    ACKS_TIMEOUT,
    INDEX_LENGTH,
    INT32,
    PACK_INT32,
    PartitionRecords,
    ProduceParts,
    TopicAnswer,
    TopicRecords,
    put_topics_flexible,
    put_topics_plain,
)
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    HotBuffer,
    put_compact_count,
    put_count,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_uvarint,
    skip_tags,
)
from ottla.protocol.stepping import PIECE, DecodingAllowance
from ottla.steps import Steps, pieces

#: A tuple of three numbers, and its place in a list; a tuple of a name (whose text is taken besides) and a list.
_PARTITION_BYTES = 192
_TOPIC_BYTES = 160


def parse_produce_steps(
    buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[ProduceParts]:
    if not 0 <= version <= 13:
        raise DecodeError(f"ProduceRequest has no version {version}")
    try:
        parts, pos = yield from _parse(buf, pos, version, end, allowance)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no ProduceRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"a ProduceRequest that ends at {pos} in a frame that ends at {end}")
    return parts


def _parse(
    buf: HotBuffer, pos: int, version: int, end: int, allowance: DecodingAllowance
) -> Steps[tuple[ProduceParts, int]]:
    flexible = version >= 9
    transactional_id = None
    if flexible:
        transactional_id, pos = read_compact_nullable_string(buf, pos, end)
    elif version >= 3:
        transactional_id, pos = read_nullable_string(buf, pos, end)
    acks, timeout_ms = ACKS_TIMEOUT(buf, pos)
    topic_count, pos = _compact_count(buf, pos + 6, end, 3) if flexible else read_count(buf, pos + 6, end, 6)
    allowance.take_array(topic_count, _TOPIC_BYTES)
    topics: list[TopicRecords] = []
    for _ in range(topic_count):
        topic: str | bytes
        if version >= 13:
            topic = bytes(buf[pos : pos + 16])
            pos += 16
        else:
            topic, pos = read_compact_string(buf, pos, end) if flexible else read_string(buf, pos, end)
        allowance.left -= getsizeof(topic)
        count, pos = _compact_count(buf, pos, end, 6) if flexible else read_count(buf, pos, end, 8)
        allowance.take_array(count, _PARTITION_BYTES)
        partitions: list[PartitionRecords] = []
        for _ in range(count):
            row, pos = _partition_flexible(buf, pos, end) if flexible else _partition_plain(buf, pos, end)
            partitions.append(row)
            if allowance.due(pos):
                yield
        if flexible:
            pos = skip_tags(buf, pos, end)
        topics.append((topic, partitions))
        if allowance.due(pos):
            yield
    if flexible:
        pos = skip_tags(buf, pos, end)
    return (transactional_id, acks, timeout_ms, topics), pos


def _compact_count(buf: HotBuffer, pos: int, end: int, least: int) -> tuple[int, int]:
    """As the plain parser reads it, which does not compare a count of one byte with the bytes that are left."""
    count = buf[pos] - 1
    return (count, pos + 1) if 0 <= count < 0x7F else read_compact_count(buf, pos, end, least)


def _partition_flexible(buf: HotBuffer, pos: int, end: int) -> tuple[PartitionRecords, int]:
    (index,) = INT32(buf, pos)
    length, pos = read_uvarint(buf, pos + 4)
    if length == 0:
        return (index, -1, -1), skip_tags(buf, pos, end)
    start = pos
    pos += length - 1
    if pos > end:
        raise DecodeError(f"records of {length - 1} bytes with {end - start} bytes left")
    return (index, start, pos), skip_tags(buf, pos, end)


def _partition_plain(buf: HotBuffer, pos: int, end: int) -> tuple[PartitionRecords, int]:
    index, length = INDEX_LENGTH(buf, pos)
    start = pos + 8
    if length < 0:
        return (index, -1, -1), start
    pos = start + length
    if pos > end:
        raise DecodeError(f"records of {length} bytes with {end - start} bytes left")
    return (index, start, pos), pos


def encode_produce_response_steps(
    version: int,
    topics: Sequence[TopicAnswer],
    throttle_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
    *,
    correlation_id: int,
    limit: int,
) -> Steps[bytearray]:
    """The whole frame; EncodeError as soon as it is longer than `limit` bytes."""
    if not 0 <= version <= 13:
        raise EncodeError(f"ProduceResponse has no version {version}")
    flexible = version >= 9
    out = begin_answer(correlation_id, flexible=flexible)
    put_length = put_compact_count if flexible else put_count
    put_topics = put_topics_flexible if flexible else put_topics_plain
    try:
        put_length(out, len(topics))
        work = PIECE
        for topic, partitions in topics:
            if len(partitions) <= PIECE:
                put_topics(out, version, ((topic, partitions),))
                work -= len(partitions) + 1
            else:
                name, tail = _around_partitions(version, topic)
                out += name
                put_length(out, len(partitions))
                for piece in pieces(partitions, PIECE):
                    some = bytearray()
                    put_topics(some, version, ((topic, piece),))
                    out += memoryview(some)[len(name) + (1 if flexible else 4) : len(some) - len(tail)]
                    _check(out, limit)
                    yield
                out += tail
            if work <= 0:
                work = PIECE
                _check(out, limit)
                yield
        if version >= 1:
            out += PACK_INT32(throttle_ms)
        if flexible:
            put_node_endpoints_tag(out, node_endpoints if version >= 10 else ())
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of ProduceResponse cannot say: {fault}") from fault
    _check(out, limit)
    out[0:4] = PACK_INT32(len(out) - 4)
    return out


def _around_partitions(version: int, topic: str | bytes) -> tuple[bytearray, bytearray]:
    """What stands before the count of a topic's partitions, and what behind them: as the plain encoder says it."""
    out = bytearray()
    if version >= 9:
        put_topics_flexible(out, version, ((topic, ()),))
        return out[:-2], out[-1:]
    put_topics_plain(out, version, ((topic, ()),))
    return out[:-4], out[len(out) :]


def _check(out: bytearray, limit: int) -> None:
    if len(out) > limit:
        raise EncodeError(f"an answer to PRODUCE of more than {limit} bytes")
