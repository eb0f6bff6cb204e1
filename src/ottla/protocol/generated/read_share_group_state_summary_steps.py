"""The kept start offsets of share partitions.

In steps; made from schemas/read_share_group_state_summary.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryData,
    ReadStateSummaryResult,
    _read_partition_data,
    _write_partition_result,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_tags,
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

_unpack_u = Struct(">16s").unpack_from


def _read_read_state_summary_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReadStateSummaryData, int]]:
    m = object.__new__(ReadStateSummaryData)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 9)
    if count > FEW:
        allowance.take_array(count, 224)
        m.partitions, pos = yield from read_structs(_read_partition_data, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.partitions, pos = read_few(_read_partition_data, buf, pos, limit, version, count, allowance, text=False)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_read_share_group_state_summary_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReadShareGroupStateSummaryRequest, int]]:
    m = object.__new__(ReadShareGroupStateSummaryRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    topics_: list[ReadStateSummaryData] = []
    for _ in range(count):
        topics_item, pos = yield from _read_read_state_summary_data_held(buf, pos, limit, version, allowance)
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


def _write_read_state_summary_result_steps(out: bytearray, m: ReadStateSummaryResult, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_partition_result, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_partition_result(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_read_share_group_state_summary_response_steps(out: bytearray, m: ReadShareGroupStateSummaryResponse, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_read_state_summary_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ReadShareGroupStateSummaryRequest: _read_read_share_group_state_summary_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ReadShareGroupStateSummaryResponse: _write_read_share_group_state_summary_response_steps,
}
