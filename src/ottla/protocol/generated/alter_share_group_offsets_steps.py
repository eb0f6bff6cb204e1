"""Sets where share groups start in partitions.

In steps; made from schemas/alter_share_group_offsets.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponseTopic,
    _read_alter_share_group_offsets_request_partition,
    _write_alter_share_group_offsets_response_partition,
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
    read_compact_string,
    read_tags,
    shortened,
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

_pack_ih = Struct(">ih").pack


def _read_alter_share_group_offsets_request_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterShareGroupOffsetsRequestTopic, int]]:
    m = object.__new__(AlterShareGroupOffsetsRequestTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic_name)
    count, pos = read_compact_count(buf, pos, limit, 13)
    if count > FEW:
        allowance.take_array(count, 224)
        m.partitions, pos = yield from read_structs(_read_alter_share_group_offsets_request_partition, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.partitions, pos = read_few(_read_alter_share_group_offsets_request_partition, buf, pos, limit, version, count, allowance, text=False)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_alter_share_group_offsets_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterShareGroupOffsetsRequest, int]]:
    m = object.__new__(AlterShareGroupOffsetsRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[AlterShareGroupOffsetsRequestTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_alter_share_group_offsets_request_topic_held(buf, pos, limit, version, allowance)
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


def _write_alter_share_group_offsets_response_topic_steps(out: bytearray, m: AlterShareGroupOffsetsResponseTopic, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.topic_name)
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_alter_share_group_offsets_response_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_alter_share_group_offsets_response_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_alter_share_group_offsets_response_steps(out: bytearray, m: AlterShareGroupOffsetsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_alter_share_group_offsets_response_topic_steps(out, responses_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterShareGroupOffsetsRequest: _read_alter_share_group_offsets_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterShareGroupOffsetsResponse: _write_alter_share_group_offsets_response_steps,
}
