"""Says that a member of a classic group is alive.

Made from schemas/heartbeat.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_nullable_string,
    put_compact_string,
    put_nullable_string,
    put_string,
    put_tags,
    read_compact_nullable_string,
    read_compact_string,
    read_nullable_string,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "unknown_tags",)
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(HeartbeatRequest, version)
        try:
            _write_heartbeat_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(HeartbeatRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[HeartbeatRequest, int]:
        if not 0 <= version <= 4:
            raise undecodable(HeartbeatRequest, version)
        try:
            return _read_heartbeat_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(HeartbeatRequest, version, fault) from fault


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_tags",)
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(HeartbeatResponse, version)
        try:
            _write_heartbeat_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(HeartbeatResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[HeartbeatResponse, int]:
        if not 0 <= version <= 4:
            raise undecodable(HeartbeatResponse, version)
        try:
            return _read_heartbeat_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(HeartbeatResponse, version, fault) from fault


def _read_heartbeat_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[HeartbeatRequest, int]:
    m = object.__new__(HeartbeatRequest)
    if version >= 4:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    (m.generation_id,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    if version >= 4:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 3:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.group_instance_id = None
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_heartbeat_request(out: bytearray, m: HeartbeatRequest, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    out += _pack_i(m.generation_id)
    if version >= 4:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 4:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 3:
        put_nullable_string(out, m.group_instance_id)
    else:
        if m.group_instance_id is not None:
            raise not_in_version(m, "group_instance_id", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_heartbeat_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[HeartbeatResponse, int]:
    m = object.__new__(HeartbeatResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_heartbeat_response(out: bytearray, m: HeartbeatResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
