"""Log directories, and the size of each replica in them.

In steps; made from schemas/describe_log_dirs.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    _write_describe_log_dirs_partition,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
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
_pack_qq = Struct(">qq").pack


def _read_describable_log_dir_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribableLogDirTopic, int]]:
    m = object.__new__(DescribableLogDirTopic)
    if version >= 2:
        m.topic, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    else:
        m.topic, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_describe_log_dirs_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[DescribeLogDirsRequest, int]]:
    m = object.__new__(DescribeLogDirsRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topics = None
    else:
        allowance.take_array(count, 224)
        topics_: list[DescribableLogDirTopic] = []
        for _ in range(count):
            topics_item, pos = yield from _read_describable_log_dir_topic_held(buf, pos, limit, version, allowance)
            topics_.append(topics_item)
            if allowance.due(pos):
                yield
        m.topics = topics_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_log_dirs_topic_steps(out: bytearray, m: DescribeLogDirsTopic, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_describe_log_dirs_partition, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_describe_log_dirs_partition(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_log_dirs_result_steps(out: bytearray, m: DescribeLogDirsResult, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_string(out, m.log_dir)
    else:
        put_string(out, m.log_dir)
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_describe_log_dirs_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if version >= 4:
        out += _pack_qq(m.total_bytes, m.usable_bytes)
    if version >= 5:
        out.append(1 if m.is_cordoned else 0)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_describe_log_dirs_response_steps(out: bytearray, m: DescribeLogDirsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 3:
        out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_describe_log_dirs_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeLogDirsRequest: _read_describe_log_dirs_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    DescribeLogDirsResponse: _write_describe_log_dirs_response_steps,
}
