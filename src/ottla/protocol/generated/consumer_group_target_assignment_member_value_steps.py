"""What a member of a consumer group is to have.

In steps; made from schemas/consumer_group_target_assignment_member_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_numbers,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_many_numbers,
)
from ottla.steps import Steps

_unpack_u = Struct(">16s").unpack_from


def _read_topic_partition_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicPartition, int]]:
    m = object.__new__(TopicPartition)
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


def _write_topic_partition_steps(out: bytearray, m: TopicPartition, version: int, pace: Pace) -> Steps[None]:
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


def _read_consumer_group_target_assignment_member_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupTargetAssignmentMemberValue, int]]:
    m = object.__new__(ConsumerGroupTargetAssignmentMemberValue)
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    topic_partitions_: list[TopicPartition] = []
    for _ in range(count):
        topic_partitions_item, pos = yield from _read_topic_partition_held(buf, pos, limit, version, allowance)
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


def _write_consumer_group_target_assignment_member_value_steps(out: bytearray, m: ConsumerGroupTargetAssignmentMemberValue, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.topic_partitions))
    for topic_partitions_item in m.topic_partitions:
        yield from _write_topic_partition_steps(out, topic_partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupTargetAssignmentMemberValue: _read_consumer_group_target_assignment_member_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupTargetAssignmentMemberValue: _write_consumer_group_target_assignment_member_value_steps,
}
