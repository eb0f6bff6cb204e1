"""Finds offsets by timestamp, or a partition's first, last and special ones.

In steps; made from schemas/list_offsets.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
    _read_list_offsets_partition,
    _write_list_offsets_partition_response,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_few,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from


def _read_list_offsets_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListOffsetsTopic, int]]:
    m = object.__new__(ListOffsetsTopic)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 12) if version >= 6 else read_count(buf, pos, limit, 12)
    if count > FEW:
        allowance.take_array(count, 224)
        m.partitions, pos = yield from read_structs(_read_list_offsets_partition, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.partitions, pos = read_few(_read_list_offsets_partition, buf, pos, limit, version, count, allowance, text=False)
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_list_offsets_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListOffsetsRequest, int]]:
    m = object.__new__(ListOffsetsRequest)
    (m.replica_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.isolation_level,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.isolation_level = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[ListOffsetsTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_list_offsets_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if version >= 10:
        (m.timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.timeout_ms = 0
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_offsets_topic_response_steps(out: bytearray, m: ListOffsetsTopicResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_list_offsets_partition_response, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_list_offsets_partition_response(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_list_offsets_response_steps(out: bytearray, m: ListOffsetsResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        out += _pack_i(m.throttle_time_ms)
    if version >= 6:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_list_offsets_topic_response_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListOffsetsRequest: _read_list_offsets_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListOffsetsResponse: _write_list_offsets_response_steps,
}
