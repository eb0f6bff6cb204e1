"""Acquires records for a share group's member, and acknowledges earlier ones.

Made from schemas/share_fetch.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_bytes,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_bt = Struct(">b?").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_iiiiii = Struct(">iiiiii").pack
_pack_qq = Struct(">qq").pack
_pack_qqh = Struct(">qqh").pack
_unpack_bt = Struct(">b?").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiiiii = Struct(">iiiiii").unpack_from
_unpack_qq = Struct(">qq").unpack_from
_unpack_qqh = Struct(">qqh").unpack_from
_unpack_u = Struct(">16s").unpack_from

class AcknowledgementBatch(Structure):
    __slots__ = ("first_offset", "last_offset", "acknowledge_types", "unknown_tags",)

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is EMPTY_LIST else acknowledge_types
        self.unknown_tags = unknown_tags


class FetchPartition(Structure):
    __slots__ = ("partition_index", "acknowledgement_batches", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY_LIST else acknowledgement_batches
        self.unknown_tags = unknown_tags


class FetchTopic(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ForgottenTopic(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ShareFetchRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "max_wait_ms", "min_bytes", "max_bytes", "max_records", "batch_size", "share_acquire_mode", "is_renew_ack", "topics", "forgotten_topics_data", "unknown_tags",)
    API_KEY = 78
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] = EMPTY_LIST,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY_LIST else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY_LIST else forgotten_topics_data
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(ShareFetchRequest, version)
        try:
            _write_share_fetch_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareFetchRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareFetchRequest, int]:
        if not 1 <= version <= 2:
            raise undecodable(ShareFetchRequest, version)
        try:
            return _read_share_fetch_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareFetchRequest, version, fault) from fault


class LeaderIdAndEpoch(Structure):
    __slots__ = ("leader_id", "leader_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class AcquiredRecords(Structure):
    __slots__ = ("first_offset", "last_offset", "delivery_count", "unknown_tags",)

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count
        self.unknown_tags = unknown_tags


class PartitionData(Structure):
    __slots__ = ("partition_index", "error_code", "error_message", "acknowledge_error_code", "acknowledge_error_message", "current_leader", "records", "acquired_records", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Buffer = b"",
        acquired_records: list[AcquiredRecords] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is EMPTY_LIST else acquired_records
        self.unknown_tags = unknown_tags


class ShareFetchableTopicResponse(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class NodeEndpoint(Structure):
    __slots__ = ("node_id", "host", "port", "rack", "unknown_tags",)

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.unknown_tags = unknown_tags


class ShareFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints", "unknown_tags",)
    API_KEY = 78
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY_LIST,
        node_endpoints: list[NodeEndpoint] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY_LIST else responses
        self.node_endpoints = [] if node_endpoints is EMPTY_LIST else node_endpoints
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(ShareFetchResponse, version)
        try:
            _write_share_fetch_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareFetchResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareFetchResponse, int]:
        if not 1 <= version <= 2:
            raise undecodable(ShareFetchResponse, version)
        try:
            return _read_share_fetch_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareFetchResponse, version, fault) from fault


_DEFAULT_LEADER_ID_AND_EPOCH = LeaderIdAndEpoch()


def _read_acknowledgement_batch(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AcknowledgementBatch, int]:
    m = object.__new__(AcknowledgementBatch)
    m.first_offset, m.last_offset = _unpack_qq(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 1)
    m.acknowledge_types, pos = read_numbers(buf, pos, count, "b", 1)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_acknowledgement_batch(out: bytearray, m: AcknowledgementBatch, version: int) -> None:
    out += _pack_qq(m.first_offset, m.last_offset)
    put_compact_count(out, len(m.acknowledge_types))
    put_numbers(out, m.acknowledge_types, "b")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_fetch_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchPartition, int]:
    m = object.__new__(FetchPartition)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 18)
    acknowledgement_batches_: list[AcknowledgementBatch] = []
    for _ in range(count):
        acknowledgement_batches_item, pos = _read_acknowledgement_batch(buf, pos, limit, version)
        acknowledgement_batches_.append(acknowledgement_batches_item)
    m.acknowledgement_batches = acknowledgement_batches_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_fetch_partition(out: bytearray, m: FetchPartition, version: int) -> None:
    out += _pack_i(m.partition_index)
    put_compact_count(out, len(m.acknowledgement_batches))
    for acknowledgement_batches_item in m.acknowledgement_batches:
        _write_acknowledgement_batch(out, acknowledgement_batches_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_fetch_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchTopic, int]:
    m = object.__new__(FetchTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 6)
    partitions_: list[FetchPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_fetch_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_fetch_topic(out: bytearray, m: FetchTopic, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_fetch_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_forgotten_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ForgottenTopic, int]:
    m = object.__new__(ForgottenTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_forgotten_topic(out: bytearray, m: ForgottenTopic, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_fetch_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareFetchRequest, int]:
    m = object.__new__(ShareFetchRequest)
    m.group_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size = _unpack_iiiiii(buf, pos)
    pos += 24
    if version >= 2:
        m.share_acquire_mode, m.is_renew_ack = _unpack_bt(buf, pos)
        pos += 2
    else:
        m.share_acquire_mode = 0
        m.is_renew_ack = False
    count, pos = read_compact_count(buf, pos, limit, 18)
    topics_: list[FetchTopic] = []
    for _ in range(count):
        topics_item, pos = _read_fetch_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    count, pos = read_compact_count(buf, pos, limit, 18)
    forgotten_topics_data_: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, pos = _read_forgotten_topic(buf, pos, limit, version)
        forgotten_topics_data_.append(forgotten_topics_data_item)
    m.forgotten_topics_data = forgotten_topics_data_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_fetch_request(out: bytearray, m: ShareFetchRequest, version: int) -> None:
    put_compact_nullable_string(out, m.group_id)
    put_compact_nullable_string(out, m.member_id)
    out += _pack_iiiiii(m.share_session_epoch, m.max_wait_ms, m.min_bytes, m.max_bytes, m.max_records, m.batch_size)
    if version >= 2:
        out += _pack_bt(m.share_acquire_mode, m.is_renew_ack)
    else:
        if m.is_renew_ack:
            raise not_in_version(m, "is_renew_ack", version)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_fetch_topic(out, topics_item, version)
    put_compact_count(out, len(m.forgotten_topics_data))
    for forgotten_topics_data_item in m.forgotten_topics_data:
        _write_forgotten_topic(out, forgotten_topics_data_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_leader_id_and_epoch(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaderIdAndEpoch, int]:
    m = object.__new__(LeaderIdAndEpoch)
    m.leader_id, m.leader_epoch = _unpack_ii(buf, pos)
    pos += 8
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_leader_id_and_epoch(out: bytearray, m: LeaderIdAndEpoch, version: int) -> None:
    out += _pack_ii(m.leader_id, m.leader_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_acquired_records(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AcquiredRecords, int]:
    m = object.__new__(AcquiredRecords)
    m.first_offset, m.last_offset, m.delivery_count = _unpack_qqh(buf, pos)
    pos += 18
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_acquired_records(out: bytearray, m: AcquiredRecords, version: int) -> None:
    out += _pack_qqh(m.first_offset, m.last_offset, m.delivery_count)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionData, int]:
    m = object.__new__(PartitionData)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    (m.acknowledge_error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.acknowledge_error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.current_leader, pos = _read_leader_id_and_epoch(buf, pos, limit, version)
    m.records, pos = read_compact_bytes(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 19)
    acquired_records_: list[AcquiredRecords] = []
    for _ in range(count):
        acquired_records_item, pos = _read_acquired_records(buf, pos, limit, version)
        acquired_records_.append(acquired_records_item)
    m.acquired_records = acquired_records_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_data(out: bytearray, m: PartitionData, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_h(m.acknowledge_error_code)
    put_compact_nullable_string(out, m.acknowledge_error_message)
    _write_leader_id_and_epoch(out, m.current_leader, version)
    put_compact_bytes(out, m.records)
    put_compact_count(out, len(m.acquired_records))
    for acquired_records_item in m.acquired_records:
        _write_acquired_records(out, acquired_records_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_fetchable_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareFetchableTopicResponse, int]:
    m = object.__new__(ShareFetchableTopicResponse)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 22)
    partitions_: list[PartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_fetchable_topic_response(out: bytearray, m: ShareFetchableTopicResponse, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_partition_data(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_node_endpoint(buf: Buffer, pos: int, limit: int, version: int) -> tuple[NodeEndpoint, int]:
    m = object.__new__(NodeEndpoint)
    (m.node_id,) = _unpack_i(buf, pos)
    pos += 4
    m.host, pos = read_compact_string(buf, pos, limit)
    (m.port,) = _unpack_i(buf, pos)
    pos += 4
    m.rack, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_node_endpoint(out: bytearray, m: NodeEndpoint, version: int) -> None:
    out += _pack_i(m.node_id)
    put_compact_string(out, m.host)
    out += _pack_i(m.port)
    put_compact_nullable_string(out, m.rack)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_fetch_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareFetchResponse, int]:
    m = object.__new__(ShareFetchResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    (m.acquisition_lock_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 18)
    responses_: list[ShareFetchableTopicResponse] = []
    for _ in range(count):
        responses_item, pos = _read_share_fetchable_topic_response(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    count, pos = read_compact_count(buf, pos, limit, 11)
    node_endpoints_: list[NodeEndpoint] = []
    for _ in range(count):
        node_endpoints_item, pos = _read_node_endpoint(buf, pos, limit, version)
        node_endpoints_.append(node_endpoints_item)
    m.node_endpoints = node_endpoints_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_fetch_response(out: bytearray, m: ShareFetchResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    out += _pack_i(m.acquisition_lock_timeout_ms)
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_share_fetchable_topic_response(out, responses_item, version)
    put_compact_count(out, len(m.node_endpoints))
    for node_endpoints_item in m.node_endpoints:
        _write_node_endpoint(out, node_endpoints_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
