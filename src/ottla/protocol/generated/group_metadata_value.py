"""A generation of a classic group, as the offsets topic keeps it.

Made from schemas/group_metadata_value.schema by `python -m ottla.protocol.compile`: change that file.
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

_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from

class MemberMetadata(Structure):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "rebalance_timeout", "session_timeout", "subscription", "assignment", "unknown_tags",)

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: Buffer = b"",
        assignment: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment
        self.unknown_tags = unknown_tags


class GroupMetadataValue(Message):
    __slots__ = ("protocol_type", "generation", "protocol", "leader", "current_state_timestamp", "members", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 4
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is EMPTY_LIST else members
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(GroupMetadataValue, version)
        try:
            _write_group_metadata_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(GroupMetadataValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[GroupMetadataValue, int]:
        if not 0 <= version <= 4:
            raise undecodable(GroupMetadataValue, version)
        try:
            return _read_group_metadata_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(GroupMetadataValue, version, fault) from fault


def _read_member_metadata(buf: Buffer, pos: int, limit: int, version: int) -> tuple[MemberMetadata, int]:
    m = object.__new__(MemberMetadata)
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
        m.client_id, pos = read_compact_string(buf, pos, limit)
        m.client_host, pos = read_compact_string(buf, pos, limit)
    else:
        m.client_id, pos = read_string(buf, pos, limit)
        m.client_host, pos = read_string(buf, pos, limit)
    if version >= 1:
        (m.rebalance_timeout,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.rebalance_timeout = -1
    (m.session_timeout,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.subscription, pos = read_compact_bytes(buf, pos, limit)
        m.assignment, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.subscription, pos = read_bytes(buf, pos, limit)
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


def _write_member_metadata(out: bytearray, m: MemberMetadata, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.member_id)
    else:
        put_string(out, m.member_id)
    if version >= 4:
        put_compact_nullable_string(out, m.group_instance_id)
    elif version >= 3:
        put_nullable_string(out, m.group_instance_id)
    if version >= 4:
        put_compact_string(out, m.client_id)
        put_compact_string(out, m.client_host)
    else:
        put_string(out, m.client_id)
        put_string(out, m.client_host)
    if version >= 1:
        out += _pack_i(m.rebalance_timeout)
    out += _pack_i(m.session_timeout)
    if version >= 4:
        put_compact_bytes(out, m.subscription)
        put_compact_bytes(out, m.assignment)
    else:
        put_bytes(out, m.subscription)
        put_bytes(out, m.assignment)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_group_metadata_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[GroupMetadataValue, int]:
    m = object.__new__(GroupMetadataValue)
    if version >= 4:
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
    else:
        m.protocol_type, pos = read_string(buf, pos, limit)
    (m.generation,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        m.protocol, pos = read_compact_nullable_string(buf, pos, limit)
        m.leader, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.protocol, pos = read_nullable_string(buf, pos, limit)
        m.leader, pos = read_nullable_string(buf, pos, limit)
    if version >= 2:
        (m.current_state_timestamp,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.current_state_timestamp = -1
    count, pos = read_compact_count(buf, pos, limit, 15) if version >= 4 else read_count(buf, pos, limit, 15)
    members_: list[MemberMetadata] = []
    for _ in range(count):
        members_item, pos = _read_member_metadata(buf, pos, limit, version)
        members_.append(members_item)
    m.members = members_
    if version >= 4:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_group_metadata_value(out: bytearray, m: GroupMetadataValue, version: int) -> None:
    if version >= 4:
        put_compact_string(out, m.protocol_type)
    else:
        put_string(out, m.protocol_type)
    out += _pack_i(m.generation)
    if version >= 4:
        put_compact_nullable_string(out, m.protocol)
        put_compact_nullable_string(out, m.leader)
    else:
        put_nullable_string(out, m.protocol)
        put_nullable_string(out, m.leader)
    if version >= 2:
        out += _pack_q(m.current_state_timestamp)
    if version >= 4:
        put_compact_count(out, len(m.members))
    else:
        put_count(out, len(m.members))
    for members_item in m.members:
        _write_member_metadata(out, members_item, version)
    if version >= 4:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
