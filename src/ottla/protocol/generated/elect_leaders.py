"""Has leaders elected for partitions: the preferred ones, or any that is left.

Made from schemas/elect_leaders.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    NULL_COUNT,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tags,
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
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class TopicPartitions(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms", "unknown_tags",)
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = EMPTY_LIST,
        timeout_ms: int = 60000,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY_LIST else topic_partitions
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(ElectLeadersRequest, version)
        try:
            _write_elect_leaders_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ElectLeadersRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ElectLeadersRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(ElectLeadersRequest, version)
        try:
            return _read_elect_leaders_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ElectLeadersRequest, version, fault) from fault


class PartitionResult(Structure):
    __slots__ = ("partition_id", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class ReplicaElectionResult(Structure):
    __slots__ = ("topic", "partition_result", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is EMPTY_LIST else partition_result
        self.unknown_tags = unknown_tags


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results", "unknown_tags",)
    API_KEY = 43
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY_LIST else replica_election_results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(ElectLeadersResponse, version)
        try:
            _write_elect_leaders_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ElectLeadersResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ElectLeadersResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(ElectLeadersResponse, version)
        try:
            return _read_elect_leaders_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ElectLeadersResponse, version, fault) from fault


def _read_topic_partitions(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicPartitions, int]:
    m = object.__new__(TopicPartitions)
    if version >= 2:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_topic_partitions(out: bytearray, m: TopicPartitions, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_elect_leaders_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ElectLeadersRequest, int]:
    m = object.__new__(ElectLeadersRequest)
    if version >= 1:
        (m.election_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.election_type = 0
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.topic_partitions = None
    else:
        topic_partitions_: list[TopicPartitions] = []
        for _ in range(count):
            topic_partitions_item, pos = _read_topic_partitions(buf, pos, limit, version)
            topic_partitions_.append(topic_partitions_item)
        m.topic_partitions = topic_partitions_
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_elect_leaders_request(out: bytearray, m: ElectLeadersRequest, version: int) -> None:
    if version >= 1:
        out += _pack_b(m.election_type)
    else:
        if m.election_type != 0:
            raise not_in_version(m, "election_type", version)
    if m.topic_partitions is None:
        out += b"\0" if version >= 2 else NULL_COUNT
    else:
        if version >= 2:
            put_compact_count(out, len(m.topic_partitions))
        else:
            put_count(out, len(m.topic_partitions))
        for topic_partitions_item in m.topic_partitions:
            _write_topic_partitions(out, topic_partitions_item, version)
    out += _pack_i(m.timeout_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionResult, int]:
    m = object.__new__(PartitionResult)
    m.partition_id, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 2:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message, pos = read_nullable_string(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_partition_result(out: bytearray, m: PartitionResult, version: int) -> None:
    out += _pack_ih(m.partition_id, m.error_code)
    if version >= 2:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_replica_election_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReplicaElectionResult, int]:
    m = object.__new__(ReplicaElectionResult)
    if version >= 2:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 8) if version >= 2 else read_count(buf, pos, limit, 8)
    partition_result_: list[PartitionResult] = []
    for _ in range(count):
        partition_result_item, pos = _read_partition_result(buf, pos, limit, version)
        partition_result_.append(partition_result_item)
    m.partition_result = partition_result_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_replica_election_result(out: bytearray, m: ReplicaElectionResult, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 2:
        put_compact_count(out, len(m.partition_result))
    else:
        put_count(out, len(m.partition_result))
    for partition_result_item in m.partition_result:
        _write_partition_result(out, partition_result_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_elect_leaders_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ElectLeadersResponse, int]:
    m = object.__new__(ElectLeadersResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
    else:
        m.error_code = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    replica_election_results_: list[ReplicaElectionResult] = []
    for _ in range(count):
        replica_election_results_item, pos = _read_replica_election_result(buf, pos, limit, version)
        replica_election_results_.append(replica_election_results_item)
    m.replica_election_results = replica_election_results_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_elect_leaders_response(out: bytearray, m: ElectLeadersResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 1:
        out += _pack_h(m.error_code)
    else:
        if m.error_code != 0:
            raise not_in_version(m, "error_code", version)
    if version >= 2:
        put_compact_count(out, len(m.replica_election_results))
    else:
        put_count(out, len(m.replica_election_results))
    for replica_election_results_item in m.replica_election_results:
        _write_replica_election_result(out, replica_election_results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
