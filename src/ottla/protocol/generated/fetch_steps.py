"""Reads record batches: consumers up to the high watermark, followers up to the log's end.

In steps; made from schemas/fetch.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchableTopicResponse,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
    _DEFAULT_EPOCH_END_OFFSET,
    _DEFAULT_LEADER_ID_AND_EPOCH,
    _DEFAULT_SNAPSHOT_ID,
    _TAGS_FETCH_RESPONSE,
    _TAGS_PARTITION_DATA,
    _write_aborted_transaction,
    _write_epoch_end_offset,
    _write_leader_id_and_epoch,
    _write_node_endpoint,
    _write_snapshot_id,
)
from ottla.protocol.message import Message, not_in_version, not_tagged, tag_of_other_size, tag_too_early
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    NULL_COUNT,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_bytes,
    put_compact_string,
    put_count,
    put_nullable_bytes,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
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
    Pace,
    read_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_ihqq = Struct(">ihqq").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiib = Struct(">iiib").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from


def _read_replica_state_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[ReplicaState, int]:
    m = object.__new__(ReplicaState)
    m.replica_id, m.replica_epoch = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_fetch_partition_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> tuple[FetchPartition, int]:
    m = object.__new__(FetchPartition)
    (m.partition,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        (m.current_leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.current_leader_epoch = -1
    (m.fetch_offset,) = _unpack_q(buf, pos)
    pos += 8
    if version >= 12:
        (m.last_fetched_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.last_fetched_epoch = -1
    if version >= 5:
        (m.log_start_offset,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.log_start_offset = -1
    (m.partition_max_bytes,) = _unpack_i(buf, pos)
    pos += 4
    m.replica_directory_id = ZERO_UUID
    m.high_watermark = 9223372036854775807
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_fetch_partition_tags_held(m, buf, pos, limit, version, allowance)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_partition_tags_held(m: FetchPartition, buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 17:
                raise tag_too_early(m, tag, version)
            (m.replica_directory_id,) = _unpack_u(buf, pos)
            pos += 16
        elif tag == 1:
            if version < 18:
                raise tag_too_early(m, tag, version)
            (m.high_watermark,) = _unpack_q(buf, pos)
            pos += 8
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    allowance.take_tags(unknown)
    return pos


def _read_fetch_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[FetchTopic, int]]:
    m = object.__new__(FetchTopic)
    if version >= 13:
        m.topic = ""
    elif version >= 12:
        m.topic, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    else:
        m.topic, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 16) if version >= 12 else read_count(buf, pos, limit, 16)
    allowance.take_array(count, 408)
    partitions_: list[FetchPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_fetch_partition_held(buf, pos, limit, version, allowance)
        partitions_.append(partitions_item)
        if allowance.due(pos):
            yield
    m.partitions = partitions_
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_forgotten_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ForgottenTopic, int]]:
    m = object.__new__(ForgottenTopic)
    if version >= 13:
        m.topic = ""
    elif version >= 12:
        m.topic, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    else:
        m.topic, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 12 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[FetchRequest, int]]:
    m = object.__new__(FetchRequest)
    m.cluster_id = None
    if version >= 15:
        m.replica_id = -1
        m.replica_state = ReplicaState()
    else:
        (m.replica_id,) = _unpack_i(buf, pos)
        pos += 4
        m.replica_state = ReplicaState()
    m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level = _unpack_iiib(buf, pos)
    pos += 13
    if version >= 7:
        m.session_id, m.session_epoch = _unpack_ii(buf, pos)
        pos += 8
    else:
        m.session_id = 0
        m.session_epoch = -1
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 12 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[FetchTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_fetch_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if version >= 7:
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 12 else read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        forgotten_topics_data_: list[ForgottenTopic] = []
        for _ in range(count):
            forgotten_topics_data_item, pos = yield from _read_forgotten_topic_held(buf, pos, limit, version, allowance)
            forgotten_topics_data_.append(forgotten_topics_data_item)
            if allowance.due(pos):
                yield
        m.forgotten_topics_data = forgotten_topics_data_
    else:
        m.forgotten_topics_data = []
    if version >= 12:
        m.rack_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.rack_id)
    elif version >= 11:
        m.rack_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.rack_id)
    else:
        m.rack_id = ""
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_fetch_request_tags_held(m, buf, pos, limit, version, allowance)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_request_tags_held(m: FetchRequest, buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            m.cluster_id, pos = read_compact_nullable_string(buf, pos, end)
            allowance.left -= getsizeof(m.cluster_id)
        elif tag == 1:
            if version < 15:
                raise tag_too_early(m, tag, version)
            m.replica_state, pos = _read_replica_state_held(buf, pos, end, version, allowance)
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    allowance.take_tags(unknown)
    return pos


def _write_partition_data_steps(out: bytearray, m: PartitionData, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ihqq(m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset)
    if version >= 5:
        out += _pack_q(m.log_start_offset)
    if version < 12:
        if m.diverging_epoch != _DEFAULT_EPOCH_END_OFFSET:
            raise not_in_version(m, "diverging_epoch", version)
        if m.current_leader != _DEFAULT_LEADER_ID_AND_EPOCH:
            raise not_in_version(m, "current_leader", version)
        if m.snapshot_id != _DEFAULT_SNAPSHOT_ID:
            raise not_in_version(m, "snapshot_id", version)
    if m.aborted_transactions is None:
        out += b"\0" if version >= 12 else NULL_COUNT
    else:
        if version >= 12:
            put_compact_count(out, len(m.aborted_transactions))
        else:
            put_count(out, len(m.aborted_transactions))
        if len(m.aborted_transactions) > FEW:
            yield from write_structs(out, m.aborted_transactions, _write_aborted_transaction, version, pace)
        else:
            for aborted_transactions_item in m.aborted_transactions:
                _write_aborted_transaction(out, aborted_transactions_item, version)
            pace.work -= len(m.aborted_transactions)
    if version >= 11:
        out += _pack_i(m.preferred_read_replica)
    else:
        if m.preferred_read_replica != -1:
            raise not_in_version(m, "preferred_read_replica", version)
    if version >= 12:
        put_compact_nullable_bytes(out, m.records)
    else:
        put_nullable_bytes(out, m.records)
    if version >= 12:
        tags: list[tuple[int, bytearray]] = []
        if m.diverging_epoch != _DEFAULT_EPOCH_END_OFFSET:
            tag = bytearray()
            _write_epoch_end_offset(tag, m.diverging_epoch, version)
            tags.append((0, tag))
        if m.current_leader != _DEFAULT_LEADER_ID_AND_EPOCH:
            tag = bytearray()
            _write_leader_id_and_epoch(tag, m.current_leader, version)
            tags.append((1, tag))
        if m.snapshot_id != _DEFAULT_SNAPSHOT_ID:
            tag = bytearray()
            _write_snapshot_id(tag, m.snapshot_id, version)
            tags.append((2, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_PARTITION_DATA)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_fetchable_topic_response_steps(out: bytearray, m: FetchableTopicResponse, version: int, pace: Pace) -> Steps[None]:
    if version >= 13:
        pass
    elif version >= 12:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 13:
        put_uuid(out, m.topic_id)
    if version >= 12:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        yield from _write_partition_data_steps(out, partitions_item, version, pace)
        if pace.due():
            yield
    if version >= 12:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_fetch_response_steps(out: bytearray, m: FetchResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 7:
        out += _pack_hi(m.error_code, m.session_id)
    else:
        if m.session_id != 0:
            raise not_in_version(m, "session_id", version)
    if version >= 12:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    for responses_item in m.responses:
        yield from _write_fetchable_topic_response_steps(out, responses_item, version, pace)
        if pace.due():
            yield
    if version < 16:
        if m.node_endpoints != []:
            raise not_in_version(m, "node_endpoints", version)
    if version >= 12:
        tags: list[tuple[int, bytearray]] = []
        if version >= 16 and m.node_endpoints != []:
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
            put_tags(out, tags, m.unknown_tags, _TAGS_FETCH_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    FetchRequest: _read_fetch_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    FetchResponse: _write_fetch_response_steps,
}
