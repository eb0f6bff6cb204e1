"""Forgets where share groups start in topics.

Made from schemas/delete_share_group_offsets.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
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
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
    uuid_bytes,
)

_pack_ih = Struct(">ih").pack
_pack_uh = Struct(">16sh").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_uh = Struct(">16sh").unpack_from

class DeleteShareGroupOffsetsRequestTopic(Structure):
    __slots__ = ("topic_name", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tags = unknown_tags


class DeleteShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics", "unknown_tags",)
    API_KEY = 92
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DeleteShareGroupOffsetsRequest, version)
        try:
            _write_delete_share_group_offsets_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteShareGroupOffsetsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteShareGroupOffsetsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(DeleteShareGroupOffsetsRequest, version)
        try:
            return _read_delete_share_group_offsets_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteShareGroupOffsetsRequest, version, fault) from fault


class DeleteShareGroupOffsetsResponseTopic(Structure):
    __slots__ = ("topic_name", "topic_id", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class DeleteShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses", "unknown_tags",)
    API_KEY = 92
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY_LIST else responses
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DeleteShareGroupOffsetsResponse, version)
        try:
            _write_delete_share_group_offsets_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteShareGroupOffsetsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteShareGroupOffsetsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(DeleteShareGroupOffsetsResponse, version)
        try:
            return _read_delete_share_group_offsets_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteShareGroupOffsetsResponse, version, fault) from fault


def _read_delete_share_group_offsets_request_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteShareGroupOffsetsRequestTopic, int]:
    m = object.__new__(DeleteShareGroupOffsetsRequestTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_delete_share_group_offsets_request_topic(out: bytearray, m: DeleteShareGroupOffsetsRequestTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_delete_share_group_offsets_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    m = object.__new__(DeleteShareGroupOffsetsRequest)
    m.group_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 2)
    topics_: list[DeleteShareGroupOffsetsRequestTopic] = []
    for _ in range(count):
        topics_item, pos = _read_delete_share_group_offsets_request_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_delete_share_group_offsets_request(out: bytearray, m: DeleteShareGroupOffsetsRequest, version: int) -> None:
    put_compact_string(out, m.group_id)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_delete_share_group_offsets_request_topic(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_delete_share_group_offsets_response_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteShareGroupOffsetsResponseTopic, int]:
    m = object.__new__(DeleteShareGroupOffsetsResponseTopic)
    m.topic_name, pos = read_compact_string(buf, pos, limit)
    m.topic_id, m.error_code = _unpack_uh(buf, pos)
    pos += 18
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_delete_share_group_offsets_response_topic(out: bytearray, m: DeleteShareGroupOffsetsResponseTopic, version: int) -> None:
    put_compact_string(out, m.topic_name)
    out += _pack_uh(uuid_bytes(m.topic_id), m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_delete_share_group_offsets_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteShareGroupOffsetsResponse, int]:
    m = object.__new__(DeleteShareGroupOffsetsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 21)
    responses_: list[DeleteShareGroupOffsetsResponseTopic] = []
    for _ in range(count):
        responses_item, pos = _read_delete_share_group_offsets_response_topic(buf, pos, limit, version)
        responses_.append(responses_item)
    m.responses = responses_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_delete_share_group_offsets_response(out: bytearray, m: DeleteShareGroupOffsetsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.responses))
    for responses_item in m.responses:
        _write_delete_share_group_offsets_response_topic(out, responses_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
