"""Brokers, controller, topics, and who leads each partition.

Made from schemas/metadata.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_nullable, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    NULL_COUNT,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_nullable_string,
    read_numbers,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_hii = Struct(">hii").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hii = Struct(">hii").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from

class MetadataRequestTopic(Structure):
    __slots__ = ("topic_id", "name", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_id = topic_id
        self.name = name
        self.unknown_tags = unknown_tags


class MetadataRequest(Message):
    __slots__ = ("topics", "allow_auto_topic_creation", "include_cluster_authorized_operations", "include_topic_authorized_operations", "unknown_tags",)
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY_LIST,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 13:
            raise unencodable(MetadataRequest, version)
        try:
            _write_metadata_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(MetadataRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[MetadataRequest, int]:
        if not 0 <= version <= 13:
            raise undecodable(MetadataRequest, version)
        try:
            return _read_metadata_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(MetadataRequest, version, fault) from fault


class MetadataResponseBroker(Structure):
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


class MetadataResponsePartition(Structure):
    __slots__ = ("error_code", "partition_index", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY_LIST,
        isr_nodes: list[int] = EMPTY_LIST,
        offline_replicas: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY_LIST else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY_LIST else isr_nodes
        self.offline_replicas = [] if offline_replicas is EMPTY_LIST else offline_replicas
        self.unknown_tags = unknown_tags


class MetadataResponseTopic(Structure):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = EMPTY_LIST,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.topic_authorized_operations = topic_authorized_operations
        self.unknown_tags = unknown_tags


class MetadataResponse(Message):
    __slots__ = ("throttle_time_ms", "brokers", "cluster_id", "controller_id", "topics", "cluster_authorized_operations", "error_code", "unknown_tags",)
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = EMPTY_LIST,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = EMPTY_LIST,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY_LIST else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 13:
            raise unencodable(MetadataResponse, version)
        try:
            _write_metadata_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(MetadataResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[MetadataResponse, int]:
        if not 0 <= version <= 13:
            raise undecodable(MetadataResponse, version)
        try:
            return _read_metadata_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(MetadataResponse, version, fault) from fault


def _read_metadata_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataRequestTopic, int]:
    m = object.__new__(MetadataRequestTopic)
    if version >= 10:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    if version >= 10:
        m.name, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 9:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_request_topic(out: bytearray, m: MetadataRequestTopic, version: int) -> None:
    if version >= 10:
        put_uuid(out, m.topic_id)
    if version >= 10:
        put_compact_nullable_string(out, m.name)
    elif version >= 9:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_compact_string(out, m.name)
    else:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_string(out, m.name)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_metadata_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataRequest, int]:
    m = object.__new__(MetadataRequest)
    if version >= 1:
        count, pos = read_compact_nullable_count(buf, pos, limit, 2) if version >= 9 else read_nullable_count(buf, pos, limit, 2)
        if count < 0:
            m.topics = None
        else:
            topics_or_null_: list[MetadataRequestTopic] = []
            for _ in range(count):
                topics_or_null_item, pos = _read_metadata_request_topic(buf, pos, limit, version)
                topics_or_null_.append(topics_or_null_item)
            m.topics = topics_or_null_
    else:
        count, pos = read_count(buf, pos, limit, 2)
        topics_: list[MetadataRequestTopic] = []
        for _ in range(count):
            topics_item, pos = _read_metadata_request_topic(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
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
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_request(out: bytearray, m: MetadataRequest, version: int) -> None:
    if version >= 1:
        if m.topics is None:
            out += b"\0" if version >= 9 else NULL_COUNT
        else:
            if version >= 9:
                put_compact_count(out, len(m.topics))
            else:
                put_count(out, len(m.topics))
            for topics_item in m.topics:
                _write_metadata_request_topic(out, topics_item, version)
    else:
        if m.topics is None:
            raise not_nullable(m, "topics", version)
        put_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_metadata_request_topic(out, topics_item, version)
    if version >= 4:
        out.append(1 if m.allow_auto_topic_creation else 0)
    else:
        if m.allow_auto_topic_creation != True:
            raise not_in_version(m, "allow_auto_topic_creation", version)
    if version >= 11:
        if m.include_cluster_authorized_operations:
            raise not_in_version(m, "include_cluster_authorized_operations", version)
    elif version >= 8:
        out.append(1 if m.include_cluster_authorized_operations else 0)
    else:
        if m.include_cluster_authorized_operations:
            raise not_in_version(m, "include_cluster_authorized_operations", version)
    if version >= 8:
        out.append(1 if m.include_topic_authorized_operations else 0)
    else:
        if m.include_topic_authorized_operations:
            raise not_in_version(m, "include_topic_authorized_operations", version)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_metadata_response_broker(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataResponseBroker, int]:
    m = object.__new__(MetadataResponseBroker)
    (m.node_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        m.host, pos = read_compact_string(buf, pos, limit)
    else:
        m.host, pos = read_string(buf, pos, limit)
    (m.port,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        m.rack, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 1:
        m.rack, pos = read_nullable_string(buf, pos, limit)
    else:
        m.rack = None
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_response_broker(out: bytearray, m: MetadataResponseBroker, version: int) -> None:
    out += _pack_i(m.node_id)
    if version >= 9:
        put_compact_string(out, m.host)
    else:
        put_string(out, m.host)
    out += _pack_i(m.port)
    if version >= 9:
        put_compact_nullable_string(out, m.rack)
    elif version >= 1:
        put_nullable_string(out, m.rack)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_metadata_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataResponsePartition, int]:
    m = object.__new__(MetadataResponsePartition)
    m.error_code, m.partition_index, m.leader_id = _unpack_hii(buf, pos)
    pos += 10
    if version >= 7:
        (m.leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.leader_epoch = -1
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 9 else read_count(buf, pos, limit, 4)
    m.replica_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 9 else read_count(buf, pos, limit, 4)
    m.isr_nodes, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 5:
        count, pos = read_compact_count(buf, pos, limit, 4) if version >= 9 else read_count(buf, pos, limit, 4)
        m.offline_replicas, pos = read_numbers(buf, pos, count, "i", 4)
    else:
        m.offline_replicas = []
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_response_partition(out: bytearray, m: MetadataResponsePartition, version: int) -> None:
    out += _pack_hii(m.error_code, m.partition_index, m.leader_id)
    if version >= 7:
        out += _pack_i(m.leader_epoch)
    if version >= 9:
        put_compact_count(out, len(m.replica_nodes))
    else:
        put_count(out, len(m.replica_nodes))
    put_numbers(out, m.replica_nodes, "i")
    if version >= 9:
        put_compact_count(out, len(m.isr_nodes))
    else:
        put_count(out, len(m.isr_nodes))
    put_numbers(out, m.isr_nodes, "i")
    if version >= 5:
        if version >= 9:
            put_compact_count(out, len(m.offline_replicas))
        else:
            put_count(out, len(m.offline_replicas))
        put_numbers(out, m.offline_replicas, "i")
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_metadata_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataResponseTopic, int]:
    m = object.__new__(MetadataResponseTopic)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 12:
        m.name, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 9:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 10:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    if version >= 1:
        m.is_internal = buf[pos] != 0
        pos += 1
    else:
        m.is_internal = False
    count, pos = read_compact_count(buf, pos, limit, 18) if version >= 9 else read_count(buf, pos, limit, 18)
    partitions_: list[MetadataResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_metadata_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 8:
        (m.topic_authorized_operations,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.topic_authorized_operations = -2147483648
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_response_topic(out: bytearray, m: MetadataResponseTopic, version: int) -> None:
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
        _write_metadata_response_partition(out, partitions_item, version)
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


def _read_metadata_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MetadataResponse, int]:
    m = object.__new__(MetadataResponse)
    if version >= 3:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 9 else read_count(buf, pos, limit, 10)
    brokers_: list[MetadataResponseBroker] = []
    for _ in range(count):
        brokers_item, pos = _read_metadata_response_broker(buf, pos, limit, version)
        brokers_.append(brokers_item)
    m.brokers = brokers_
    if version >= 9:
        m.cluster_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 2:
        m.cluster_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.cluster_id = None
    if version >= 1:
        (m.controller_id,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.controller_id = -1
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 9 else read_count(buf, pos, limit, 8)
    topics_: list[MetadataResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_metadata_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 11:
        m.cluster_authorized_operations = -2147483648
    elif version >= 8:
        (m.cluster_authorized_operations,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.cluster_authorized_operations = -2147483648
    if version >= 13:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
    else:
        m.error_code = 0
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_metadata_response(out: bytearray, m: MetadataResponse, version: int) -> None:
    if version >= 3:
        out += _pack_i(m.throttle_time_ms)
    if version >= 9:
        put_compact_count(out, len(m.brokers))
    else:
        put_count(out, len(m.brokers))
    for brokers_item in m.brokers:
        _write_metadata_response_broker(out, brokers_item, version)
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
        _write_metadata_response_topic(out, topics_item, version)
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
