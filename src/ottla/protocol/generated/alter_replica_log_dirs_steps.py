"""Moves replicas between a broker's log directories.

In steps; made from schemas/alter_replica_log_dirs.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    _write_alter_replica_log_dir_partition_result,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
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

_pack_i = Struct(">i").pack


def _read_alter_replica_log_dir_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterReplicaLogDirTopic, int]]:
    m = object.__new__(AlterReplicaLogDirTopic)
    if version >= 2:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_alter_replica_log_dir_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterReplicaLogDir, int]]:
    m = object.__new__(AlterReplicaLogDir)
    if version >= 2:
        m.path, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.path)
    else:
        m.path, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.path)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[AlterReplicaLogDirTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_alter_replica_log_dir_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_alter_replica_log_dirs_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AlterReplicaLogDirsRequest, int]]:
    m = object.__new__(AlterReplicaLogDirsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    dirs_: list[AlterReplicaLogDir] = []
    for _ in range(count):
        dirs_item, pos = yield from _read_alter_replica_log_dir_held(buf, pos, limit, version, allowance)
        dirs_.append(dirs_item)
        if allowance.due(pos):
            yield
    m.dirs = dirs_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_alter_replica_log_dir_topic_result_steps(out: bytearray, m: AlterReplicaLogDirTopicResult, version: int, pace: Pace) -> Steps[None]:
    if version >= 2:
        put_compact_string(out, m.topic_name)
    else:
        put_string(out, m.topic_name)
    if version >= 2:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    if len(m.partitions) > FEW:
        yield from write_structs(out, m.partitions, _write_alter_replica_log_dir_partition_result, version, pace)
    else:
        for partitions_item in m.partitions:
            _write_alter_replica_log_dir_partition_result(out, partitions_item, version)
        pace.work -= len(m.partitions)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_alter_replica_log_dirs_response_steps(out: bytearray, m: AlterReplicaLogDirsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        yield from _write_alter_replica_log_dir_topic_result_steps(out, results_item, version, pace)
        if pace.due():
            yield
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterReplicaLogDirsRequest: _read_alter_replica_log_dirs_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AlterReplicaLogDirsResponse: _write_alter_replica_log_dirs_response_steps,
}
