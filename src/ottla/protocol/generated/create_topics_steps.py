"""Creates topics, or only checks that they could be created.

In steps; made from schemas/create_topics.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    _TAGS_CREATABLE_TOPIC_RESULT,
    _read_creatable_topic_config,
    _write_creatable_topic_configs,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_few,
    read_many_numbers,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_it = Struct(">i?").unpack_from


def _read_creatable_replica_assignment_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreatableReplicaAssignment, int]]:
    m = object.__new__(CreatableReplicaAssignment)
    (m.partition_index,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 5 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.broker_ids, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.broker_ids, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_creatable_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreatableTopic, int]]:
    m = object.__new__(CreatableTopic)
    if version >= 5:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    m.num_partitions, m.replication_factor = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 5 else read_count(buf, pos, limit, 6)
    allowance.take_array(count, 224)
    assignments_: list[CreatableReplicaAssignment] = []
    for _ in range(count):
        assignments_item, pos = yield from _read_creatable_replica_assignment_held(buf, pos, limit, version, allowance)
        assignments_.append(assignments_item)
        if allowance.due(pos):
            yield
    m.assignments = assignments_
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 5 else read_count(buf, pos, limit, 3)
    if count > FEW:
        allowance.take_array(count, 232)
        m.configs, pos = yield from read_structs(_read_creatable_topic_config, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 232
        m.configs, pos = read_few(_read_creatable_topic_config, buf, pos, limit, version, count, allowance, text=True)
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_create_topics_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[CreateTopicsRequest, int]]:
    m = object.__new__(CreateTopicsRequest)
    count, pos = read_compact_count(buf, pos, limit, 10) if version >= 5 else read_count(buf, pos, limit, 10)
    allowance.take_array(count, 304)
    topics_: list[CreatableTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_creatable_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    m.timeout_ms, m.validate_only = _unpack_it(buf, pos)
    pos += 5
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_creatable_topic_result_steps(out: bytearray, m: CreatableTopicResult, version: int, pace: Pace) -> Steps[None]:
    if version >= 5:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 7:
        put_uuid(out, m.topic_id)
    out += _pack_h(m.error_code)
    if version >= 5:
        put_compact_nullable_string(out, shortened(m.error_message))
        out += _pack_ih(m.num_partitions, m.replication_factor)
        if m.configs is None:
            out.append(0)
        else:
            put_compact_count(out, len(m.configs))
            if len(m.configs) > FEW:
                yield from write_structs(out, m.configs, _write_creatable_topic_configs, version, pace)
            else:
                for configs_item in m.configs:
                    _write_creatable_topic_configs(out, configs_item, version)
                pace.work -= len(m.configs)
    else:
        put_nullable_string(out, shortened(m.error_message))
    if version >= 5:
        tags: list[tuple[int, bytearray]] = []
        if m.topic_config_error_code != 0:
            tag = bytearray()
            tag += _pack_h(m.topic_config_error_code)
            tags.append((0, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_CREATABLE_TOPIC_RESULT)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_create_topics_response_steps(out: bytearray, m: CreateTopicsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 5:
        put_compact_count(out, len(m.topics))
    else:
        put_count(out, len(m.topics))
    for topics_item in m.topics:
        yield from _write_creatable_topic_result_steps(out, topics_item, version, pace)
        if pace.due():
            yield
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreateTopicsRequest: _read_create_topics_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    CreateTopicsResponse: _write_create_topics_response_steps,
}
