"""Where a leader's epoch ended in the log.

Made from schemas/offset_for_leader_epoch.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)

_pack_hiiq = Struct(">hiiq").pack
_pack_i = Struct(">i").pack
_pack_iii = Struct(">iii").pack
_unpack_hiiq = Struct(">hiiq").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iii = Struct(">iii").unpack_from

class OffsetForLeaderPartition(Structure):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch", "unknown_tags",)

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch
        self.unknown_tags = unknown_tags


class OffsetForLeaderTopic(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics", "unknown_tags",)
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 4:
            raise unencodable(OffsetForLeaderEpochRequest, version)
        try:
            _write_offset_for_leader_epoch_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetForLeaderEpochRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetForLeaderEpochRequest, int]:
        if not 2 <= version <= 4:
            raise undecodable(OffsetForLeaderEpochRequest, version)
        try:
            return _read_offset_for_leader_epoch_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetForLeaderEpochRequest, version, fault) from fault


class EpochEndOffset(Structure):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset
        self.unknown_tags = unknown_tags


class OffsetForLeaderTopicResult(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 4:
            raise unencodable(OffsetForLeaderEpochResponse, version)
        try:
            _write_offset_for_leader_epoch_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(OffsetForLeaderEpochResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[OffsetForLeaderEpochResponse, int]:
        if not 2 <= version <= 4:
            raise undecodable(OffsetForLeaderEpochResponse, version)
        try:
            return _read_offset_for_leader_epoch_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(OffsetForLeaderEpochResponse, version, fault) from fault


def _read_offset_for_leader_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetForLeaderPartition, int]:
    m = object.__new__(OffsetForLeaderPartition)
    m.partition, m.current_leader_epoch, m.leader_epoch = _unpack_iii(buf, pos)
    pos += 12
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_for_leader_partition(out: bytearray, m: OffsetForLeaderPartition, version: int) -> None:
    out += _pack_iii(m.partition, m.current_leader_epoch, m.leader_epoch)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_for_leader_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetForLeaderTopic, int]:
    m = object.__new__(OffsetForLeaderTopic)
    if version >= 4:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 12) if version >= 4 else read_count(buf, pos, limit, 12)
    partitions_: list[OffsetForLeaderPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_offset_for_leader_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_for_leader_topic(out: bytearray, m: OffsetForLeaderTopic, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 4:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_offset_for_leader_partition(out, partitions_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_for_leader_epoch_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    m = object.__new__(OffsetForLeaderEpochRequest)
    if version >= 3:
        (m.replica_id,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.replica_id = -2
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
    topics_: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        topics_item, pos = _read_offset_for_leader_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_for_leader_epoch_request(out: bytearray, m: OffsetForLeaderEpochRequest, version: int) -> None:
    if version >= 3:
        out += _pack_i(m.replica_id)
    if version >= 4:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_for_leader_topic(out, topics_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_epoch_end_offset(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EpochEndOffset, int]:
    m = object.__new__(EpochEndOffset)
    m.error_code, m.partition, m.leader_epoch, m.end_offset = _unpack_hiiq(buf, pos)
    pos += 18
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_epoch_end_offset(out: bytearray, m: EpochEndOffset, version: int) -> None:
    out += _pack_hiiq(m.error_code, m.partition, m.leader_epoch, m.end_offset)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_for_leader_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetForLeaderTopicResult, int]:
    m = object.__new__(OffsetForLeaderTopicResult)
    if version >= 4:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 18) if version >= 4 else read_count(buf, pos, limit, 18)
    partitions_: list[EpochEndOffset] = []
    for _ in range(count):
        partitions_item, pos = _read_epoch_end_offset(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_for_leader_topic_result(out: bytearray, m: OffsetForLeaderTopicResult, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 4:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_epoch_end_offset(out, partitions_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_offset_for_leader_epoch_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    m = object.__new__(OffsetForLeaderEpochResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
    topics_: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        topics_item, pos = _read_offset_for_leader_topic_result(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_offset_for_leader_epoch_response(out: bytearray, m: OffsetForLeaderEpochResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_offset_for_leader_topic_result(out, topics_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
