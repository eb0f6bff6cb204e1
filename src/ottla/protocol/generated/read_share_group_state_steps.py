"""The kept state of share partitions.

In steps; made from schemas/read_share_group_state.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateData,
    ReadStateResult,
    _read_partition_data,
    _write_state_batch,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
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
_pack_iq = Struct(">iq").pack
_unpack_u = Struct(">16s").unpack_from


def _read_read_state_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReadStateData, int]]:
    m = object.__new__(ReadStateData)
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


def _read_read_share_group_state_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ReadShareGroupStateRequest, int]]:
    m = object.__new__(ReadShareGroupStateRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    topics_: list[ReadStateData] = []
    for _ in range(count):
        topics_item, pos = yield from _read_read_state_data_held(buf, pos, limit, version, allowance)
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


def _write_partition_result_steps(out: bytearray, m: PartitionResult, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.partition, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_iq(m.state_epoch, m.start_offset)
    put_compact_count(out, len(m.state_batches))
    if len(m.state_batches) > FEW:
        yield from write_structs(out, m.state_batches, _write_state_batch, version, pace)
    else:
        for state_batches_item in m.state_batches:
            _write_state_batch(out, state_batches_item, version)
        pace.work -= len(m.state_batches)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_read_state_result_steps(out: bytearray, m: ReadStateResult, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_partition_result_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_read_share_group_state_response_steps(out: bytearray, m: ReadShareGroupStateResponse, version: int, pace: Pace) -> Steps[None]:
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_read_state_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ReadShareGroupStateRequest: _read_read_share_group_state_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ReadShareGroupStateResponse: _write_read_share_group_state_response_steps,
}
