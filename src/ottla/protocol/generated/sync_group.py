"""Hands out the assignment that a classic group's leader computed.

Made from schemas/sync_group.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_bytes,
    put_compact_bytes,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_count,
    put_nullable_string,
    put_string,
    put_tags,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_nullable_string,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class SyncGroupRequestAssignment(Structure):
    __slots__ = ("member_id", "assignment", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment
        self.unknown_tags = unknown_tags


class SyncGroupRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "protocol_type", "protocol_name", "assignments", "unknown_tags",)
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY_LIST else assignments
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(SyncGroupRequest, version)
        try:
            _write_sync_group_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SyncGroupRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SyncGroupRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(SyncGroupRequest, version)
        try:
            return _read_sync_group_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SyncGroupRequest, version, fault) from fault


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment", "unknown_tags",)
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(SyncGroupResponse, version)
        try:
            _write_sync_group_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(SyncGroupResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[SyncGroupResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(SyncGroupResponse, version)
        try:
            return _read_sync_group_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(SyncGroupResponse, version, fault) from fault


def _read_sync_group_request_assignment(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SyncGroupRequestAssignment, int]:
    m = object.__new__(SyncGroupRequestAssignment)
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        m.assignment, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        m.assignment, pos = read_bytes(buf, pos, limit)
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_sync_group_request_assignment(out: bytearray, m: SyncGroupRequestAssignment, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.member_id)
        put_compact_bytes(out, m.assignment)
    else:
        put_string(out, m.member_id)
        put_bytes(out, m.assignment)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_sync_group_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SyncGroupRequest, int]:
    m = object.__new__(SyncGroupRequest)
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
    if version >= 5:
        m.protocol_type, pos = read_compact_nullable_string(buf, pos, limit)
        m.protocol_name, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.protocol_type = None
        m.protocol_name = None
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
    assignments_: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        assignments_item, pos = _read_sync_group_request_assignment(buf, pos, limit, version)
        assignments_.append(assignments_item)
    m.assignments = assignments_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_sync_group_request(out: bytearray, m: SyncGroupRequest, version: int) -> None:
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
    if version >= 5:
        put_compact_nullable_string(out, m.protocol_type)
        put_compact_nullable_string(out, m.protocol_name)
    if version >= 4:
        put_compact_count(out, len(m.assignments))
    else:
        put_count(out, len(m.assignments))
    for assignments_item in m.assignments:
        _write_sync_group_request_assignment(out, assignments_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_sync_group_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SyncGroupResponse, int]:
    m = object.__new__(SyncGroupResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 5:
        m.protocol_type, pos = read_compact_nullable_string(buf, pos, limit)
        m.protocol_name, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.protocol_type = None
        m.protocol_name = None
    if version >= 4:
        m.assignment, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.assignment, pos = read_bytes(buf, pos, limit)
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_sync_group_response(out: bytearray, m: SyncGroupResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 5:
        put_compact_nullable_string(out, m.protocol_type)
        put_compact_nullable_string(out, m.protocol_name)
    if version >= 4:
        put_compact_bytes(out, m.assignment)
    else:
        put_bytes(out, m.assignment)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
