"""Enters a classic group, and waits until the generation is complete.

Made from schemas/join_group.schema by `python -m ottla.protocol.compile`: change that file.
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

_pack_hi = Struct(">hi").pack
_pack_i = Struct(">i").pack
_unpack_hi = Struct(">hi").unpack_from
_unpack_i = Struct(">i").unpack_from

class JoinGroupRequestProtocol(Structure):
    __slots__ = ("name", "metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        metadata: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.metadata = metadata
        self.unknown_tags = unknown_tags


class JoinGroupRequest(Message):
    __slots__ = ("group_id", "session_timeout_ms", "rebalance_timeout_ms", "member_id", "group_instance_id", "protocol_type", "protocols", "reason", "unknown_tags",)
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY_LIST,
        reason: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY_LIST else protocols
        self.reason = reason
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 9:
            raise unencodable(JoinGroupRequest, version)
        try:
            _write_join_group_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(JoinGroupRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[JoinGroupRequest, int]:
        if not 0 <= version <= 9:
            raise undecodable(JoinGroupRequest, version)
        try:
            return _read_join_group_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(JoinGroupRequest, version, fault) from fault


class JoinGroupResponseMember(Structure):
    __slots__ = ("member_id", "group_instance_id", "metadata", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata
        self.unknown_tags = unknown_tags


class JoinGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment", "member_id", "members", "unknown_tags",)
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_FROM = 6
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is EMPTY_LIST else members
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 9:
            raise unencodable(JoinGroupResponse, version)
        try:
            _write_join_group_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(JoinGroupResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[JoinGroupResponse, int]:
        if not 0 <= version <= 9:
            raise undecodable(JoinGroupResponse, version)
        try:
            return _read_join_group_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(JoinGroupResponse, version, fault) from fault


def _read_join_group_request_protocol(buf: Buffer, pos: int, limit: int, version: int) -> tuple[JoinGroupRequestProtocol, int]:
    m = object.__new__(JoinGroupRequestProtocol)
    if version >= 6:
        m.name, pos = read_compact_string(buf, pos, limit)
        m.metadata, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
        m.metadata, pos = read_bytes(buf, pos, limit)
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_join_group_request_protocol(out: bytearray, m: JoinGroupRequestProtocol, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.name)
        put_compact_bytes(out, m.metadata)
    else:
        put_string(out, m.name)
        put_bytes(out, m.metadata)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_join_group_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[JoinGroupRequest, int]:
    m = object.__new__(JoinGroupRequest)
    if version >= 6:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    (m.session_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 1:
        (m.rebalance_timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.rebalance_timeout_ms = -1
    if version >= 6:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    if version >= 6:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 5:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.group_instance_id = None
    if version >= 6:
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
    else:
        m.protocol_type, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 6 else read_count(buf, pos, limit, 3)
    protocols_: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        protocols_item, pos = _read_join_group_request_protocol(buf, pos, limit, version)
        protocols_.append(protocols_item)
    m.protocols = protocols_
    if version >= 8:
        m.reason, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.reason = None
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_join_group_request(out: bytearray, m: JoinGroupRequest, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    out += _pack_i(m.session_timeout_ms)
    if version >= 1:
        out += _pack_i(m.rebalance_timeout_ms)
    if version >= 6:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 6:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 5:
        put_nullable_string(out, m.group_instance_id)
    else:
        if m.group_instance_id is not None:
            raise not_in_version(m, "group_instance_id", version)
    if version >= 6:
        put_compact_string(out, m.protocol_type)
    else:
        put_string(out, m.protocol_type)
    if version >= 6:
        put_compact_count(out, len(m.protocols))
    else:
        put_count(out, len(m.protocols))
    for protocols_item in m.protocols:
        _write_join_group_request_protocol(out, protocols_item, version)
    if version >= 8:
        put_compact_nullable_string(out, m.reason)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_join_group_response_member(buf: Buffer, pos: int, limit: int, version: int) -> tuple[JoinGroupResponseMember, int]:
    m = object.__new__(JoinGroupResponseMember)
    if version >= 6:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    if version >= 6:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 5:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.group_instance_id = None
    if version >= 6:
        m.metadata, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.metadata, pos = read_bytes(buf, pos, limit)
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_join_group_response_member(out: bytearray, m: JoinGroupResponseMember, version: int) -> None:
    if version >= 6:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 6:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 5:
        put_nullable_string(out, m.group_instance_id)
    if version >= 6:
        put_compact_bytes(out, m.metadata)
    else:
        put_bytes(out, m.metadata)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_join_group_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[JoinGroupResponse, int]:
    m = object.__new__(JoinGroupResponse)
    if version >= 2:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    m.error_code, m.generation_id = _unpack_hi(buf, pos)
    pos += 6
    if version >= 7:
        m.protocol_type, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.protocol_type = None
    if version >= 7:
        m.protocol_name, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 6:
        m.protocol_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.protocol_name, pos = read_string(buf, pos, limit)
    if version >= 6:
        m.leader, pos = read_compact_string(buf, pos, limit)
    else:
        m.leader, pos = read_string(buf, pos, limit)
    if version >= 9:
        m.skip_assignment = buf[pos] != 0
        pos += 1
    else:
        m.skip_assignment = False
    if version >= 6:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 6 else read_count(buf, pos, limit, 4)
    members_: list[JoinGroupResponseMember] = []
    for _ in range(count):
        members_item, pos = _read_join_group_response_member(buf, pos, limit, version)
        members_.append(members_item)
    m.members = members_
    if version >= 6:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_join_group_response(out: bytearray, m: JoinGroupResponse, version: int) -> None:
    if version >= 2:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_hi(m.error_code, m.generation_id)
    if version >= 7:
        put_compact_nullable_string(out, m.protocol_type)
    if version >= 7:
        put_compact_nullable_string(out, m.protocol_name)
    elif version >= 6:
        if m.protocol_name is None:
            raise not_nullable(m, "protocol_name", version)
        put_compact_string(out, m.protocol_name)
    else:
        if m.protocol_name is None:
            raise not_nullable(m, "protocol_name", version)
        put_string(out, m.protocol_name)
    if version >= 6:
        put_compact_string(out, m.leader)
    else:
        put_string(out, m.leader)
    if version >= 9:
        out.append(1 if m.skip_assignment else 0)
    else:
        if m.skip_assignment:
            raise not_in_version(m, "skip_assignment", version)
    if version >= 6:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 6:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    for members_item in m.members:
        _write_join_group_response_member(out, members_item, version)
    if version >= 6:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
