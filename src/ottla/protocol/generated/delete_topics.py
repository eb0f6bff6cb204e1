"""Deletes topics by name or by id.

Made from schemas/delete_topics.schema by `python -m ottla.protocol.compile`: change that file.
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
    ZERO_UUID,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    put_uuid,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    shortened,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_u = Struct(">16s").unpack_from

class DeleteTopicState(Structure):
    __slots__ = ("name", "topic_id", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tags = unknown_tags


class DeleteTopicsRequest(Message):
    __slots__ = ("topics", "topic_names", "timeout_ms", "unknown_tags",)
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = EMPTY_LIST,
        topic_names: list[str] = EMPTY_LIST,
        timeout_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topics = [] if topics is EMPTY_LIST else topics
        self.topic_names = [] if topic_names is EMPTY_LIST else topic_names
        self.timeout_ms = timeout_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 6:
            raise unencodable(DeleteTopicsRequest, version)
        try:
            _write_delete_topics_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteTopicsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteTopicsRequest, int]:
        if not 1 <= version <= 6:
            raise undecodable(DeleteTopicsRequest, version)
        try:
            return _read_delete_topics_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteTopicsRequest, version, fault) from fault


class DeletableTopicResult(Structure):
    __slots__ = ("name", "topic_id", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses", "unknown_tags",)
    API_KEY = 20
    MIN_VERSION = 1
    MAX_VERSION = 6
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY_LIST else responses
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 6:
            raise unencodable(DeleteTopicsResponse, version)
        try:
            _write_delete_topics_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteTopicsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteTopicsResponse, int]:
        if not 1 <= version <= 6:
            raise undecodable(DeleteTopicsResponse, version)
        try:
            return _read_delete_topics_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteTopicsResponse, version, fault) from fault


def _read_delete_topic_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteTopicState, int]:
    m = object.__new__(DeleteTopicState)
    m.name, pos = read_compact_nullable_string(buf, pos, limit)
    (m.topic_id,) = _unpack_u(buf, pos)
    pos += 16
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_delete_topic_state(out: bytearray, m: DeleteTopicState, version: int) -> None:
    put_compact_nullable_string(out, m.name)
    put_uuid(out, m.topic_id)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_delete_topics_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteTopicsRequest, int]:
    m = object.__new__(DeleteTopicsRequest)
    if version >= 6:
        count, pos = read_compact_count(buf, pos, limit, 18)
        topics_: list[DeleteTopicState] = []
        for _ in range(count):
            topics_item, pos = _read_delete_topic_state(buf, pos, limit, version)
            topics_.append(topics_item)
        m.topics = topics_
        m.topic_names = []
    else:
        m.topics = []
        count, pos = read_compact_count(buf, pos, limit, 1) if version >= 4 else read_count(buf, pos, limit, 1)
        read_topic_names = read_compact_string if version >= 4 else read_string
        topic_names_: list[str] = []
        for _ in range(count):
            topic_names_item, pos = read_topic_names(buf, pos, limit)
            topic_names_.append(topic_names_item)
        m.topic_names = topic_names_
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_topics_request(out: bytearray, m: DeleteTopicsRequest, version: int) -> None:
    if version >= 6:
        put_compact_count(out, len(m.topics))
        for topics_item in m.topics:
            _write_delete_topic_state(out, topics_item, version)
    else:
        if m.topics != []:
            raise not_in_version(m, "topics", version)
        if version >= 4:
            put_compact_count(out, len(m.topic_names))
        else:
            put_count(out, len(m.topic_names))
        put_topic_names = put_compact_string if version >= 4 else put_string
        for topic_names_item in m.topic_names:
            put_topic_names(out, topic_names_item)
    out += _pack_i(m.timeout_ms)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_deletable_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeletableTopicResult, int]:
    m = object.__new__(DeletableTopicResult)
    if version >= 6:
        m.name, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 4:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    if version >= 6:
        (m.topic_id,) = _unpack_u(buf, pos)
        pos += 16
    else:
        m.topic_id = ZERO_UUID
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 5:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message = None
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_deletable_topic_result(out: bytearray, m: DeletableTopicResult, version: int) -> None:
    if version >= 6:
        put_compact_nullable_string(out, m.name)
    elif version >= 4:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_compact_string(out, m.name)
    else:
        if m.name is None:
            raise not_nullable(m, "name", version)
        put_string(out, m.name)
    if version >= 6:
        put_uuid(out, m.topic_id)
    out += _pack_h(m.error_code)
    if version >= 5:
        put_compact_nullable_string(out, shortened(m.error_message))
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_topics_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteTopicsResponse, int]:
    m = object.__new__(DeleteTopicsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 4 else read_count(buf, pos, limit, 4)
    responses_: list[DeletableTopicResult] = []
    for _ in range(count):
        responses_item, pos = _read_deletable_topic_result(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_topics_response(out: bytearray, m: DeleteTopicsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        put_compact_count(out, len(m.responses))
    else:
        put_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_deletable_topic_result(out, responses_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
