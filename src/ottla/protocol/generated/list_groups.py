"""The groups that a broker coordinates.

Made from schemas/list_groups.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter", "unknown_tags",)
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY_LIST,
        types_filter: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.states_filter = [] if states_filter is EMPTY_LIST else states_filter
        self.types_filter = [] if types_filter is EMPTY_LIST else types_filter
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(ListGroupsRequest, version)
        try:
            _write_list_groups_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListGroupsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListGroupsRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(ListGroupsRequest, version)
        try:
            return _read_list_groups_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListGroupsRequest, version, fault) from fault


class ListedGroup(Structure):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type
        self.unknown_tags = unknown_tags


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups", "unknown_tags",)
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY_LIST else groups
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(ListGroupsResponse, version)
        try:
            _write_list_groups_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListGroupsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListGroupsResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(ListGroupsResponse, version)
        try:
            return _read_list_groups_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListGroupsResponse, version, fault) from fault


def _read_list_groups_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListGroupsRequest, int]:
    m = object.__new__(ListGroupsRequest)
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 1)
        read_states_filter = read_compact_string
        states_filter_: list[str] = []
        for _ in range(count):
            states_filter_item, pos = read_states_filter(buf, pos, limit)
            states_filter_.append(states_filter_item)
        m.states_filter = states_filter_
    else:
        m.states_filter = []
    if version >= 5:
        count, pos = read_compact_count(buf, pos, limit, 1)
        read_types_filter = read_compact_string
        types_filter_: list[str] = []
        for _ in range(count):
            types_filter_item, pos = read_types_filter(buf, pos, limit)
            types_filter_.append(types_filter_item)
        m.types_filter = types_filter_
    else:
        m.types_filter = []
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_groups_request(out: bytearray, m: ListGroupsRequest, version: int) -> None:
    if version >= 4:
        put_compact_count(out, len(m.states_filter))
        put_states_filter = put_compact_string
        for states_filter_item in m.states_filter:
            put_states_filter(out, states_filter_item)
    else:
        if m.states_filter != []:
            raise not_in_version(m, "states_filter", version)
    if version >= 5:
        put_compact_count(out, len(m.types_filter))
        put_types_filter = put_compact_string
        for types_filter_item in m.types_filter:
            put_types_filter(out, types_filter_item)
    else:
        if m.types_filter != []:
            raise not_in_version(m, "types_filter", version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_listed_group(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListedGroup, int]:
    m = object.__new__(ListedGroup)
    if version >= 3:
        m.group_id, pos = read_compact_string(buf, pos, limit)
        m.protocol_type, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
        m.protocol_type, pos = read_string(buf, pos, limit)
    if version >= 4:
        m.group_state, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_state = ""
    if version >= 5:
        m.group_type, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_type = ""
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_listed_group(out: bytearray, m: ListedGroup, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.group_id)
        put_compact_string(out, m.protocol_type)
    else:
        put_string(out, m.group_id)
        put_string(out, m.protocol_type)
    if version >= 4:
        put_compact_string(out, m.group_state)
    if version >= 5:
        put_compact_string(out, m.group_type)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_list_groups_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListGroupsResponse, int]:
    m = object.__new__(ListGroupsResponse)
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
    groups_: list[ListedGroup] = []
    for _ in range(count):
        groups_item, pos = _read_listed_group(buf, pos, limit, version)
        groups_.append(groups_item)
    m.groups = groups_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_list_groups_response(out: bytearray, m: ListGroupsResponse, version: int) -> None:
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.groups))
    else:
        put_count(out, len(m.groups))
    for groups_item in m.groups:
        _write_listed_group(out, groups_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
