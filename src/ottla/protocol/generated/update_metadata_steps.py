"""The controller tells all brokers what the cluster looks like (Kafka 3.9, ZooKeeper mode).

In steps; made from schemas/update_metadata.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
    _read_update_metadata_endpoint,
)
from ottla.protocol.message import Message, tag_of_other_size, tag_too_early
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    ZERO_UUID,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    read_few,
    read_many_numbers,
    read_structs,
)
from ottla.steps import Steps

_unpack_b = Struct(">b").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iiii = Struct(">iiii").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_update_metadata_partition_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[UpdateMetadataPartitionState, int]]:
    m = object.__new__(UpdateMetadataPartitionState)
    if version >= 5:
        m.topic_name = ""
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    m.partition_index, m.controller_epoch, m.leader, m.leader_epoch = _unpack_iiii(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.isr, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.isr, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    (m.zk_version,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.replicas, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
        if count > NUMBERS_A_PIECE:
            allowance.take_array(count, 40)
            m.offline_replicas, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
        else:
            m.offline_replicas, pos = read_numbers(buf, pos, count, "i", 4)
            allowance.left -= count * 40
            allowance.work -= count // PIECE
    else:
        m.offline_replicas = []
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_update_metadata_topic_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[UpdateMetadataTopicState, int]]:
    m = object.__new__(UpdateMetadataTopicState)
    if version >= 6:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic_name)
    if version >= 7:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 24) if version >= 6 else read_count(buf, pos, limit, 24)
    allowance.take_array(count, 504)
    partition_states_: list[UpdateMetadataPartitionState] = []
    for _ in range(count):
        partition_states_item, pos = yield from _read_update_metadata_partition_state_held(buf, pos, limit, version, allowance)
        partition_states_.append(partition_states_item)
        if allowance.due(pos):
            yield
    m.partition_states = partition_states_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_update_metadata_broker_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[UpdateMetadataBroker, int]]:
    m = object.__new__(UpdateMetadataBroker)
    (m.id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        m.v0_host = ""
        m.v0_port = 0
        count, pos = read_compact_count(buf, pos, limit, 8) if version >= 6 else read_count(buf, pos, limit, 8)
        if count > FEW:
            allowance.take_array(count, 312)
            m.endpoints, pos = yield from read_structs(_read_update_metadata_endpoint, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 312
            m.endpoints, pos = read_few(_read_update_metadata_endpoint, buf, pos, limit, version, count, allowance, text=True)
    else:
        m.v0_host, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.v0_host)
        (m.v0_port,) = _unpack_i(buf, pos)
        pos += 4
        m.endpoints = []
    if version >= 6:
        m.rack, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.rack)
    elif version >= 2:
        m.rack, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.rack)
    else:
        m.rack = ""
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_update_metadata_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[UpdateMetadataRequest, int]]:
    m = object.__new__(UpdateMetadataRequest)
    (m.controller_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 8:
        m.is_kraft_controller = buf[pos] != 0
        pos += 1
        m.type = 0
    else:
        m.is_kraft_controller = False
        m.type = 0
    (m.controller_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 5:
        (m.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
        m.ungrouped_partition_states = []
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        topic_states_: list[UpdateMetadataTopicState] = []
        for _ in range(count):
            topic_states_item, pos = yield from _read_update_metadata_topic_state_held(buf, pos, limit, version, allowance)
            topic_states_.append(topic_states_item)
            if allowance.due(pos):
                yield
        m.topic_states = topic_states_
    else:
        m.broker_epoch = -1
        count, pos = read_count(buf, pos, limit, 30)
        allowance.take_array(count, 504)
        ungrouped_partition_states_: list[UpdateMetadataPartitionState] = []
        for _ in range(count):
            ungrouped_partition_states_item, pos = yield from _read_update_metadata_partition_state_held(buf, pos, limit, version, allowance)
            ungrouped_partition_states_.append(ungrouped_partition_states_item)
            if allowance.due(pos):
                yield
        m.ungrouped_partition_states = ungrouped_partition_states_
        m.topic_states = []
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 6 else read_count(buf, pos, limit, 7)
    allowance.take_array(count, 232)
    live_brokers_: list[UpdateMetadataBroker] = []
    for _ in range(count):
        live_brokers_item, pos = yield from _read_update_metadata_broker_held(buf, pos, limit, version, allowance)
        live_brokers_.append(live_brokers_item)
        if allowance.due(pos):
            yield
    m.live_brokers = live_brokers_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_update_metadata_request_tags_held(m, buf, pos, limit, version, allowance)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_update_metadata_request_tags_held(m: UpdateMetadataRequest, buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 8:
                raise tag_too_early(m, tag, version)
            (m.type,) = _unpack_b(buf, pos)
            pos += 1
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    allowance.take_tags(unknown)
    return pos


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    UpdateMetadataRequest: _read_update_metadata_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}
