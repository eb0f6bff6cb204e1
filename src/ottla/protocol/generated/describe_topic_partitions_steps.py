"""Topics and their partitions, page by page.

In steps; made from schemas/describe_topic_partitions.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    _read_topic_request,
    _write_cursor,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_tags,
    uuid_bytes,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_structs,
    write_many_numbers,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_hiii = Struct(">hiii").pack
_pack_i = Struct(">i").pack
_pack_ut = Struct(">16s?").pack
_unpack_i = Struct(">i").unpack_from


def _read_describe_topic_partitions_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeTopicPartitionsRequest, int]]:
    m = object.__new__(DescribeTopicPartitionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 2)
    if count > FEW:
        allowance.take_array(count, 224)
        m.topics, pos = yield from read_structs(_read_topic_request, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 224
        m.topics, pos = read_few(_read_topic_request, buf, pos, limit, version, count, allowance, text=True)
    (m.response_partition_limit,) = _unpack_i(buf, pos)
    pos += 4
    pos += 1
    if buf[pos - 1] > 0x7F:
        m.cursor = None
    else:
        m.cursor, pos = _read_cursor_held(buf, pos, limit, version, allowance)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_describe_topic_partitions_response_partition_steps(out: bytearray, m: DescribeTopicPartitionsResponsePartition, version: int, pace: Pace) -> Steps[None]:
    out += _pack_hiii(m.error_code, m.partition_index, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.replica_nodes))
    if len(m.replica_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.replica_nodes, "i", pace)
    else:
        put_numbers(out, m.replica_nodes, "i")
        pace.work -= len(m.replica_nodes) // PIECE
    put_compact_count(out, len(m.isr_nodes))
    if len(m.isr_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.isr_nodes, "i", pace)
    else:
        put_numbers(out, m.isr_nodes, "i")
        pace.work -= len(m.isr_nodes) // PIECE
    if m.eligible_leader_replicas is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.eligible_leader_replicas))
        if len(m.eligible_leader_replicas) > NUMBERS_A_PIECE:
            yield from write_many_numbers(out, m.eligible_leader_replicas, "i", pace)
        else:
            put_numbers(out, m.eligible_leader_replicas, "i")
            pace.work -= len(m.eligible_leader_replicas) // PIECE
    if m.last_known_elr is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.last_known_elr))
        if len(m.last_known_elr) > NUMBERS_A_PIECE:
            yield from write_many_numbers(out, m.last_known_elr, "i", pace)
        else:
            put_numbers(out, m.last_known_elr, "i")
            pace.work -= len(m.last_known_elr) // PIECE
    put_compact_count(out, len(m.offline_replicas))
    if len(m.offline_replicas) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.offline_replicas, "i", pace)
    else:
        put_numbers(out, m.offline_replicas, "i")
        pace.work -= len(m.offline_replicas) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_describe_topic_partitions_response_topic_steps(out: bytearray, m: DescribeTopicPartitionsResponseTopic, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, m.name)
    out += _pack_ut(uuid_bytes(m.topic_id), m.is_internal)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_describe_topic_partitions_response_partition_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    out += _pack_i(m.topic_authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_cursor_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[Cursor, int]:
    m = object.__new__(Cursor)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic_name)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_describe_topic_partitions_response_steps(out: bytearray, m: DescribeTopicPartitionsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_describe_topic_partitions_response_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.next_cursor is None:
        out.append(0xFF)
    else:
        out.append(1)
        _write_cursor(out, m.next_cursor, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeTopicPartitionsRequest: _read_describe_topic_partitions_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeTopicPartitionsResponse: _write_describe_topic_partitions_response_steps,
}
