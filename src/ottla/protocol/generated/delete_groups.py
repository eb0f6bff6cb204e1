"""Deletes groups that have no members.

Made from schemas/delete_groups.schema by `python -m ottla.protocol.compile`: change that file.
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

class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names", "unknown_tags",)
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.groups_names = [] if groups_names is EMPTY_LIST else groups_names
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DeleteGroupsRequest, version)
        try:
            _write_delete_groups_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteGroupsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteGroupsRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(DeleteGroupsRequest, version)
        try:
            return _read_delete_groups_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteGroupsRequest, version, fault) from fault


class DeletableGroupResult(Structure):
    __slots__ = ("group_id", "error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code
        self.unknown_tags = unknown_tags


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(DeleteGroupsResponse, version)
        try:
            _write_delete_groups_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DeleteGroupsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DeleteGroupsResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(DeleteGroupsResponse, version)
        try:
            return _read_delete_groups_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DeleteGroupsResponse, version, fault) from fault


def _read_delete_groups_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteGroupsRequest, int]:
    m = object.__new__(DeleteGroupsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1) if version >= 2 else read_count(buf, pos, limit, 1)
    read_groups_names = read_compact_string if version >= 2 else read_string
    groups_names_: list[str] = []
    for _ in range(count):
        groups_names_item, pos = read_groups_names(buf, pos, limit)
        groups_names_.append(groups_names_item)
    m.groups_names = groups_names_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_groups_request(out: bytearray, m: DeleteGroupsRequest, version: int) -> None:
    if version >= 2:
        put_compact_count(out, len(m.groups_names))
    else:
        put_count(out, len(m.groups_names))
    put_groups_names = put_compact_string if version >= 2 else put_string
    for groups_names_item in m.groups_names:
        put_groups_names(out, groups_names_item)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_deletable_group_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeletableGroupResult, int]:
    m = object.__new__(DeletableGroupResult)
    if version >= 2:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_deletable_group_result(out: bytearray, m: DeletableGroupResult, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    out += _pack_h(m.error_code)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_delete_groups_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DeleteGroupsResponse, int]:
    m = object.__new__(DeleteGroupsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 2 else read_count(buf, pos, limit, 4)
    results_: list[DeletableGroupResult] = []
    for _ in range(count):
        results_item, pos = _read_deletable_group_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_delete_groups_response(out: bytearray, m: DeleteGroupsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        put_compact_count(out, len(m.results))
    else:
        put_count(out, len(m.results))
    for results_item in m.results:
        _write_deletable_group_result(out, results_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
