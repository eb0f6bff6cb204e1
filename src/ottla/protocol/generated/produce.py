"""Appends record batches to partitions.

Made from schemas/produce.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, tag_of_other_size, tag_too_early, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_bytes,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_bytes,
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
    read_tag,
    read_tag_count,
    read_tags,
    shortened,
)

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_ihq = Struct(">ihq").pack
_pack_ii = Struct(">ii").pack
_pack_q = Struct(">q").pack
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ihq = Struct(">ihq").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_u = Struct(">16s").unpack_from

class PartitionProduceData(Structure):
    __slots__ = ("index", "records", "unknown_tags",)

    def __init__(
        self,
        *,
        index: int = 0,
        records: Buffer | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.index = index
        self.records = records
        self.unknown_tags = unknown_tags


class TopicProduceData(Structure):
    __slots__ = ("name", "topic_id", "partition_data", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY_LIST else partition_data
        self.unknown_tags = unknown_tags


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data", "unknown_tags",)
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY_LIST else topic_data
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 13:
            raise unencodable(ProduceRequest, version)
        try:
            _write_produce_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ProduceRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ProduceRequest, int]:
        if not 0 <= version <= 13:
            raise undecodable(ProduceRequest, version)
        try:
            return _read_produce_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ProduceRequest, version, fault) from fault


class BatchIndexAndErrorMessage(Structure):
    __slots__ = ("batch_index", "batch_index_error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message
        self.unknown_tags = unknown_tags


class LeaderIdAndEpoch(Structure):
    __slots__ = ("leader_id", "leader_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class PartitionProduceResponse(Structure):
    __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader", "unknown_tags",)

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY_LIST,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is EMPTY_LIST else record_errors
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.unknown_tags = unknown_tags


class TopicProduceResponse(Structure):
    __slots__ = ("name", "topic_id", "partition_responses", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is EMPTY_LIST else partition_responses
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


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints", "unknown_tags",)
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_FROM = 9
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY_LIST,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.responses = [] if responses is EMPTY_LIST else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY_LIST else node_endpoints
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 13:
            raise unencodable(ProduceResponse, version)
        try:
            _write_produce_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ProduceResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ProduceResponse, int]:
        if not 0 <= version <= 13:
            raise undecodable(ProduceResponse, version)
        try:
            return _read_produce_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ProduceResponse, version, fault) from fault


_TAGS_PARTITION_PRODUCE_RESPONSE = frozenset((0,))
_TAGS_PRODUCE_RESPONSE = frozenset((0,))
_DEFAULT_LEADER_ID_AND_EPOCH = LeaderIdAndEpoch()


def _read_partition_produce_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionProduceData, int]:
    m = object.__new__(PartitionProduceData)
    (m.index,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        m.records, pos = read_compact_nullable_bytes(buf, pos, limit)
    else:
        m.records, pos = read_nullable_bytes(buf, pos, limit)
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_partition_produce_data(out: bytearray, m: PartitionProduceData, version: int) -> None:
    out += _pack_i(m.index)
    if version >= 9:
        put_compact_nullable_bytes(out, m.records)
    else:
        put_nullable_bytes(out, m.records)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_topic_produce_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicProduceData, int]:
    m = object.__new__(TopicProduceData)
    if version >= 13:
        m.name = ""
    elif version >= 9:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 9 else read_count(buf, pos, limit, 6)
    partition_data_: list[PartitionProduceData] = []
    for _ in range(count):
        partition_data_item, pos = _read_partition_produce_data(buf, pos, limit, version)
        partition_data_.append(partition_data_item)
    m.partition_data = partition_data_
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_topic_produce_data(out: bytearray, m: TopicProduceData, version: int) -> None:
    if version >= 13:
        pass
    elif version >= 9:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 13:
        put_uuid(out, m.topic_id)
    if version >= 9:
        put_compact_count(out, len(m.partition_data))
    else:
        put_count(out, len(m.partition_data))
    for partition_data_item in m.partition_data:
        _write_partition_produce_data(out, partition_data_item, version)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_produce_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ProduceRequest, int]:
    m = object.__new__(ProduceRequest)
    if version >= 9:
        m.transactional_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 3:
        m.transactional_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.transactional_id = None
    m.acks, m.timeout_ms = _unpack_hi(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 9 else read_count(buf, pos, limit, 3)
    topic_data_: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, pos = _read_topic_produce_data(buf, pos, limit, version)
        topic_data_.append(topic_data_item)
    m.topic_data = topic_data_
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_produce_request(out: bytearray, m: ProduceRequest, version: int) -> None:
    if version >= 9:
        put_compact_nullable_string(out, m.transactional_id)
    elif version >= 3:
        put_nullable_string(out, m.transactional_id)
    else:
        if m.transactional_id is not None:
            raise not_in_version(m, "transactional_id", version)
    out += _pack_hi(m.acks, m.timeout_ms)
    if version >= 9:
        put_compact_count(out, len(m.topic_data))
    else:
        put_count(out, len(m.topic_data))
    for topic_data_item in m.topic_data:
        _write_topic_produce_data(out, topic_data_item, version)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_batch_index_and_error_message(buf: Buffer, pos: int, limit: int, version: int) -> tuple[BatchIndexAndErrorMessage, int]:
    m = object.__new__(BatchIndexAndErrorMessage)
    (m.batch_index,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 9:
        m.batch_index_error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.batch_index_error_message, pos = read_nullable_string(buf, pos, limit)
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_batch_index_and_error_message(out: bytearray, m: BatchIndexAndErrorMessage, version: int) -> None:
    out += _pack_i(m.batch_index)
    if version >= 9:
        put_compact_nullable_string(out, m.batch_index_error_message)
    else:
        put_nullable_string(out, m.batch_index_error_message)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


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


def _read_partition_produce_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionProduceResponse, int]:
    m = object.__new__(PartitionProduceResponse)
    m.index, m.error_code, m.base_offset = _unpack_ihq(buf, pos)
    pos += 14
    if version >= 2:
        (m.log_append_time_ms,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.log_append_time_ms = -1
    if version >= 5:
        (m.log_start_offset,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.log_start_offset = -1
    if version >= 8:
        count, pos = read_compact_count(buf, pos, limit, 6) if version >= 9 else read_count(buf, pos, limit, 6)
        record_errors_: list[BatchIndexAndErrorMessage] = []
        for _ in range(count):
            record_errors_item, pos = _read_batch_index_and_error_message(buf, pos, limit, version)
            record_errors_.append(record_errors_item)
        m.record_errors = record_errors_
    else:
        m.record_errors = []
    if version >= 9:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 8:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    else:
        m.error_message = None
    m.current_leader = LeaderIdAndEpoch()
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_partition_produce_response_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_partition_produce_response_tags(m: PartitionProduceResponse, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 10:
                raise tag_too_early(m, tag, version)
            m.current_leader, pos = _read_leader_id_and_epoch(buf, pos, end, version)
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_partition_produce_response(out: bytearray, m: PartitionProduceResponse, version: int) -> None:
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
        for record_errors_item in m.record_errors:
            _write_batch_index_and_error_message(out, record_errors_item, version)
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


def _read_topic_produce_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicProduceResponse, int]:
    m = object.__new__(TopicProduceResponse)
    if version >= 13:
        m.name = ""
    elif version >= 9:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 14) if version >= 9 else read_count(buf, pos, limit, 14)
    partition_responses_: list[PartitionProduceResponse] = []
    for _ in range(count):
        partition_responses_item, pos = _read_partition_produce_response(buf, pos, limit, version)
        partition_responses_.append(partition_responses_item)
    m.partition_responses = partition_responses_
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_topic_produce_response(out: bytearray, m: TopicProduceResponse, version: int) -> None:
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
        _write_partition_produce_response(out, partition_responses_item, version)
    if version >= 9:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


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


def _read_produce_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ProduceResponse, int]:
    m = object.__new__(ProduceResponse)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 9 else read_count(buf, pos, limit, 3)
    responses_: list[TopicProduceResponse] = []
    for _ in range(count):
        responses_item, pos = _read_topic_produce_response(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    m.node_endpoints = []
    if version >= 9:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_produce_response_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_produce_response_tags(m: ProduceResponse, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 10:
                raise tag_too_early(m, tag, version)
            count, pos = read_compact_count(buf, pos, end, 11)
            node_endpoints_: list[NodeEndpoint] = []
            for _ in range(count):
                node_endpoints_item, pos = _read_node_endpoint(buf, pos, end, version)
                node_endpoints_.append(node_endpoints_item)
            m.node_endpoints = node_endpoints_
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_produce_response(out: bytearray, m: ProduceResponse, version: int) -> None:
    if version >= 9:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_topic_produce_response(out, responses_item, version)
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
            for node_endpoints_item in m.node_endpoints:
                _write_node_endpoint(tag, node_endpoints_item, version)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_PRODUCE_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
