"""Acknowledges records of a share group.

Made from schemas/share_acknowledge.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
    shortened,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_ii = Struct(">ii").pack
_pack_qq = Struct(">qq").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_qq = Struct(">qq").unpack_from
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


class AcknowledgePartition(Structure):
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


class AcknowledgeTopic(Structure):
    __slots__ = ("topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AcknowledgePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ShareAcknowledgeRequest(Message):
    __slots__ = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics", "unknown_tags",)
    API_KEY = 79
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
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(ShareAcknowledgeRequest, version)
        try:
            _write_share_acknowledge_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareAcknowledgeRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareAcknowledgeRequest, int]:
        if not 1 <= version <= 2:
            raise undecodable(ShareAcknowledgeRequest, version)
        try:
            return _read_share_acknowledge_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareAcknowledgeRequest, version, fault) from fault


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


class PartitionData(Structure):
    __slots__ = ("partition_index", "error_code", "error_message", "current_leader", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.unknown_tags = unknown_tags


class ShareAcknowledgeTopicResponse(Structure):
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


class ShareAcknowledgeResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "acquisition_lock_timeout_ms", "responses", "node_endpoints", "unknown_tags",)
    API_KEY = 79
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
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY_LIST,
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
            raise unencodable(ShareAcknowledgeResponse, version)
        try:
            _write_share_acknowledge_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ShareAcknowledgeResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ShareAcknowledgeResponse, int]:
        if not 1 <= version <= 2:
            raise undecodable(ShareAcknowledgeResponse, version)
        try:
            return _read_share_acknowledge_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ShareAcknowledgeResponse, version, fault) from fault


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


def _read_acknowledge_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AcknowledgePartition, int]:
    m = object.__new__(AcknowledgePartition)
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


def _write_acknowledge_partition(out: bytearray, m: AcknowledgePartition, version: int) -> None:
    out += _pack_i(m.partition_index)
    put_compact_count(out, len(m.acknowledgement_batches))
    for acknowledgement_batches_item in m.acknowledgement_batches:
        _write_acknowledgement_batch(out, acknowledgement_batches_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_acknowledge_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AcknowledgeTopic, int]:
    m = object.__new__(AcknowledgeTopic)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 6)
    partitions_: list[AcknowledgePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_acknowledge_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_acknowledge_topic(out: bytearray, m: AcknowledgeTopic, version: int) -> None:
    put_uuid(out, m.topic_id)
    put_compact_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_acknowledge_partition(out, partitions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_acknowledge_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareAcknowledgeRequest, int]:
    m = object.__new__(ShareAcknowledgeRequest)
    m.group_id, pos = read_compact_nullable_string(buf, pos, limit)
    m.member_id, pos = read_compact_nullable_string(buf, pos, limit)
    (m.share_session_epoch,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        m.is_renew_ack = buf[pos] != 0
        pos += 1
    else:
        m.is_renew_ack = False
    count, pos = read_compact_count(buf, pos, limit, 18)
    topics_: list[AcknowledgeTopic] = []
    for _ in range(count):
        topics_item, pos = _read_acknowledge_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_share_acknowledge_request(out: bytearray, m: ShareAcknowledgeRequest, version: int) -> None:
    put_compact_nullable_string(out, m.group_id)
    put_compact_nullable_string(out, m.member_id)
    out += _pack_i(m.share_session_epoch)
    if version >= 2:
        out.append(1 if m.is_renew_ack else 0)
    else:
        if m.is_renew_ack:
            raise not_in_version(m, "is_renew_ack", version)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_acknowledge_topic(out, topics_item, version)
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


def _read_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionData, int]:
    m = object.__new__(PartitionData)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    m.current_leader, pos = _read_leader_id_and_epoch(buf, pos, limit, version)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_partition_data(out: bytearray, m: PartitionData, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    _write_leader_id_and_epoch(out, m.current_leader, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_share_acknowledge_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareAcknowledgeTopicResponse, int]:
    m = object.__new__(ShareAcknowledgeTopicResponse)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    count, pos = read_compact_count(buf, pos, limit, 17)
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


def _write_share_acknowledge_topic_response(out: bytearray, m: ShareAcknowledgeTopicResponse, version: int) -> None:
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


def _read_share_acknowledge_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ShareAcknowledgeResponse, int]:
    m = object.__new__(ShareAcknowledgeResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if version >= 2:
        (m.acquisition_lock_timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.acquisition_lock_timeout_ms = 0
    count, pos = read_compact_count(buf, pos, limit, 18)
    responses_: list[ShareAcknowledgeTopicResponse] = []
    for _ in range(count):
        responses_item, pos = _read_share_acknowledge_topic_response(buf, pos, limit, version)
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


def _write_share_acknowledge_response(out: bytearray, m: ShareAcknowledgeResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        out += _pack_i(m.acquisition_lock_timeout_ms)
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_share_acknowledge_topic_response(out, responses_item, version)
    put_compact_count(out, len(m.node_endpoints))
    for node_endpoints_item in m.node_endpoints:
        _write_node_endpoint(out, node_endpoints_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
