"""The one request of the new consumer groups' members: join, report, leave, be assigned.

In steps; made from schemas/consumer_group_heartbeat.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    read_strings,
    write_many_numbers,
)
from ottla.steps import Steps

_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_consumer_group_heartbeat_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupHeartbeatRequest, int]]:
    m = object.__new__(ConsumerGroupHeartbeatRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    m.member_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.member_id)
    (m.member_epoch,) = _unpack_i(buf, pos)
    pos += 4
    m.instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.instance_id)
    m.rack_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.rack_id)
    (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 1)
    if count < 0:
        m.subscribed_topic_names = None
    else:
        allowance.take_array(count, 304)
        m.subscribed_topic_names, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    if version >= 1:
        m.subscribed_topic_regex, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.subscribed_topic_regex)
    else:
        m.subscribed_topic_regex = None
    m.server_assignor, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.server_assignor)
    count, pos = read_compact_nullable_count(buf, pos, limit, 18)
    if count < 0:
        m.topic_partitions = None
    else:
        allowance.take_array(count, 224)
        topic_partitions_: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions_item, pos = yield from _read_topic_partitions_held(buf, pos, limit, version, allowance)
            topic_partitions_.append(topic_partitions_item)
            if allowance.due(pos):
                yield
        m.topic_partitions = topic_partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_topic_partitions_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicPartitions, int]]:
    m = object.__new__(TopicPartitions)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
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


def _write_topic_partitions_steps(out: bytearray, m: TopicPartitions, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_assignment_steps(out: bytearray, m: Assignment, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.topic_partitions))
    for topic_partitions_item in m.topic_partitions:
        yield from _write_topic_partitions_steps(out, topic_partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_consumer_group_heartbeat_response_steps(out: bytearray, m: ConsumerGroupHeartbeatResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_nullable_string(out, m.member_id)
    out += _pack_ii(m.member_epoch, m.heartbeat_interval_ms)
    if m.assignment is None:
        out.append(0xFF)
    else:
        out.append(1)
        yield from _write_assignment_steps(out, m.assignment, version, pace)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupHeartbeatRequest: _read_consumer_group_heartbeat_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupHeartbeatResponse: _write_consumer_group_heartbeat_response_steps,
}
