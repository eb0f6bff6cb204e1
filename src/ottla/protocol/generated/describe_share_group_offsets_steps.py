"""Where share groups start in partitions.

In steps; made from schemas/describe_share_group_offsets.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponseTopic,
    _write_describe_share_group_offsets_response_partition,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    put_uuid,
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


def _read_describe_share_group_offsets_request_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeShareGroupOffsetsRequestTopic, int]]:
    m = object.__new__(DescribeShareGroupOffsetsRequestTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic_name)
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_describe_share_group_offsets_request_group_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeShareGroupOffsetsRequestGroup, int]]:
    m = object.__new__(DescribeShareGroupOffsetsRequestGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        allowance.take_array(count, 224)
        topics_: list[DescribeShareGroupOffsetsRequestTopic] = []
        for _ in range(count):
            topics_item, pos = yield from _read_describe_share_group_offsets_request_topic_held(buf, pos, limit, version, allowance)
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


def _read_describe_share_group_offsets_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeShareGroupOffsetsRequest, int]]:
    m = object.__new__(DescribeShareGroupOffsetsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    groups_: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(count):
        groups_item, pos = yield from _read_describe_share_group_offsets_request_group_held(buf, pos, limit, version, allowance)
        groups_.append(groups_item)
        if allowance.due(pos):
            yield
    m.groups = groups_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_describe_share_group_offsets_response_topic_steps(out: bytearray, m: DescribeShareGroupOffsetsResponseTopic, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.topic_name)
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_describe_share_group_offsets_response_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_describe_share_group_offsets_response_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_describe_share_group_offsets_response_group_steps(out: bytearray, m: DescribeShareGroupOffsetsResponseGroup, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_describe_share_group_offsets_response_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_describe_share_group_offsets_response_steps(out: bytearray, m: DescribeShareGroupOffsetsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        yield from _write_describe_share_group_offsets_response_group_steps(out, groups_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeShareGroupOffsetsRequest: _read_describe_share_group_offsets_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeShareGroupOffsetsResponse: _write_describe_share_group_offsets_response_steps,
}
