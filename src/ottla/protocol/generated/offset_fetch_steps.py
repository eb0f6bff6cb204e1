"""Reads the positions that groups have committed.

In steps; made from schemas/offset_fetch.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
    _write_offset_fetch_response_partition,
    _write_offset_fetch_response_partitions,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
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
    read_compact_nullable_count,
    read_compact_nullable_string,
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_offset_fetch_request_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetFetchRequestTopic, int]]:
    m = object.__new__(OffsetFetchRequestTopic)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partition_indexes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
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


def _read_offset_fetch_request_topics_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetFetchRequestTopics, int]]:
    m = object.__new__(OffsetFetchRequestTopics)
    if version >= 10:
        m.name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partition_indexes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_offset_fetch_request_group_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetFetchRequestGroup, int]]:
    m = object.__new__(OffsetFetchRequestGroup)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    if version >= 9:
        m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.member_id)
        (m.member_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.member_id = None
        m.member_epoch = -1
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        allowance.take_array(count, 224)
        topics_: list[OffsetFetchRequestTopics] = []
        for _ in range(count):
            topics_item, pos = yield from _read_offset_fetch_request_topics_held(buf, pos, limit, version, allowance)
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


def _read_offset_fetch_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetFetchRequest, int]]:
    m = object.__new__(OffsetFetchRequest)
    if version >= 8:
        m.group_id = ""
    elif version >= 6:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.group_id)
    if version >= 8:
        m.topics = []
    elif version >= 2:
        count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 6 else read_nullable_count(buf, pos, limit, 3)
        if count < 0:
            m.topics = None
        else:
            allowance.take_array(count, 224)
            topics_or_null_: list[OffsetFetchRequestTopic] = []
            for _ in range(count):
                topics_or_null_item, pos = yield from _read_offset_fetch_request_topic_held(buf, pos, limit, version, allowance)
                topics_or_null_.append(topics_or_null_item)
                if allowance.due(pos):
                    yield
            m.topics = topics_or_null_
    else:
        count, pos = read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        topics_: list[OffsetFetchRequestTopic] = []
        for _ in range(count):
            topics_item, pos = yield from _read_offset_fetch_request_topic_held(buf, pos, limit, version, allowance)
            topics_.append(topics_item)
            if allowance.due(pos):
                yield
        m.topics = topics_
    if version >= 8:
        count, pos = read_compact_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        groups_: list[OffsetFetchRequestGroup] = []
        for _ in range(count):
            groups_item, pos = yield from _read_offset_fetch_request_group_held(buf, pos, limit, version, allowance)
            groups_.append(groups_item)
            if allowance.due(pos):
                yield
        m.groups = groups_
    else:
        m.groups = []
    if version >= 7:
        m.require_stable = buf[pos] != 0
        pos += 1
    else:
        m.require_stable = False
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


def _write_offset_fetch_response_topic_steps(out: bytearray, m: OffsetFetchResponseTopic, version: int, pace: Pace) -> Steps[None]:
    if version >= 6:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 6:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_offset_fetch_response_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_offset_fetch_response_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_offset_fetch_response_topics_steps(out: bytearray, m: OffsetFetchResponseTopics, version: int, pace: Pace) -> Steps[None]:
    if version >= 10:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_offset_fetch_response_partitions, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_offset_fetch_response_partitions(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_offset_fetch_response_group_steps(out: bytearray, m: OffsetFetchResponseGroup, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_offset_fetch_response_topics_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    out += _pack_h(m.error_code)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_offset_fetch_response_steps(out: bytearray, m: OffsetFetchResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 8:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    else:
        if version >= 6:
            put_compact_count(out, len(m.topics))
        else:
            put_count(out, len(m.topics))
        for topics_item in m.topics:
            yield from _write_offset_fetch_response_topic_steps(out, topics_item, version, pace)
            if pace.due():
                yield
    if version >= 8:
        pass
    elif version >= 2:
        out += _pack_h(m.error_code)
    if version >= 8:
        put_compact_count(out, len(m.groups))
        for groups_item in m.groups:
            yield from _write_offset_fetch_response_group_steps(out, groups_item, version, pace)
            if pace.due():
                yield
    else:
        if m.groups != []:
            raise not_in_version(m, "groups", version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetFetchRequest: _read_offset_fetch_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetFetchResponse: _write_offset_fetch_response_steps,
}
