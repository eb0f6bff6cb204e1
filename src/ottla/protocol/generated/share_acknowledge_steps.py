"""Acknowledges records of a share group.

In steps; made from schemas/share_acknowledge.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    _write_node_endpoint,
    _write_partition_data,
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

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from
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


def _read_acknowledge_partition_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AcknowledgePartition, int]]:
    m = object.__new__(AcknowledgePartition)
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


def _read_acknowledge_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AcknowledgeTopic, int]]:
    m = object.__new__(AcknowledgeTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    partitions_: list[AcknowledgePartition] = []
    for _ in range(count):
        partitions_item, pos = yield from _read_acknowledge_partition_held(buf, pos, limit, version, allowance)
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


def _read_share_acknowledge_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ShareAcknowledgeRequest, int]]:
    m = object.__new__(ShareAcknowledgeRequest)
    m.group_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.group_id)
    m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
    allowance.left -= getsizeof(m.member_id)
    (m.share_session_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        m.is_renew_ack = buf[pos] != 0
        pos += 1
    else:
        m.is_renew_ack = False
    count, pos = read_compact_count(buf, pos, limit, 18)
    allowance.take_array(count, 224)
    topics_: list[AcknowledgeTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_acknowledge_topic_held(buf, pos, limit, version, allowance)
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


def _write_share_acknowledge_topic_response_steps(out: bytearray, m: ShareAcknowledgeTopicResponse, version: int, pace: Pace) -> Steps[None]:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_partition_data, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_partition_data(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_share_acknowledge_response_steps(out: bytearray, m: ShareAcknowledgeResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        out += _pack_i(m.acquisition_lock_timeout_ms)
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_share_acknowledge_topic_response_steps(out, responses_item, version, pace)
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
    ShareAcknowledgeRequest: _read_share_acknowledge_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ShareAcknowledgeResponse: _write_share_acknowledge_response_steps,
}
