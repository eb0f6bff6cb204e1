"""State and members of new consumer groups.

In steps; made from schemas/consumer_group_describe.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_strings,
    write_many_numbers,
    write_strings,
)
from ottla.steps import Steps

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ii = Struct(">ii").pack


def _read_consumer_group_describe_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ConsumerGroupDescribeRequest, int]]:
    m = object.__new__(ConsumerGroupDescribeRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.group_ids, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    m.include_authorized_operations = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_topic_partitions_steps(out: bytearray, m: TopicPartitions, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_string(out, m.topic_name)
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


def _write_member_steps(out: bytearray, m: Member, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.member_id)
    put_compact_nullable_string(out, m.instance_id)
    put_compact_nullable_string(out, m.rack_id)
    out += _pack_i(m.member_epoch)
    put_compact_string(out, m.client_id)
    put_compact_string(out, m.client_host)
    put_compact_count(out, len(m.subscribed_topic_names))
    yield from write_strings(out, m.subscribed_topic_names, put_compact_string, pace)
    put_compact_nullable_string(out, m.subscribed_topic_regex)
    yield from _write_assignment_steps(out, m.assignment, version, pace)
    yield from _write_assignment_steps(out, m.target_assignment, version, pace)
    if version >= 1:
        out += _pack_b(m.member_type)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_described_group_steps(out: bytearray, m: DescribedGroup, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_string(out, m.group_id)
    put_compact_string(out, m.group_state)
    out += _pack_ii(m.group_epoch, m.assignment_epoch)
    put_compact_string(out, m.assignor_name)
    put_compact_count(out, len(m.members))
    for members_item in m.members:
        yield from _write_member_steps(out, members_item, version, pace)
        if pace.due():
            yield
    out += _pack_i(m.authorized_operations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_consumer_group_describe_response_steps(out: bytearray, m: ConsumerGroupDescribeResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.groups))
    for groups_item in m.groups:
        yield from _write_described_group_steps(out, groups_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupDescribeRequest: _read_consumer_group_describe_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ConsumerGroupDescribeResponse: _write_consumer_group_describe_response_steps,
}
