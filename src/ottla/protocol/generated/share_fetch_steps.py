"""Acquires records for a share group's member, and acknowledges earlier ones.

In steps; made from schemas/share_fetch.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchableTopicResponse,
    _write_acquired_records,
    _write_leader_id_and_epoch,
    _write_node_endpoint,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_bytes,
    put_compact_count,
    put_compact_nullable_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_bt = Struct(">b?").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iiiiii = Struct(">iiiiii").unpack_from
_unpack_qq = Struct(">qq").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_acknowledgement_batch_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AcknowledgementBatch, int]]:
    m = object.__new__(AcknowledgementBatch)
    m.first_offset, m.last_offset = _unpack_qq(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 1)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.acknowledge_types, pos = yield from read_many_numbers(buf, pos, count, "b", 1, allowance)
    else:
        m.acknowledge_types, pos = read_numbers(buf, pos, count, "b", 1)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_fetch_partition_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[FetchPartition, int]]:
    m = object.__new__(FetchPartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    acknowledgement_batches_: list[AcknowledgementBatch] = []
    for _ in range(count):
        acknowledgement_batches_item, pos = yield from _read_acknowledgement_batch_held(buf, pos, limit, version, allowance)
        acknowledgement_batches_.append(acknowledgement_batches_item)
        if allowance.due(pos):
            yield
    m.acknowledgement_batches = acknowledgement_batches_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_fetch_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[FetchTopic, int]]:
    m = object.__new__(FetchTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    partitions_: list[FetchPartition] = []
    for _ in range(count):
        partitions_item, pos = yield from _read_fetch_partition_held(buf, pos, limit, version, allowance)
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


def _read_forgotten_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ForgottenTopic, int]]:
    m = object.__new__(ForgottenTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_share_fetch_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ShareFetchRequest, int]]:
    m = object.__new__(ShareFetchRequest)
    m.group_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.member_id)
    m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size = _unpack_iiiiii(buf, pos)
    pos += 24
    if version >= 2:
        m.share_acquire_mode, m.is_renew_ack = _unpack_bt(buf, pos)
        pos += 2
    else:
        m.share_acquire_mode = 0
        m.is_renew_ack = False
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    topics_: list[FetchTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_fetch_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    forgotten_topics_data_: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, pos = yield from _read_forgotten_topic_held(buf, pos, limit, version, allowance)
        forgotten_topics_data_.append(forgotten_topics_data_item)
        if allowance.due(pos):
            yield
    m.forgotten_topics_data = forgotten_topics_data_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_partition_data_steps(out: bytearray, m: PartitionData, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_h(m.acknowledge_error_code)
    put_compact_nullable_string(out, m.acknowledge_error_message)
    _write_leader_id_and_epoch(out, m.current_leader, version)
    put_compact_bytes(out, m.records)
    put_compact_count(out, len(m.acquired_records))
    if len(m.acquired_records) > FEW:
        yield from write_structs(out, m.acquired_records, _write_acquired_records, version, pace)
    else:
        for acquired_records_item in m.acquired_records:
            _write_acquired_records(out, acquired_records_item, version)
        pace.work -= len(m.acquired_records)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_share_fetchable_topic_response_steps(out: bytearray, m: ShareFetchableTopicResponse, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_partition_data_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_share_fetch_response_steps(out: bytearray, m: ShareFetchResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_i(m.acquisition_lock_timeout_ms)
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_share_fetchable_topic_response_steps(out, responses_item, version, pace)
        if pace.due():
            yield
    put_compact_count(out, len(m.node_endpoints))
    if len(m.node_endpoints) > FEW:
        yield from write_structs(out, m.node_endpoints, _write_node_endpoint, version, pace)
    else:
        for node_endpoints_item in m.node_endpoints:
            _write_node_endpoint(out, node_endpoints_item, version)
        pace.work -= len(m.node_endpoints)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ShareFetchRequest: _read_share_fetch_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ShareFetchResponse: _write_share_fetch_response_steps,
}
