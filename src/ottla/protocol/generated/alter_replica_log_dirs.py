"""Moves replicas between a broker's log directories.

Made from schemas/alter_replica_log_dirs.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_numbers,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class AlterReplicaLogDirTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterReplicaLogDir(Structure):
    __slots__ = ("path", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs", "unknown_tags",)
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.dirs = [] if dirs is EMPTY_LIST else dirs
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(AlterReplicaLogDirsRequest, version)
        try:
            _write_alter_replica_log_dirs_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterReplicaLogDirsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterReplicaLogDirsRequest, int]:
        if not 1 <= version <= 2:
            raise undecodable(AlterReplicaLogDirsRequest, version)
        try:
            return _read_alter_replica_log_dirs_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterReplicaLogDirsRequest, version, fault) from fault


class AlterReplicaLogDirPartitionResult(Structure):
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


class AlterReplicaLogDirTopicResult(Structure):
    __slots__ = ("topic_name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AlterReplicaLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 34
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(AlterReplicaLogDirsResponse, version)
        try:
            _write_alter_replica_log_dirs_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterReplicaLogDirsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterReplicaLogDirsResponse, int]:
        if not 1 <= version <= 2:
            raise undecodable(AlterReplicaLogDirsResponse, version)
        try:
            return _read_alter_replica_log_dirs_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterReplicaLogDirsResponse, version, fault) from fault


def _read_alter_replica_log_dir_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDirTopic, int]:
    m = object.__new__(AlterReplicaLogDirTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
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


def _write_alter_replica_log_dir_topic(out: bytearray, m: AlterReplicaLogDirTopic, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
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


def _read_alter_replica_log_dir(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDir, int]:
    m = object.__new__(AlterReplicaLogDir)
    if version >= 2:
        m.path, pos = read_compact_string(buf, pos, limit)
    else:
        m.path, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    topics_: list[AlterReplicaLogDirTopic] = []
    for _ in range(count):
        topics_item, pos = _read_alter_replica_log_dir_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dir(out: bytearray, m: AlterReplicaLogDir, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.path)
    else:
        put_string(out, m.path)
    if version >= 2:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_alter_replica_log_dir_topic(out, topics_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_replica_log_dirs_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDirsRequest, int]:
    m = object.__new__(AlterReplicaLogDirsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    dirs_: list[AlterReplicaLogDir] = []
    for _ in range(count):
        dirs_item, pos = _read_alter_replica_log_dir(buf, pos, limit, version)
        dirs_.append(dirs_item)
    m.dirs = dirs_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dirs_request(out: bytearray, m: AlterReplicaLogDirsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.dirs))
    else:
        put_count(out, len(m.dirs))
    for dirs_item in m.dirs:
        _write_alter_replica_log_dir(out, dirs_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_replica_log_dir_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDirPartitionResult, int]:
    m = object.__new__(AlterReplicaLogDirPartitionResult)
    m.partition_index, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dir_partition_result(out: bytearray, m: AlterReplicaLogDirPartitionResult, version: int) -> None:
    out += _pack_ih(m.partition_index, m.error_code)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_replica_log_dir_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDirTopicResult, int]:
    m = object.__new__(AlterReplicaLogDirTopicResult)
    if version >= 2:
        m.topic_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic_name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 2 else read_count(buf, pos, limit, 6)
    partitions_: list[AlterReplicaLogDirPartitionResult] = []
    for _ in range(count):
        partitions_item, pos = _read_alter_replica_log_dir_partition_result(buf, pos, limit, version)
        partitions_.append(partitions_item)
    m.partitions = partitions_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dir_topic_result(out: bytearray, m: AlterReplicaLogDirTopicResult, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    for partitions_item in m.partitions:
        _write_alter_replica_log_dir_partition_result(out, partitions_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_alter_replica_log_dirs_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterReplicaLogDirsResponse, int]:
    m = object.__new__(AlterReplicaLogDirsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    results_: list[AlterReplicaLogDirTopicResult] = []
    for _ in range(count):
        results_item, pos = _read_alter_replica_log_dir_topic_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dirs_response(out: bytearray, m: AlterReplicaLogDirsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_alter_replica_log_dir_topic_result(out, results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
