"""The controller tells a broker which replicas it leads and follows (Kafka 3.9, ZooKeeper mode).

In steps; made from schemas/leader_and_isr.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
    _read_leader_and_isr_live_leader,
    _write_leader_and_isr_partition_error,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_count,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_count,
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
    read_few,
    read_many_numbers,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iiii = Struct(">iiii").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_leader_and_isr_partition_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[LeaderAndIsrPartitionState, int]]:
    m = object.__new__(LeaderAndIsrPartitionState)
    if version >= 2:
        m.topic_name = ""
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    m.partition_index, m.controller_epoch, m.leader, m.leader_epoch = _unpack_iiii(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.isr, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.isr, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    (m.partition_epoch,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if version >= 3:
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.adding_replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            m.adding_replicas, pos = read_numbers(buf, pos, count, "i", 4)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.removing_replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            m.removing_replicas, pos = read_numbers(buf, pos, count, "i", 4)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
    else:
        m.adding_replicas = []
        m.removing_replicas = []
    if version >= 1:
        m.is_new = buf[pos] != 0
        pos += 1
    else:
        m.is_new = False
    if version >= 6:
        (m.leader_recovery_state,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.leader_recovery_state = 0
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_leader_and_isr_topic_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[LeaderAndIsrTopicState, int]]:
    m = object.__new__(LeaderAndIsrTopicState)
    if version >= 4:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    if version >= 5:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 26) if version >= 4 else read_count(buf, pos, limit, 26)
    allowance.take_array(count, 632)
    partition_states_: list[LeaderAndIsrPartitionState] = []
    for _ in range(count):
        partition_states_item, pos = yield from _read_leader_and_isr_partition_state_held(buf, pos, limit, version, allowance)
        partition_states_.append(partition_states_item)
        if allowance.due(pos):
            yield
    m.partition_states = partition_states_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_leader_and_isr_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[LeaderAndIsrRequest, int]]:
    m = object.__new__(LeaderAndIsrRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 7:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
    else:
        m.is_kraft_controller = False
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.broker_epoch = -1
    if version >= 5:
        (m.type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.type = 0
    if version >= 2:
        m.ungrouped_partition_states = []
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        topic_states_: list[LeaderAndIsrTopicState] = []
        for _ in range(count):
            topic_states_item, pos = yield from _read_leader_and_isr_topic_state_held(buf, pos, limit, version, allowance)
            topic_states_.append(topic_states_item)
            if allowance.due(pos):
                yield
        m.topic_states = topic_states_
    else:
        count, pos = read_count(buf, pos, limit, 30)
        allowance.take_array(count, 632)
        ungrouped_partition_states_: list[LeaderAndIsrPartitionState] = []
        for _ in range(count):
            ungrouped_partition_states_item, pos = yield from _read_leader_and_isr_partition_state_held(buf, pos, limit, version, allowance)
            ungrouped_partition_states_.append(ungrouped_partition_states_item)
            if allowance.due(pos):
                yield
        m.ungrouped_partition_states = ungrouped_partition_states_
        m.topic_states = []
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 4 else read_count(buf, pos, limit, 10)
    if count > FEW:
        allowance.take_array(count, 224)
        m.live_leaders, pos = yield from read_structs(_read_leader_and_isr_live_leader, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 224
        m.live_leaders, pos = read_few(_read_leader_and_isr_live_leader, buf, pos, limit, version, count, allowance, text=True)
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leader_and_isr_topic_error_steps(out: bytearray, m: LeaderAndIsrTopicError, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partition_errors))
    if len(m.partition_errors) > FEW:
        yield from write_structs(out, m.partition_errors, _write_leader_and_isr_partition_error, version, pace)
    else:
        for partition_errors_item in m.partition_errors:
            _write_leader_and_isr_partition_error(out, partition_errors_item, version)
        pace.work -= len(m.partition_errors)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_leader_and_isr_response_steps(out: bytearray, m: LeaderAndIsrResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 5:
        if m.partition_errors != []:
            raise not_in_version(m, "partition_errors", version)
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            yield from _write_leader_and_isr_topic_error_steps(out, topics_item, version, pace)
            if pace.due():
                yield
    else:
        if version >= 4:
            put_compact_count(out, len(m.partition_errors))
        else:
            put_count(out, len(m.partition_errors))
        if len(m.partition_errors) > FEW:
            yield from write_structs(out, m.partition_errors, _write_leader_and_isr_partition_error, version, pace)
        else:
            for partition_errors_item in m.partition_errors:
                _write_leader_and_isr_partition_error(out, partition_errors_item, version)
            pace.work -= len(m.partition_errors)
        if m.topics != []:
            raise not_in_version(m, "topics", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    LeaderAndIsrRequest: _read_leader_and_isr_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    LeaderAndIsrResponse: _write_leader_and_isr_response_steps,
}
