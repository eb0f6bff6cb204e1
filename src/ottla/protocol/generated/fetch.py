"""Reads record batches: consumers up to the high watermark, followers up to the log's end.

Made from schemas/fetch.schema by `python -m ottla.protocol.compile`: change that file.
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
    NULL_COUNT,
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_bytes,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_bytes,
    put_numbers,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_bytes,
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_bytes,
    read_nullable_count,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_tags,
)

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_pack_ihqq = Struct(">ihqq").pack
_pack_ii = Struct(">ii").pack
_pack_iiib = Struct(">iiib").pack
_pack_iq = Struct(">iq").pack
_pack_q = Struct(">q").pack
_pack_qi = Struct(">qi").pack
_pack_qq = Struct(">qq").pack
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ihqq = Struct(">ihqq").unpack_from
_unpack_ii = Struct(">ii").unpack_from
_unpack_iiib = Struct(">iiib").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qi = Struct(">qi").unpack_from
_unpack_qq = Struct(">qq").unpack_from
_unpack_u = Struct(">16s").unpack_from

class ReplicaState(Structure):
    __slots__ = ("replica_id", "replica_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.unknown_tags = unknown_tags


class FetchPartition(Structure):
    __slots__ = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset", "partition_max_bytes", "replica_directory_id", "high_watermark", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark
        self.unknown_tags = unknown_tags


class FetchTopic(Structure):
    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class ForgottenTopic(Structure):
    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class FetchRequest(Message):
    __slots__ = ("cluster_id", "replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "topics", "forgotten_topics_data", "rack_id", "unknown_tags",)
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] = EMPTY_LIST,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY_LIST,
        rack_id: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = ReplicaState() if replica_state is None else replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY_LIST else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY_LIST else forgotten_topics_data
        self.rack_id = rack_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 4 <= version <= 18:
            raise unencodable(FetchRequest, version)
        try:
            _write_fetch_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(FetchRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[FetchRequest, int]:
        if not 4 <= version <= 18:
            raise undecodable(FetchRequest, version)
        try:
            return _read_fetch_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(FetchRequest, version, fault) from fault


class EpochEndOffset(Structure):
    __slots__ = ("epoch", "end_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset
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


class SnapshotId(Structure):
    __slots__ = ("end_offset", "epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.unknown_tags = unknown_tags


class AbortedTransaction(Structure):
    __slots__ = ("producer_id", "first_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.unknown_tags = unknown_tags


class PartitionData(Structure):
    __slots__ = ("partition_index", "error_code", "high_watermark", "last_stable_offset", "log_start_offset", "diverging_epoch", "current_leader", "snapshot_id", "aborted_transactions", "preferred_read_replica", "records", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = EMPTY_LIST,
        preferred_read_replica: int = -1,
        records: Buffer | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = EpochEndOffset() if diverging_epoch is None else diverging_epoch
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.snapshot_id = SnapshotId() if snapshot_id is None else snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY_LIST else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records
        self.unknown_tags = unknown_tags


class FetchableTopicResponse(Structure):
    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
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


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints", "unknown_tags",)
    API_KEY = 1
    MIN_VERSION = 4
    MAX_VERSION = 18
    FLEXIBLE_FROM = 12
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] = EMPTY_LIST,
        node_endpoints: list[NodeEndpoint] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY_LIST else responses
        self.node_endpoints = [] if node_endpoints is EMPTY_LIST else node_endpoints
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 4 <= version <= 18:
            raise unencodable(FetchResponse, version)
        try:
            _write_fetch_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(FetchResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[FetchResponse, int]:
        if not 4 <= version <= 18:
            raise undecodable(FetchResponse, version)
        try:
            return _read_fetch_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(FetchResponse, version, fault) from fault


_TAGS_FETCH_PARTITION = frozenset((0, 1,))
_TAGS_FETCH_REQUEST = frozenset((0, 1,))
_TAGS_PARTITION_DATA = frozenset((0, 1, 2,))
_TAGS_FETCH_RESPONSE = frozenset((0,))
_DEFAULT_REPLICA_STATE = ReplicaState()
_DEFAULT_EPOCH_END_OFFSET = EpochEndOffset()
_DEFAULT_LEADER_ID_AND_EPOCH = LeaderIdAndEpoch()
_DEFAULT_SNAPSHOT_ID = SnapshotId()


def _read_replica_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ReplicaState, int]:
    m = object.__new__(ReplicaState)
    m.replica_id, m.replica_epoch = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_replica_state(out: bytearray, m: ReplicaState, version: int) -> None:
    out += _pack_iq(m.replica_id, m.replica_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_fetch_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchPartition, int]:
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
            pos = _read_fetch_partition_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_partition_tags(m: FetchPartition, buf: Buffer, pos: int, limit: int, version: int) -> int:
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
    return pos


def _write_fetch_partition(out: bytearray, m: FetchPartition, version: int) -> None:
    out += _pack_i(m.partition)
    if version >= 9:
        out += _pack_i(m.current_leader_epoch)
    out += _pack_q(m.fetch_offset)
    if version >= 12:
        out += _pack_i(m.last_fetched_epoch)
    else:
        if m.last_fetched_epoch != -1:
            raise not_in_version(m, "last_fetched_epoch", version)
    if version >= 5:
        out += _pack_q(m.log_start_offset)
    out += _pack_i(m.partition_max_bytes)
    if version >= 12:
        tags: list[tuple[int, bytearray]] = []
        if version >= 17 and m.replica_directory_id != ZERO_UUID:
            tag = bytearray()
            put_uuid(tag, m.replica_directory_id)
            tags.append((0, tag))
        if version >= 18 and m.high_watermark != 9223372036854775807:
            tag = bytearray()
            tag += _pack_q(m.high_watermark)
            tags.append((1, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_FETCH_PARTITION)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_fetch_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchTopic, int]:
    m = object.__new__(FetchTopic)
    if version >= 13:
        m.topic = ""
    elif version >= 12:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 16) if version >= 12 else read_count(buf, pos, limit, 16)
    partitions_: list[FetchPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_fetch_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_fetch_topic(out: bytearray, m: FetchTopic, version: int) -> None:
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
        _write_fetch_partition(out, partitions_item, version)
    if version >= 12:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_forgotten_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ForgottenTopic, int]:
    m = object.__new__(ForgottenTopic)
    if version >= 13:
        m.topic = ""
    elif version >= 12:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 12 else read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_forgotten_topic(out: bytearray, m: ForgottenTopic, version: int) -> None:
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
    put_numbers(out, m.partitions, "i")
    if version >= 12:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_fetch_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchRequest, int]:
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
    topics_: list[FetchTopic] = []
    for _ in range(count):
        topics_item, pos = _read_fetch_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 7:
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 12 else read_count(buf, pos, limit, 3)
        forgotten_topics_data_: list[ForgottenTopic] = []
        for _ in range(count):
            forgotten_topics_data_item, pos = _read_forgotten_topic(buf, pos, limit, version)
            forgotten_topics_data_.append(forgotten_topics_data_item)
        m.forgotten_topics_data = forgotten_topics_data_
    else:
        m.forgotten_topics_data = []
    if version >= 12:
        m.rack_id, pos = read_compact_string(buf, pos, limit)
    elif version >= 11:
        m.rack_id, pos = read_string(buf, pos, limit)
    else:
        m.rack_id = ""
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_fetch_request_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_request_tags(m: FetchRequest, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            m.cluster_id, pos = read_compact_nullable_string(buf, pos, end)
        elif tag == 1:
            if version < 15:
                raise tag_too_early(m, tag, version)
            m.replica_state, pos = _read_replica_state(buf, pos, end, version)
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_fetch_request(out: bytearray, m: FetchRequest, version: int) -> None:
    if version >= 15:
        if m.replica_id != -1:
            raise not_in_version(m, "replica_id", version)
    else:
        out += _pack_i(m.replica_id)
        if m.replica_state != _DEFAULT_REPLICA_STATE:
            raise not_in_version(m, "replica_state", version)
    out += _pack_iiib(m.max_wait_ms, m.min_bytes, m.max_bytes, m.isolation_level)
    if version >= 7:
        out += _pack_ii(m.session_id, m.session_epoch)
    if version >= 12:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_fetch_topic(out, topics_item, version)
    if version >= 7:
        if version >= 12:
            put_compact_count(out, len(m.forgotten_topics_data))
        else:
            put_count(out, len(m.forgotten_topics_data))
        for forgotten_topics_data_item in m.forgotten_topics_data:
            _write_forgotten_topic(out, forgotten_topics_data_item, version)
    else:
        if m.forgotten_topics_data != []:
            raise not_in_version(m, "forgotten_topics_data", version)
    if version >= 12:
        put_compact_string(out, m.rack_id)
    elif version >= 11:
        put_string(out, m.rack_id)
    if version >= 12:
        tags: list[tuple[int, bytearray]] = []
        if m.cluster_id is not None:
            tag = bytearray()
            put_compact_nullable_string(tag, m.cluster_id)
            tags.append((0, tag))
        if version >= 15 and m.replica_state != _DEFAULT_REPLICA_STATE:
            tag = bytearray()
            _write_replica_state(tag, m.replica_state, version)
            tags.append((1, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_FETCH_REQUEST)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_epoch_end_offset(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EpochEndOffset, int]:
    m = object.__new__(EpochEndOffset)
    m.epoch, m.end_offset = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_epoch_end_offset(out: bytearray, m: EpochEndOffset, version: int) -> None:
    out += _pack_iq(m.epoch, m.end_offset)
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


def _read_snapshot_id(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SnapshotId, int]:
    m = object.__new__(SnapshotId)
    m.end_offset, m.epoch = _unpack_qi(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_snapshot_id(out: bytearray, m: SnapshotId, version: int) -> None:
    out += _pack_qi(m.end_offset, m.epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_aborted_transaction(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AbortedTransaction, int]:
    m = object.__new__(AbortedTransaction)
    m.producer_id, m.first_offset = _unpack_qq(buf, pos)
    pos += 16
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_aborted_transaction(out: bytearray, m: AbortedTransaction, version: int) -> None:
    out += _pack_qq(m.producer_id, m.first_offset)
    if version >= 12:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_partition_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionData, int]:
    m = object.__new__(PartitionData)
    m.partition_index, m.error_code, m.high_watermark, m.last_stable_offset = _unpack_ihqq(buf, pos)
    pos += 22
    if version >= 5:
        (m.log_start_offset,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.log_start_offset = -1
    m.diverging_epoch = EpochEndOffset()
    m.current_leader = LeaderIdAndEpoch()
    m.snapshot_id = SnapshotId()
    count, pos = read_compact_nullable_count(buf, pos, limit, 16) if version >= 12 else read_nullable_count(buf, pos, limit, 16)
    if count < 0:
        m.aborted_transactions = None
    else:
        aborted_transactions_: list[AbortedTransaction] = []
        for _ in range(count):
            aborted_transactions_item, pos = _read_aborted_transaction(buf, pos, limit, version)
            aborted_transactions_.append(aborted_transactions_item)
        m.aborted_transactions = aborted_transactions_
    if version >= 11:
        (m.preferred_read_replica,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.preferred_read_replica = -1
    if version >= 12:
        m.records, pos = read_compact_nullable_bytes(buf, pos, limit)
    else:
        m.records, pos = read_nullable_bytes(buf, pos, limit)
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_partition_data_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_partition_data_tags(m: PartitionData, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            m.diverging_epoch, pos = _read_epoch_end_offset(buf, pos, end, version)
        elif tag == 1:
            m.current_leader, pos = _read_leader_id_and_epoch(buf, pos, end, version)
        elif tag == 2:
            m.snapshot_id, pos = _read_snapshot_id(buf, pos, end, version)
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_partition_data(out: bytearray, m: PartitionData, version: int) -> None:
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
        for aborted_transactions_item in m.aborted_transactions:
            _write_aborted_transaction(out, aborted_transactions_item, version)
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


def _read_fetchable_topic_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchableTopicResponse, int]:
    m = object.__new__(FetchableTopicResponse)
    if version >= 13:
        m.topic = ""
    elif version >= 12:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    if version >= 13:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    count, pos = read_compact_count(buf, pos, limit, 30) if version >= 12 else read_count(buf, pos, limit, 30)
    partitions_: list[PartitionData] = []
    for _ in range(count):
        partitions_item, pos = _read_partition_data(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_fetchable_topic_response(out: bytearray, m: FetchableTopicResponse, version: int) -> None:
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
        _write_partition_data(out, partitions_item, version)
    if version >= 12:
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


def _read_fetch_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FetchResponse, int]:
    m = object.__new__(FetchResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 7:
        m.error_code, m.session_id = _unpack_hi(buf, pos)
        pos += 6
    else:
        m.error_code = 0
        m.session_id = 0
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 12 else read_count(buf, pos, limit, 3)
    responses_: list[FetchableTopicResponse] = []
    for _ in range(count):
        responses_item, pos = _read_fetchable_topic_response(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    m.node_endpoints = []
    if version >= 12:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_fetch_response_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_fetch_response_tags(m: FetchResponse, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            if version < 16:
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


def _write_fetch_response(out: bytearray, m: FetchResponse, version: int) -> None:
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
        _write_fetchable_topic_response(out, responses_item, version)
    if version < 16:
        if m.node_endpoints != []:
            raise not_in_version(m, "node_endpoints", version)
    if version >= 12:
        tags: list[tuple[int, bytearray]] = []
        if version >= 16 and m.node_endpoints != []:
            tag = bytearray()
            put_compact_count(tag, len(m.node_endpoints))
            for node_endpoints_item in m.node_endpoints:
                _write_node_endpoint(tag, node_endpoints_item, version)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_FETCH_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
