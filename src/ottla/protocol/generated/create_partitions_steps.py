"""Adds partitions to topics.

In steps; made from schemas/create_partitions.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    _write_create_partitions_topic_result,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_numbers,
    read_string,
    read_tags,
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

_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from
_unpack_it = Struct(">i?").unpack_from


def _read_create_partitions_assignment_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreatePartitionsAssignment, int]]:
    m = object.__new__(CreatePartitionsAssignment)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.broker_ids, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.broker_ids, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_create_partitions_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreatePartitionsTopic, int]]:
    m = object.__new__(CreatePartitionsTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    (m.count,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 2) if version >= 2 else read_nullable_count(buf, pos, limit, 2)
    if count < 0:
        m.assignments = None
    else:
        allowance.take_array(count, 224)
        assignments_: list[CreatePartitionsAssignment] = []
        for _ in range(count):
            assignments_item, pos = yield from _read_create_partitions_assignment_held(buf, pos, limit, version, allowance)
            assignments_.append(assignments_item)
            if allowance.due(pos):
                yield
        m.assignments = assignments_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_create_partitions_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreatePartitionsRequest, int]]:
    m = object.__new__(CreatePartitionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 2 else read_count(buf, pos, limit, 7)
    allowance.take_array(count, 224)
    topics_: list[CreatePartitionsTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_create_partitions_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    m.timeout_ms, m.validate_only = _unpack_it(buf, pos)
    pos += 5
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_partitions_response_steps(out: bytearray, m: CreatePartitionsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    if len(m.results) > FEW:
        yield from write_structs(out, m.results, _write_create_partitions_topic_result, version, pace)
    else:
        for results_item in m.results:
            _write_create_partitions_topic_result(out, results_item, version)
        pace.work -= len(m.results)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreatePartitionsRequest: _read_create_partitions_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreatePartitionsResponse: _write_create_partitions_response_steps,
}
