"""Brokers, controller, topics, and who leads each partition.

In steps; made from schemas/metadata.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
    _read_metadata_request_topic,
    _write_metadata_response_broker,
)
from ottla.protocol.message import Message, not_in_version, not_nullable, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_nullable_count,
    read_count,
    read_nullable_count,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_structs,
    write_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_hii = Struct(">hii").pack
_pack_i = Struct(">i").pack


def _read_metadata_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[MetadataRequest, int]]:
    m = object.__new__(MetadataRequest)
    if version >= 1:
        count, pos = read_compact_nullable_count(buf, pos, limit, 2) if version >= 9 else read_nullable_count(buf, pos, limit, 2)
        if count < 0:
            m.topics = None
        else:
            if count > FEW:
                allowance.take_array(count, 224)
                m.topics, pos = yield from read_structs(_read_metadata_request_topic, buf, pos, limit, version, count, allowance, text=True)
            else:
                allowance.left -= count * 224
                m.topics, pos = read_few(_read_metadata_request_topic, buf, pos, limit, version, count, allowance, text=True)
    else:
        count, pos = read_count(buf, pos, limit, 2)
        if count > FEW:
            allowance.take_array(count, 224)
            m.topics, pos = yield from read_structs(_read_metadata_request_topic, buf, pos, limit, version, count, allowance, text=True)
        else:
            allowance.left -= count * 224
            m.topics, pos = read_few(_read_metadata_request_topic, buf, pos, limit, version, count, allowance, text=True)
    if version >= 4:
        m.allow_auto_topic_creation = buf[pos] != 0
        pos += 1
    else:
        m.allow_auto_topic_creation = True
    if version >= 11:
        m.include_cluster_authorized_operations = False
    elif version >= 8:
        m.include_cluster_authorized_operations = buf[pos] != 0
        pos += 1
    else:
        m.include_cluster_authorized_operations = False
    if version >= 8:
        m.include_topic_authorized_operations = buf[pos] != 0
        pos += 1
    else:
        m.include_topic_authorized_operations = False
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


def _write_metadata_response_partition_steps(out: bytearray, m: MetadataResponsePartition, version: int, pace: Pace) -> Steps[None]:
    out += _pack_hii(m.error_code, m.partition_index, m.leader_id)
    if version >= 7:
        out += _pack_i(m.leader_epoch)
    if version >= 9:
        put_compact_count(out, len(m.replica_nodes))
    else:
        put_count(out, len(m.replica_nodes))
    if len(m.replica_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.replica_nodes, "i", pace)
    else:
        put_numbers(out, m.replica_nodes, "i")
        pace.work -= len(m.replica_nodes) // PIECE
    if version >= 9:
        put_compact_count(out, len(m.isr_nodes))
    else:
        put_count(out, len(m.isr_nodes))
    if len(m.isr_nodes) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.isr_nodes, "i", pace)
    else:
        put_numbers(out, m.isr_nodes, "i")
        pace.work -= len(m.isr_nodes) // PIECE
    if version >= 5:
        if version >= 9:
            put_compact_count(out, len(m.offline_replicas))
        else:
            put_count(out, len(m.offline_replicas))
        if len(m.offline_replicas) > NUMBERS_A_PIECE:
            yield from write_many_numbers(out, m.offline_replicas, "i", pace)
        else:
            put_numbers(out, m.offline_replicas, "i")
            pace.work -= len(m.offline_replicas) // PIECE
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_metadata_response_topic_steps(out: bytearray, m: MetadataResponseTopic, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 12:
        put_compact_nullable_string(out, m.name)
    elif version >= 9:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_compact_string(out, m.name)
    else:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_string(out, m.name)
    if version >= 10:
        put_uuid(out, m.topic_id)
    if version >= 1:
        out.append(1 if m.is_internal else 0)
    if version >= 9:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_metadata_response_partition_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if version >= 8:
        out += _pack_i(m.topic_authorized_operations)
    else:
        if m.topic_authorized_operations != -2147483648:
            raise not_in_version(m, "topic_authorized_operations", version)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_metadata_response_steps(out: bytearray, m: MetadataResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 9:
        put_compact_count(out, len(m.brokers))
    else:
        put_count(out, len(m.brokers))
    if len(m.brokers) > FEW:
        yield from write_structs(out, m.brokers, _write_metadata_response_broker, version, pace)
    else:
        for brokers_item in m.brokers:
            _write_metadata_response_broker(out, brokers_item, version)
        pace.work -= len(m.brokers)
    if version >= 9:
        put_compact_nullable_string(out, m.cluster_id)
    elif version >= 2:
        put_nullable_string(out, m.cluster_id)
    if version >= 1:
        out += _pack_i(m.controller_id)
    if version >= 9:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_metadata_response_topic_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if version >= 11:
        if m.cluster_authorized_operations != -2147483648:
            raise not_in_version(m, "cluster_authorized_operations", version)
    elif version >= 8:
        out += _pack_i(m.cluster_authorized_operations)
    else:
        if m.cluster_authorized_operations != -2147483648:
            raise not_in_version(m, "cluster_authorized_operations", version)
    if version >= 13:
        out += _pack_h(m.error_code)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    MetadataRequest: _read_metadata_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    MetadataResponse: _write_metadata_response_steps,
}
