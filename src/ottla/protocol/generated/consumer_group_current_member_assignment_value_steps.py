"""What a member of a consumer group has, what it was asked to give up, and how far it has come.

In steps; made from schemas/consumer_group_current_member_assignment_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
    _TAGS_TOPIC_PARTITIONS,
)
from ottla.protocol.message import Message, tag_of_other_size
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_numbers,
    read_tag,
    read_tag_count,
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

_pack_iib = Struct(">iib").pack
_unpack_iib = Struct(">iib").unpack_from
_unpack_u = Struct(">16s").unpack_from


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
    m.assignment_epochs = []
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        pos = yield from _read_topic_partitions_tags_held(m, buf, pos, limit, version, allowance)
    return m, pos


def _read_topic_partitions_tags_held(m: TopicPartitions, buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[int]:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            count, pos = read_compact_nullable_count(buf, pos, end, 4)
            if count < 0:
                m.assignment_epochs = None
            else:
                if count > NUMBERS_A_PIECE:
                    allowance.take_array(count, 40)
                    m.assignment_epochs, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
                else:
                    m.assignment_epochs, pos = read_numbers(buf, pos, count, "i", 4)
                    allowance.left -= count * 40
                    allowance.work -= count // PIECE
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    allowance.take_tags(unknown)
    return pos


def _write_topic_partitions_steps(out: bytearray, m: TopicPartitions, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partitions, "i", pace)
    else:
        put_numbers(out, m.partitions, "i")
        pace.work -= len(m.partitions) // PIECE
    tags: list[tuple[int, bytearray]] = []
    if m.assignment_epochs != []:
        tag = bytearray()
        if m.assignment_epochs is None:
            tag.append(0)
        else:
            put_compact_count(tag, len(m.assignment_epochs))
            if len(m.assignment_epochs) > NUMBERS_A_PIECE:
                yield from write_many_numbers(tag, m.assignment_epochs, "i", pace)
            else:
                put_numbers(tag, m.assignment_epochs, "i")
                pace.work -= len(m.assignment_epochs) // PIECE
        tags.append((0, tag))
    if tags or m.unknown_tags:
        put_tags(out, tags, m.unknown_tags, _TAGS_TOPIC_PARTITIONS)
    else:
        out.append(0)


def _read_consumer_group_current_member_assignment_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupCurrentMemberAssignmentValue, int]]:
    m = object.__new__(ConsumerGroupCurrentMemberAssignmentValue)
    m.member_epoch, m.previous_member_epoch, m.state = _unpack_iib(buf, pos)
    pos += 9
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 288)
    assigned_partitions_: list[TopicPartitions] = []
    for _ in range(count):
        assigned_partitions_item, pos = yield from _read_topic_partitions_held(buf, pos, limit, version, allowance)
        assigned_partitions_.append(assigned_partitions_item)
        if allowance.due(pos):
            yield
    m.assigned_partitions = assigned_partitions_
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 288)
    partitions_pending_revocation_: list[TopicPartitions] = []
    for _ in range(count):
        partitions_pending_revocation_item, pos = yield from _read_topic_partitions_held(buf, pos, limit, version, allowance)
        partitions_pending_revocation_.append(partitions_pending_revocation_item)
        if allowance.due(pos):
            yield
    m.partitions_pending_revocation = partitions_pending_revocation_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_consumer_group_current_member_assignment_value_steps(out: bytearray, m: ConsumerGroupCurrentMemberAssignmentValue, version: int, pace: Pace) -> Steps[None]:
    out += _pack_iib(m.member_epoch, m.previous_member_epoch, m.state)
    put_compact_count(out, len(m.assigned_partitions))
    for assigned_partitions_item in m.assigned_partitions:
        yield from _write_topic_partitions_steps(out, assigned_partitions_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.partitions_pending_revocation))
    for partitions_pending_revocation_item in m.partitions_pending_revocation:
        yield from _write_topic_partitions_steps(out, partitions_pending_revocation_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupCurrentMemberAssignmentValue: _read_consumer_group_current_member_assignment_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupCurrentMemberAssignmentValue: _write_consumer_group_current_member_assignment_value_steps,
}
