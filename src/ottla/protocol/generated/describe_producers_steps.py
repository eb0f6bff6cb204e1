"""The producers that are active in partitions.

In steps; made from schemas/describe_producers.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
    TopicResponse,
    _write_producer_state,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
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

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack


def _read_topic_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicRequest, int]]:
    m = object.__new__(TopicRequest)
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


def _read_describe_producers_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeProducersRequest, int]]:
    m = object.__new__(DescribeProducersRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[TopicRequest] = []
    for _ in range(count):
        topics_item, pos = yield from _read_topic_request_held(buf, pos, limit, version, allowance)
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


def _write_partition_response_steps(out: bytearray, m: PartitionResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.active_producers))
    if len(m.active_producers) > FEW:
        yield from write_structs(out, m.active_producers, _write_producer_state, version, pace)
    else:
        for active_producers_item in m.active_producers:
            _write_producer_state(out, active_producers_item, version)
        pace.work -= len(m.active_producers)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_topic_response_steps(out: bytearray, m: TopicResponse, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_partition_response_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_describe_producers_response_steps(out: bytearray, m: DescribeProducersResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_topic_response_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeProducersRequest: _read_describe_producers_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeProducersResponse: _write_describe_producers_response_steps,
}
