"""Appends record batches to partitions.

In steps; made from schemas/produce.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
    _DEFAULT_LEADER_ID_AND_EPOCH,
    _TAGS_PARTITION_PRODUCE_RESPONSE,
    _TAGS_PRODUCE_RESPONSE,
    _write_batch_index_and_error_message,
    _write_leader_id_and_epoch,
    _write_node_endpoint,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    write_structs,
)
from ottla.steps import Steps

_pack_i = Struct(">i").pack
_pack_ihq = Struct(">ihq").pack
_pack_q = Struct(">q").pack
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_partition_produce_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[PartitionProduceData, int]:
    m = object.__new__(PartitionProduceData)
    (m.index,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        m.records, pos = read_compact_nullable_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.records)
    else:
        m.records, pos = read_nullable_bytes(buf, pos, limit)
        allowance.left -= getsizeof(m.records)
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_topic_produce_data_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TopicProduceData, int]]:
    m = object.__new__(TopicProduceData)
    if version >= 13:
        m.name = ""
    elif version >= 9:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 9 else read_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    partition_data_: list[PartitionProduceData] = []
    for _ in range(count):
        partition_data_item, pos = _read_partition_produce_data_held(buf, pos, limit, version, allowance)
        partition_data_.append(partition_data_item)
        if allowance.due(pos):
            yield
    m.partition_data = partition_data_
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_produce_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ProduceRequest, int]]:
    m = object.__new__(ProduceRequest)
    if version >= 9:
        m.transactional_id, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.transactional_id)
    elif version >= 3:
        m.transactional_id, pos = read_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.transactional_id)
    else:
        m.transactional_id = None
    m.acks, m.timeout_ms = _unpack_hi(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 9 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topic_data_: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, pos = yield from _read_topic_produce_data_held(buf, pos, limit, version, allowance)
        topic_data_.append(topic_data_item)
        if allowance.due(pos):
            yield
    m.topic_data = topic_data_
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_partition_produce_response_steps(out: bytearray, m: PartitionProduceResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ihq(m.index, m.error_code, m.base_offset)
    if version >= 2:
        out += _pack_q(m.log_append_time_ms)
    if version >= 5:
        out += _pack_q(m.log_start_offset)
    if version >= 8:
        if version >= 9:
            put_compact_count(out, len(m.record_errors))
        else:
            put_count(out, len(m.record_errors))
        if len(m.record_errors) > FEW:
            yield from write_structs(out, m.record_errors, _write_batch_index_and_error_message, version, pace)
        else:
            for record_errors_item in m.record_errors:
                _write_batch_index_and_error_message(out, record_errors_item, version)
            pace.work -= len(m.record_errors)
    if version >= 9:
        put_compact_nullable_string(out, shortened(m.error_message))
    elif version >= 8:
        put_nullable_string(out, shortened(m.error_message))
    if version < 10:
        if m.current_leader != _DEFAULT_LEADER_ID_AND_EPOCH:
            raise not_in_version(m, "current_leader", version)
    if version >= 9:
        tags: list[tuple[int, bytearray]] = []
        if version >= 10 and m.current_leader != _DEFAULT_LEADER_ID_AND_EPOCH:
            tag = bytearray()
            _write_leader_id_and_epoch(tag, m.current_leader, version)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_PARTITION_PRODUCE_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_topic_produce_response_steps(out: bytearray, m: TopicProduceResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 13:
        pass
    elif version >= 9:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 13:
        put_uuid(out, m.topic_id)
    if version >= 9:
        put_compact_count(out, len(m.partition_responses))
    else:
        put_count(out, len(m.partition_responses))
    for partition_responses_item in m.partition_responses:
        yield from _write_partition_produce_response_steps(out, partition_responses_item, version, pace)
        if pace.due():
            yield
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_produce_response_steps(out: bytearray, m: ProduceResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 9:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_topic_produce_response_steps(out, responses_item, version, pace)
        if pace.due():
            yield
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version < 10:
        if m.node_endpoints != []:
            raise not_in_version(m, "node_endpoints", version)
    if version >= 9:
        tags: list[tuple[int, bytearray]] = []
        if version >= 10 and m.node_endpoints != []:
            tag = bytearray()
            put_compact_count(tag, len(m.node_endpoints))
            if len(m.node_endpoints) > FEW:
                yield from write_structs(tag, m.node_endpoints, _write_node_endpoint, version, pace)
            else:
                for node_endpoints_item in m.node_endpoints:
                    _write_node_endpoint(tag, node_endpoints_item, version)
                pace.work -= len(m.node_endpoints)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_PRODUCE_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ProduceRequest: _read_produce_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ProduceResponse: _write_produce_response_steps,
}
