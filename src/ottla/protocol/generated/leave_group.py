"""Takes members out of a classic group.

Made from schemas/leave_group.schema by `python -m ottla.protocol.compile`: change that file.
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

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class MemberIdentity(Structure):
    __slots__ = ("member_id", "group_instance_id", "reason", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason
        self.unknown_tags = unknown_tags


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members", "unknown_tags",)
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY_LIST else members
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(LeaveGroupRequest, version)
        try:
            _write_leave_group_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(LeaveGroupRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[LeaveGroupRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(LeaveGroupRequest, version)
        try:
            return _read_leave_group_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(LeaveGroupRequest, version, fault) from fault


class MemberResponse(Structure):
    __slots__ = ("member_id", "group_instance_id", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members", "unknown_tags",)
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY_LIST else members
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(LeaveGroupResponse, version)
        try:
            _write_leave_group_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(LeaveGroupResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[LeaveGroupResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(LeaveGroupResponse, version)
        try:
            return _read_leave_group_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(LeaveGroupResponse, version, fault) from fault


def _read_member_identity(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MemberIdentity, int]:
    m = object.__new__(MemberIdentity)
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    if version >= 5:
        m.reason, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.reason = None
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_member_identity(out: bytearray, m: MemberIdentity, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.member_id)
        put_compact_nullable_string(out, m.group_instance_id)
    else:
        put_string(out, m.member_id)
        put_nullable_string(out, m.group_instance_id)
    if version >= 5:
        put_compact_nullable_string(out, m.reason)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leave_group_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaveGroupRequest, int]:
    m = object.__new__(LeaveGroupRequest)
    if version >= 4:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    if version >= 3:
        m.member_id = ""
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 4 else read_count(buf, pos, limit, 3)
        members_: list[MemberIdentity] = []
        for _ in range(count):
            members_item, pos = _read_member_identity(buf, pos, limit, version)
            members_.append(members_item)
        m.members = members_
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        m.members = []
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leave_group_request(out: bytearray, m: LeaveGroupRequest, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    if version >= 3:
        if m.member_id != "":
            raise not_in_version(m, "member_id", version)
        if version >= 4:
            put_compact_count(out, len(m.members))
        else:
            put_count(out, len(m.members))
        for members_item in m.members:
            _write_member_identity(out, members_item, version)
    else:
        put_string(out, m.member_id)
        if m.members != []:
            raise not_in_version(m, "members", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_member_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MemberResponse, int]:
    m = object.__new__(MemberResponse)
    if version >= 4:
        m.member_id, pos = read_compact_string(buf, pos, limit)
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
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


def _write_member_response(out: bytearray, m: MemberResponse, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.member_id)
        put_compact_nullable_string(out, m.group_instance_id)
    else:
        put_string(out, m.member_id)
        put_nullable_string(out, m.group_instance_id)
    out += _pack_h(m.error_code)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_leave_group_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[LeaveGroupResponse, int]:
    m = object.__new__(LeaveGroupResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 3:
        count, pos = read_compact_count(buf, pos, limit, 5) if version >= 4 else read_count(buf, pos, limit, 5)
        members_: list[MemberResponse] = []
        for _ in range(count):
            members_item, pos = _read_member_response(buf, pos, limit, version)
            members_.append(members_item)
        m.members = members_
    else:
        m.members = []
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_leave_group_response(out: bytearray, m: LeaveGroupResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 3:
        if version >= 4:
            put_compact_count(out, len(m.members))
        else:
            put_count(out, len(m.members))
        for members_item in m.members:
            _write_member_response(out, members_item, version)
    else:
        if m.members != []:
            raise not_in_version(m, "members", version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
