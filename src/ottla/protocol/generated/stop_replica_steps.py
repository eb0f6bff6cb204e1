"""The controller tells a broker to stop replicas, and to delete some (Kafka 3.9, ZooKeeper mode).

In steps; made from schemas/stop_replica.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.stop_replica import (
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
    _read_stop_replica_partition_state,
    _read_stop_replica_partition_v0,
    _write_stop_replica_partition_error,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_count,
    put_tags,
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
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from


def _read_stop_replica_topic_v1_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[StopReplicaTopicV1, int]]:
    m = object.__new__(StopReplicaTopicV1)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partition_indexes, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partition_indexes, pos = read_numbers(buf, pos, count, "i", 4)
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


def _read_stop_replica_topic_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[StopReplicaTopicState, int]]:
    m = object.__new__(StopReplicaTopicState)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.topic_name)
    count, pos = read_compact_count(buf, pos, limit, 10)
    if count > FEW:
        allowance.take_array(count, 224)
        m.partition_states, pos = yield from read_structs(_read_stop_replica_partition_state, buf, pos, limit, version, count, allowance, text=False)
    else:
        allowance.left -= count * 224
        m.partition_states, pos = read_few(_read_stop_replica_partition_state, buf, pos, limit, version, count, allowance, text=False)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_stop_replica_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[StopReplicaRequest, int]]:
    m = object.__new__(StopReplicaRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
    else:
        m.is_kraft_controller = False
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.broker_epoch = -1
    if version >= 3:
        m.delete_partitions = False
    else:
        m.delete_partitions = buf[pos] != 0
        pos += 1
    if version >= 1:
        m.ungrouped_partitions = []
    else:
        count, pos = read_count(buf, pos, limit, 6)
        if count > FEW:
            allowance.take_array(count, 224)
            m.ungrouped_partitions, pos = yield from read_structs(_read_stop_replica_partition_v0, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.ungrouped_partitions, pos = read_few(_read_stop_replica_partition_v0, buf, pos, limit, version, count, allowance, text=True)
    if version >= 3:
        m.topics = []
    elif version >= 1:
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        topics_: list[StopReplicaTopicV1] = []
        for _ in range(count):
            topics_item, pos = yield from _read_stop_replica_topic_v1_held(buf, pos, limit, version, allowance)
            topics_.append(topics_item)
            if allowance.due(pos):
                yield
        m.topics = topics_
    else:
        m.topics = []
    if version >= 3:
        count, pos = read_compact_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        topic_states_: list[StopReplicaTopicState] = []
        for _ in range(count):
            topic_states_item, pos = yield from _read_stop_replica_topic_state_held(buf, pos, limit, version, allowance)
            topic_states_.append(topic_states_item)
            if allowance.due(pos):
                yield
        m.topic_states = topic_states_
    else:
        m.topic_states = []
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


def _write_stop_replica_response_steps(out: bytearray, m: StopReplicaResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.partition_errors))
    else:
        put_count(out, len(m.partition_errors))
    if len(m.partition_errors) > FEW:
        yield from write_structs(out, m.partition_errors, _write_stop_replica_partition_error, version, pace)
    else:
        for partition_errors_item in m.partition_errors:
            _write_stop_replica_partition_error(out, partition_errors_item, version)
        pace.work -= len(m.partition_errors)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StopReplicaRequest: _read_stop_replica_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    StopReplicaResponse: _write_stop_replica_response_steps,
}
