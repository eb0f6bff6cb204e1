"""State and members of classic groups.

Made from schemas/describe_groups.schema by `python -m ottla.protocol.compile`: change that file.
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
    shortened,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations", "unknown_tags",)
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY_LIST,
        include_authorized_operations: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.groups = [] if groups is EMPTY_LIST else groups
        self.include_authorized_operations = include_authorized_operations
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(DescribeGroupsRequest, version)
        try:
            _write_describe_groups_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeGroupsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeGroupsRequest, int]:
        if not 0 <= version <= 6:
            raise undecodable(DescribeGroupsRequest, version)
        try:
            return _read_describe_groups_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeGroupsRequest, version, fault) from fault


class DescribedGroupMember(Structure):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: Buffer = b"",
        member_assignment: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment
        self.unknown_tags = unknown_tags


class DescribedGroup(Structure):
    __slots__ = ("error_code", "error_message", "group_id", "group_state", "protocol_type", "protocol_data", "members", "authorized_operations", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY_LIST,
        authorized_operations: int = -2147483648,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is EMPTY_LIST else members
        self.authorized_operations = authorized_operations
        self.unknown_tags = unknown_tags


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags",)
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 5
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(DescribeGroupsResponse, version)
        try:
            _write_describe_groups_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeGroupsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeGroupsResponse, int]:
        if not 0 <= version <= 6:
            raise undecodable(DescribeGroupsResponse, version)
        try:
            return _read_describe_groups_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeGroupsResponse, version, fault) from fault


def _read_describe_groups_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeGroupsRequest, int]:
    m = object.__new__(DescribeGroupsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1) if version >= 5 else read_count(buf, pos, limit, 1)
    read_groups = read_compact_string if version >= 5 else read_string
    groups_: list[str] = []
    for _ in range(count):
        groups_item, pos = read_groups(buf, pos, limit)
        groups_.append(groups_item)
    m.groups = groups_
    if version >= 3:
        m.include_authorized_operations = buf[pos] != 0
        pos += 1
    else:
        m.include_authorized_operations = False
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_groups_request(out: bytearray, m: DescribeGroupsRequest, version: int) -> None:
    if version >= 5:
        put_compact_count(out, len(m.groups))
    else:
        put_count(out, len(m.groups))
    put_groups = put_compact_string if version >= 5 else put_string
    for groups_item in m.groups:
        put_groups(out, groups_item)
    if version >= 3:
        out.append(1 if m.include_authorized_operations else 0)
    else:
        if m.include_authorized_operations:
            raise not_in_version(m, "include_authorized_operations", version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_described_group_member(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribedGroupMember, int]:
    m = object.__new__(DescribedGroupMember)
    if version >= 5:
        m.member_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.member_id, pos = read_string(buf, pos, limit)
    if version >= 5:
        m.group_instance_id, pos = read_compact_nullable_string(buf, pos, limit)
    elif version >= 4:
        m.group_instance_id, pos = read_nullable_string(buf, pos, limit)
    else:
        m.group_instance_id = None
    if version >= 5:
        m.client_id, pos = read_compact_string(buf, pos, limit)
        m.client_host, pos = read_compact_string(buf, pos, limit)
        m.member_metadata, pos = read_compact_bytes(buf, pos, limit)
        m.member_assignment, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.client_id, pos = read_string(buf, pos, limit)
        m.client_host, pos = read_string(buf, pos, limit)
        m.member_metadata, pos = read_bytes(buf, pos, limit)
        m.member_assignment, pos = read_bytes(buf, pos, limit)
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_described_group_member(out: bytearray, m: DescribedGroupMember, version: int) -> None:
    if version >= 5:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 5:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 4:
        put_nullable_string(out, m.group_instance_id)
    if version >= 5:
        put_compact_string(out, m.client_id)
        put_compact_string(out, m.client_host)
        put_compact_bytes(out, m.member_metadata)
        put_compact_bytes(out, m.member_assignment)
    else:
        put_string(out, m.client_id)
        put_string(out, m.client_host)
        put_bytes(out, m.member_metadata)
        put_bytes(out, m.member_assignment)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_described_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribedGroup, int]:
    m = object.__new__(DescribedGroup)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 6:
        m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.error_message = None
    if version >= 5:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        m.group_state, pos = read_compact_string(buf, pos, limit)
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
        m.protocol_data, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        m.group_state, pos = read_string(buf, pos, limit)
        m.protocol_type, pos = read_string(buf, pos, limit)
        m.protocol_data, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 7) if version >= 5 else read_count(buf, pos, limit, 7)
    members_: list[DescribedGroupMember] = []
    for _ in range(count):
        members_item, pos = _read_described_group_member(buf, pos, limit, version)
        members_.append(members_item)
    m.members = members_
    if version >= 3:
        (m.authorized_operations,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.authorized_operations = -2147483648
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_described_group(out: bytearray, m: DescribedGroup, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 6:
        put_compact_nullable_string(out, shortened(m.error_message))
    else:
        if m.error_message is not None:
            raise not_in_version(m, "error_message", version)
    if version >= 5:
        put_compact_string(out, m.group_id)
        put_compact_string(out, m.group_state)
        put_compact_string(out, m.protocol_type)
        put_compact_string(out, m.protocol_data)
    else:
        put_string(out, m.group_id)
        put_string(out, m.group_state)
        put_string(out, m.protocol_type)
        put_string(out, m.protocol_data)
    if version >= 5:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    for members_item in m.members:
        _write_described_group_member(out, members_item, version)
    if version >= 3:
        out += _pack_i(m.authorized_operations)
    else:
        if m.authorized_operations != -2147483648:
            raise not_in_version(m, "authorized_operations", version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_groups_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeGroupsResponse, int]:
    m = object.__new__(DescribeGroupsResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    count, pos = read_compact_count(buf, pos, limit, 12) if version >= 5 else read_count(buf, pos, limit, 12)
    groups_: list[DescribedGroup] = []
    for _ in range(count):
        groups_item, pos = _read_described_group(buf, pos, limit, version)
        groups_.append(groups_item)
    m.groups = groups_
    if version >= 5:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_groups_response(out: bytearray, m: DescribeGroupsResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 5:
        put_compact_count(out, len(m.groups))
    else:
        put_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_described_group(out, groups_item, version)
    if version >= 5:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
