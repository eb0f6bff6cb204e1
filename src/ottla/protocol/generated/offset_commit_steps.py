"""Stores a group's positions.

In steps; made from schemas/offset_commit.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
    _read_offset_commit_request_partition,
    _write_offset_commit_response_partition,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
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
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_offset_commit_request_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetCommitRequestTopic, int]]:
    m = object.__new__(OffsetCommitRequestTopic)
    if version >= 10:
        m.name = ""
    elif version >= 8:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    if version >= 10:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 14) if version >= 8 else read_count(buf, pos, limit, 14)
    if count > FEW:
        allowance.take_array(count, 264)
        m.partitions, pos = yield from read_structs(_read_offset_commit_request_partition, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 264
        m.partitions, pos = read_few(_read_offset_commit_request_partition, buf, pos, limit, version, count, allowance, text=True)
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_offset_commit_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetCommitRequest, int]]:
    m = object.__new__(OffsetCommitRequest)
    if version >= 8:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    (m.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 8:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
    if version >= 8:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    elif version >= 7:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_instance_id)
    else:
        m.group_instance_id = None
    if version >= 5:
        m.retention_time_ms = -1
    else:
        (m.retention_time_ms,) = _unpack_q(buf, pos)
        pos += 8
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 8 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_offset_commit_request_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if version >= 8:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_commit_response_topic_steps(out: bytearray, m: OffsetCommitResponseTopic, version: int, pace: Pace) -> Steps[None]:
    if version >= 10:
        pass
    elif version >= 8:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 10:
        put_uuid(out, m.topic_id)
    if version >= 8:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_offset_commit_response_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_offset_commit_response_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_offset_commit_response_steps(out: bytearray, m: OffsetCommitResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 8:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_offset_commit_response_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if version >= 8:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetCommitRequest: _read_offset_commit_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetCommitResponse: _write_offset_commit_response_steps,
}
