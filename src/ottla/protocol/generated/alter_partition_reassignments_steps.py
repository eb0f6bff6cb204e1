"""Moves partitions to other brokers, or calls a move off.

In steps; made from schemas/alter_partition_reassignments.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
    ReassignableTopicResponse,
    _write_reassignable_partition_response,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from


def _read_reassignable_partition_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReassignablePartition, int]]:
    m = object.__new__(ReassignablePartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 4)
    if count < 0:
        m.replicas = None
    else:
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_reassignable_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReassignableTopic, int]]:
    m = object.__new__(ReassignableTopic)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    partitions_: list[ReassignablePartition] = []
    for _ in range(count):
        partitions_item, pos = yield from _read_reassignable_partition_held(buf, pos, limit, version, allowance)
        partitions_.append(partitions_item)
        if allowance.due(pos):
            yield
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_alter_partition_reassignments_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterPartitionReassignmentsRequest, int]]:
    m = object.__new__(AlterPartitionReassignmentsRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        m.allow_replication_factor_change = buf[pos] != 0
        pos += 1
    else:
        m.allow_replication_factor_change = True
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[ReassignableTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_reassignable_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_reassignable_topic_response_steps(out: bytearray, m: ReassignableTopicResponse, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_reassignable_partition_response, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_reassignable_partition_response(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_alter_partition_reassignments_response_steps(out: bytearray, m: AlterPartitionReassignmentsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        out.append(1 if m.allow_replication_factor_change else 0)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_reassignable_topic_response_steps(out, responses_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterPartitionReassignmentsRequest: _read_alter_partition_reassignments_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterPartitionReassignmentsResponse: _write_alter_partition_reassignments_response_steps,
}
