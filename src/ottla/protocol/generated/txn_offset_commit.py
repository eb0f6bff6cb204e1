"""Stores a group's positions as a part of a transaction.

Made from schemas/txn_offset_commit.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_iq = Struct(">iq").pack
_pack_qh = Struct(">qh").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_iq = Struct(">iq").unpack_from
_unpack_qh = Struct(">qh").unpack_from

class TxnOffsetCommitRequestPartition(Structure):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata
        self.unknown_tags = unknown_tags


class TxnOffsetCommitRequestTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class TxnOffsetCommitRequest(Message):
    __slots__ = ("transactional_id", "group_id", "producer_id", "producer_epoch", "generation_id", "member_id", "group_instance_id", "topics", "unknown_tags",)
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(TxnOffsetCommitRequest, version)
        try:
            _write_txn_offset_commit_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(TxnOffsetCommitRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[TxnOffsetCommitRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(TxnOffsetCommitRequest, version)
        try:
            return _read_txn_offset_commit_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(TxnOffsetCommitRequest, version, fault) from fault


class TxnOffsetCommitResponsePartition(Structure):
    __slots__ = ("partition_index", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class TxnOffsetCommitResponseTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags",)
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(TxnOffsetCommitResponse, version)
        try:
            _write_txn_offset_commit_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(TxnOffsetCommitResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[TxnOffsetCommitResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(TxnOffsetCommitResponse, version)
        try:
            return _read_txn_offset_commit_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(TxnOffsetCommitResponse, version, fault) from fault


def _read_txn_offset_commit_request_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitRequestPartition, int]:
    m = object.__new__(TxnOffsetCommitRequestPartition)
    m.partition_index, m.committed_offset = _unpack_iq(buf, pos)
    pos += 12
    if version >= 2:
        (m.committed_leader_epoch,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.committed_leader_epoch = -1
    if version >= 3:
        m.committed_metadata, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.committed_metadata, pos = read_nullable_string(buf, pos, limit)
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_request_partition(out: bytearray, m: TxnOffsetCommitRequestPartition, version: int) -> None:
    out += _pack_iq(m.partition_index, m.committed_offset)
    if version >= 2:
        out += _pack_i(m.committed_leader_epoch)
    if version >= 3:
        put_compact_nullable_string(out, m.committed_metadata)
    else:
        put_nullable_string(out, m.committed_metadata)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_txn_offset_commit_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitRequestTopic, int]:
    m = object.__new__(TxnOffsetCommitRequestTopic)
    if version >= 3:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 14) if version >= 3 else read_count(buf, pos, limit, 14)
    partitions_: list[TxnOffsetCommitRequestPartition] = []
    for _ in range(count):
        partitions_item, pos = _read_txn_offset_commit_request_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_request_topic(out: bytearray, m: TxnOffsetCommitRequestTopic, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 3:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_txn_offset_commit_request_partition(out, partitions_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_txn_offset_commit_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitRequest, int]:
    m = object.__new__(TxnOffsetCommitRequest)
    if version >= 3:
        m.transactional_id, pos = read_compact_string(buf, pos, limit)
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.transactional_id, pos = read_string(buf, pos, limit)
        m.group_id, pos = read_string(buf, pos, limit)
    m.producer_id, m.producer_epoch = _unpack_qh(buf, pos)
    pos += 10
    if version >= 3:
        (m.generation_id,) = _unpack_i(buf, pos)
        pos += 4
        m.member_id, pos = read_compact_string(buf, pos, limit)
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.generation_id = -1
        m.member_id = ""
        m.group_instance_id = None
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
    topics_: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        topics_item, pos = _read_txn_offset_commit_request_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_request(out: bytearray, m: TxnOffsetCommitRequest, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.transactional_id)
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.transactional_id)
        put_string(out, m.group_id)
    out += _pack_qh(m.producer_id, m.producer_epoch)
    if version >= 3:
        out += _pack_i(m.generation_id)
        put_compact_string(out, m.member_id)
        put_compact_nullable_string(out, m.group_instance_id)
    else:
        if m.generation_id != -1:
            raise not_in_version(m, "generation_id", version)
        if m.member_id != "":
            raise not_in_version(m, "member_id", version)
        if m.group_instance_id is not None:
            raise not_in_version(m, "group_instance_id", version)
    if version >= 3:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_txn_offset_commit_request_topic(out, topics_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_txn_offset_commit_response_partition(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitResponsePartition, int]:
    m = object.__new__(TxnOffsetCommitResponsePartition)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_response_partition(out: bytearray, m: TxnOffsetCommitResponsePartition, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_txn_offset_commit_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitResponseTopic, int]:
    m = object.__new__(TxnOffsetCommitResponseTopic)
    if version >= 3:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 3 else read_count(buf, pos, limit, 6)
    partitions_: list[TxnOffsetCommitResponsePartition] = []
    for _ in range(count):
        partitions_item, pos = _read_txn_offset_commit_response_partition(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_response_topic(out: bytearray, m: TxnOffsetCommitResponseTopic, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 3:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_txn_offset_commit_response_partition(out, partitions_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_txn_offset_commit_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TxnOffsetCommitResponse, int]:
    m = object.__new__(TxnOffsetCommitResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
    topics_: list[TxnOffsetCommitResponseTopic] = []
    for _ in range(count):
        topics_item, pos = _read_txn_offset_commit_response_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_txn_offset_commit_response(out: bytearray, m: TxnOffsetCommitResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 3:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_txn_offset_commit_response_topic(out, topics_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
