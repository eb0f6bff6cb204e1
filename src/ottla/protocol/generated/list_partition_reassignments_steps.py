"""The moves under way.

In steps; made from schemas/list_partition_reassignments.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
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
    read_compact_count,
    read_compact_nullable_count,
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
    write_many_numbers,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from


def _read_list_partition_reassignments_topics_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListPartitionReassignmentsTopics, int]]:
    m = object.__new__(ListPartitionReassignmentsTopics)
    m.name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.name)
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


def _read_list_partition_reassignments_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListPartitionReassignmentsRequest, int]]:
    m = object.__new__(ListPartitionReassignmentsRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        allowance.take_array(count, 224)
        topics_: list[ListPartitionReassignmentsTopics] = []
        for _ in range(count):
            topics_item, pos = yield from _read_list_partition_reassignments_topics_held(buf, pos, limit, version, allowance)
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


def _write_ongoing_partition_reassignment_steps(out: bytearray, m: OngoingPartitionReassignment, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.partition_index)
    put_compact_count(out, len(m.replicas))
    if len(m.replicas) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.replicas, "i", pace)
    else:
        put_numbers(out, m.replicas, "i")
        pace.work -= len(m.replicas) // PIECE
    put_compact_count(out, len(m.adding_replicas))
    if len(m.adding_replicas) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.adding_replicas, "i", pace)
    else:
        put_numbers(out, m.adding_replicas, "i")
        pace.work -= len(m.adding_replicas) // PIECE
    put_compact_count(out, len(m.removing_replicas))
    if len(m.removing_replicas) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.removing_replicas, "i", pace)
    else:
        put_numbers(out, m.removing_replicas, "i")
        pace.work -= len(m.removing_replicas) // PIECE
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_ongoing_topic_reassignment_steps(out: bytearray, m: OngoingTopicReassignment, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_ongoing_partition_reassignment_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_list_partition_reassignments_response_steps(out: bytearray, m: ListPartitionReassignmentsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_ongoing_topic_reassignment_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListPartitionReassignmentsRequest: _read_list_partition_reassignments_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListPartitionReassignmentsResponse: _write_list_partition_reassignments_response_steps,
}
