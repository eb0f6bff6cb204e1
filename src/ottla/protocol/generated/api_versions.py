"""Which APIs and versions a broker serves; its answer never has a flexible header.

Made from schemas/api_versions.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_tagged, tag_of_other_size, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_tag,
    read_tag_count,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_hh = Struct(">hh").pack
_pack_hhh = Struct(">hhh").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_unpack_h = Struct(">h").unpack_from
_unpack_hh = Struct(">hh").unpack_from
_unpack_hhh = Struct(">hhh").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from

class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version", "unknown_tags",)
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(ApiVersionsRequest, version)
        try:
            _write_api_versions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ApiVersionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ApiVersionsRequest, int]:
        if not 0 <= version <= 4:
            raise undecodable(ApiVersionsRequest, version)
        try:
            return _read_api_versions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ApiVersionsRequest, version, fault) from fault


class ApiVersion(Structure):
    __slots__ = ("api_key", "min_version", "max_version", "unknown_tags",)

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = unknown_tags


class SupportedFeatureKey(Structure):
    __slots__ = ("name", "min_version", "max_version", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version
        self.unknown_tags = unknown_tags


class FinalizedFeatureKey(Structure):
    __slots__ = ("name", "max_version_level", "min_version_level", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level
        self.unknown_tags = unknown_tags


class ApiVersionsResponse(Message):
    __slots__ = ("error_code", "api_keys", "throttle_time_ms", "supported_features", "finalized_features_epoch", "finalized_features", "zk_migration_ready", "unknown_tags",)
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY_LIST,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = EMPTY_LIST,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = EMPTY_LIST,
        zk_migration_ready: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY_LIST else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY_LIST else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY_LIST else finalized_features
        self.zk_migration_ready = zk_migration_ready
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(ApiVersionsResponse, version)
        try:
            _write_api_versions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ApiVersionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ApiVersionsResponse, int]:
        if not 0 <= version <= 4:
            raise undecodable(ApiVersionsResponse, version)
        try:
            return _read_api_versions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ApiVersionsResponse, version, fault) from fault


_TAGS_API_VERSIONS_RESPONSE = frozenset((0, 1, 2, 3,))


def _read_api_versions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ApiVersionsRequest, int]:
    m = object.__new__(ApiVersionsRequest)
    if version >= 3:
        m.client_software_name, pos = read_compact_string(buf, pos, limit)
        m.client_software_version, pos = read_compact_string(buf, pos, limit)
    else:
        m.client_software_name = ""
        m.client_software_version = ""
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_api_versions_request(out: bytearray, m: ApiVersionsRequest, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.client_software_name)
        put_compact_string(out, m.client_software_version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_api_version(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ApiVersion, int]:
    m = object.__new__(ApiVersion)
    m.api_key, m.min_version, m.max_version = _unpack_hhh(buf, pos)
    pos += 6
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_api_version(out: bytearray, m: ApiVersion, version: int) -> None:
    out += _pack_hhh(m.api_key, m.min_version, m.max_version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_supported_feature_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[SupportedFeatureKey, int]:
    m = object.__new__(SupportedFeatureKey)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.min_version, m.max_version = _unpack_hh(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_supported_feature_key(out: bytearray, m: SupportedFeatureKey, version: int) -> None:
    put_compact_string(out, m.name)
    out += _pack_hh(m.min_version, m.max_version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_finalized_feature_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FinalizedFeatureKey, int]:
    m = object.__new__(FinalizedFeatureKey)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.max_version_level, m.min_version_level = _unpack_hh(buf, pos)
    pos += 4
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_finalized_feature_key(out: bytearray, m: FinalizedFeatureKey, version: int) -> None:
    put_compact_string(out, m.name)
    out += _pack_hh(m.max_version_level, m.min_version_level)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_api_versions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ApiVersionsResponse, int]:
    m = object.__new__(ApiVersionsResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 3 else read_count(buf, pos, limit, 6)
    api_keys_: list[ApiVersion] = []
    for _ in range(count):
        api_keys_item, pos = _read_api_version(buf, pos, limit, version)
        api_keys_.append(api_keys_item)
    m.api_keys = api_keys_
    if version >= 1:
        (m.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
    else:
        m.throttle_time_ms = 0
    m.supported_features = []
    m.finalized_features_epoch = -1
    m.finalized_features = []
    m.zk_migration_ready = False
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_api_versions_response_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_api_versions_response_tags(m: ApiVersionsResponse, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            count, pos = read_compact_count(buf, pos, end, 6)
            supported_features_: list[SupportedFeatureKey] = []
            for _ in range(count):
                supported_features_item, pos = _read_supported_feature_key(buf, pos, end, version)
                supported_features_.append(supported_features_item)
            m.supported_features = supported_features_
        elif tag == 1:
            (m.finalized_features_epoch,) = _unpack_q(buf, pos)
            pos += 8
        elif tag == 2:
            count, pos = read_compact_count(buf, pos, end, 6)
            finalized_features_: list[FinalizedFeatureKey] = []
            for _ in range(count):
                finalized_features_item, pos = _read_finalized_feature_key(buf, pos, end, version)
                finalized_features_.append(finalized_features_item)
            m.finalized_features = finalized_features_
        elif tag == 3:
            m.zk_migration_ready = buf[pos] != 0
            pos += 1
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_api_versions_response(out: bytearray, m: ApiVersionsResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.api_keys))
    else:
        put_count(out, len(m.api_keys))
    for api_keys_item in m.api_keys:
        _write_api_version(out, api_keys_item, version)
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 3:
        tags: list[tuple[int, bytearray]] = []
        if m.supported_features != []:
            tag = bytearray()
            put_compact_count(tag, len(m.supported_features))
            for supported_features_item in m.supported_features:
                _write_supported_feature_key(tag, supported_features_item, version)
            tags.append((0, tag))
        if m.finalized_features_epoch != -1:
            tag = bytearray()
            tag += _pack_q(m.finalized_features_epoch)
            tags.append((1, tag))
        if m.finalized_features != []:
            tag = bytearray()
            put_compact_count(tag, len(m.finalized_features))
            for finalized_features_item in m.finalized_features:
                _write_finalized_feature_key(tag, finalized_features_item, version)
            tags.append((2, tag))
        if m.zk_migration_ready:
            tag = bytearray()
            tag.append(1 if m.zk_migration_ready else 0)
            tags.append((3, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_API_VERSIONS_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
