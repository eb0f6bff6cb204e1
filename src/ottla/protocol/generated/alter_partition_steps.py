"""A leader asks the controller for a change of its ISR (Kafka 3.9's range).

In steps; made from schemas/alter_partition.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
    _read_broker_state,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_many_numbers,
    read_structs,
    write_many_numbers,
)
from ottla.steps import Steps

_pack_b = Struct(">b").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ihii = Struct(">ihii").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_request_partition_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[RequestPartitionData, int]]:
    m = object.__new__(RequestPartitionData)
    m.partition_index, m.leader_epoch = _unpack_ii(buf, pos)
    pos += 8
    if version >= 3:
        m.new_isr = []
        count, pos = read_compact_count(buf, pos, limit, 13)
        if count > FEW:
            allowance.take_array(count, 224)
            m.new_isr_with_epochs, pos = yield from read_structs(_read_broker_state, buf, pos, limit, version, count, allowance, text=False)
        else:
            allowance.left -= count * 224
            m.new_isr_with_epochs, pos = read_few(_read_broker_state, buf, pos, limit, version, count, allowance, text=False)
    else:
        count, pos = read_compact_count(buf, pos, limit, 4)
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.new_isr, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            m.new_isr, pos = read_numbers(buf, pos, count, "i", 4)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
        m.new_isr_with_epochs = []
    if version >= 1:
        (m.leader_recovery_state,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.leader_recovery_state = 0
    (m.partition_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_request_topic_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[RequestTopicData, int]]:
    m = object.__new__(RequestTopicData)
    if version >= 2:
        m.topic_name = ""
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 14)
    allowance.take_array(count, 376)
    partitions_: list[RequestPartitionData] = []
    for _ in range(count):
        partitions_item, pos = yield from _read_request_partition_data_held(buf, pos, limit, version, allowance)
        partitions_.append(partitions_item)
        if allowance.due(pos):
            yield
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_alter_partition_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterPartitionRequest, int]]:
    m = object.__new__(AlterPartitionRequest)
    m.broker_id, m.broker_epoch = _unpack_iq(buf, pos)
    pos += 12
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[RequestTopicData] = []
    for _ in range(count):
        topics_item, pos = yield from _read_request_topic_data_held(buf, pos, limit, version, allowance)
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


def _write_response_partition_data_steps(out: bytearray, m: ResponsePartitionData, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ihii(m.partition_index, m.error_code, m.leader_id, m.leader_epoch)
    put_compact_count(out, len(m.isr))
    if len(m.isr) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.isr, "i", pace)
    else:
        put_numbers(out, m.isr, "i")
        pace.work -= len(m.isr) // PIECE
    if version >= 1:
        out += _pack_b(m.leader_recovery_state)
    out += _pack_i(m.partition_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_response_topic_data_steps(out: bytearray, m: ResponseTopicData, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        put_uuid(out, m.topic_id)
    else:
        put_compact_string(out, m.topic_name)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_response_partition_data_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_alter_partition_response_steps(out: bytearray, m: AlterPartitionResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_response_topic_data_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterPartitionRequest: _read_alter_partition_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterPartitionResponse: _write_alter_partition_response_steps,
}
