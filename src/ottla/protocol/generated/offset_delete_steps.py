"""Forgets a group's positions in topics it does not subscribe to.

In steps; made from schemas/offset_delete.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
    _read_offset_delete_request_partition,
    _write_offset_delete_response_partition,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_count,
    put_string,
    read_count,
    read_string,
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

_pack_hi = Struct(">hi").pack


def _read_offset_delete_request_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetDeleteRequestTopic, int]]:
    m = object.__new__(OffsetDeleteRequestTopic)
    m.name, pos = read_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
    count, pos = read_count(buf, pos, limit, 4)
    if count > FEW:
        allowance.take_array(count, 224)
        m.partitions, pos = yield from read_structs(_read_offset_delete_request_partition, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.partitions, pos = read_few(_read_offset_delete_request_partition, buf, pos, limit, version, count, allowance, text=False)
    m.unknown_tags = NO_TAGS
    return m, pos


def _read_offset_delete_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[OffsetDeleteRequest, int]]:
    m = object.__new__(OffsetDeleteRequest)
    m.group_id, pos = read_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    topics_: list[OffsetDeleteRequestTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_offset_delete_request_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_delete_response_topic_steps(out: bytearray, m: OffsetDeleteResponseTopic, version: int, pace: Pace) -> Steps[None]:
    put_string(out, m.name)
    put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_offset_delete_response_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_offset_delete_response_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        raise not_tagged(m, version)


def _write_offset_delete_response_steps(out: bytearray, m: OffsetDeleteResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_hi(m.error_code, m.throttle_time_ms)
    put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_offset_delete_response_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetDeleteRequest: _read_offset_delete_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    OffsetDeleteResponse: _write_offset_delete_response_steps,
}
