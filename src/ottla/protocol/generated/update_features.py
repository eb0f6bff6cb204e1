"""Raises or lowers the cluster's feature levels.

Made from schemas/update_features.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_unpack_b = Struct(">b").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class FeatureUpdateKey(Structure):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type", "unknown_tags",)

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type
        self.unknown_tags = unknown_tags


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only", "unknown_tags",)
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY_LIST,
        validate_only: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY_LIST else feature_updates
        self.validate_only = validate_only
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(UpdateFeaturesRequest, version)
        try:
            _write_update_features_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UpdateFeaturesRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UpdateFeaturesRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(UpdateFeaturesRequest, version)
        try:
            return _read_update_features_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UpdateFeaturesRequest, version, fault) from fault


class UpdatableFeatureResult(Structure):
    __slots__ = ("feature", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class UpdateFeaturesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results", "unknown_tags",)
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(UpdateFeaturesResponse, version)
        try:
            _write_update_features_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(UpdateFeaturesResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[UpdateFeaturesResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(UpdateFeaturesResponse, version)
        try:
            return _read_update_features_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(UpdateFeaturesResponse, version, fault) from fault


def _read_feature_update_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[FeatureUpdateKey, int]:
    m = object.__new__(FeatureUpdateKey)
    m.feature, pos = read_compact_string(buf, pos, limit)
    (m.max_version_level,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 1:
        m.allow_downgrade = False
        (m.upgrade_type,) = _unpack_b(buf, pos)
        pos += 1
    else:
        m.allow_downgrade = buf[pos] != 0
        pos += 1
        m.upgrade_type = 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_feature_update_key(out: bytearray, m: FeatureUpdateKey, version: int) -> None:
    put_compact_string(out, m.feature)
    out += _pack_h(m.max_version_level)
    if version >= 1:
        if m.allow_downgrade:
            raise not_in_version(m, "allow_downgrade", version)
        out += _pack_b(m.upgrade_type)
    else:
        out.append(1 if m.allow_downgrade else 0)
        if m.upgrade_type != 1:
            raise not_in_version(m, "upgrade_type", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_update_features_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateFeaturesRequest, int]:
    m = object.__new__(UpdateFeaturesRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5)
    feature_updates_: list[FeatureUpdateKey] = []
    for _ in range(count):
        feature_updates_item, pos = _read_feature_update_key(buf, pos, limit, version)
        feature_updates_.append(feature_updates_item)
    m.feature_updates = feature_updates_
    if version >= 1:
        m.validate_only = buf[pos] != 0
        pos += 1
    else:
        m.validate_only = False
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_update_features_request(out: bytearray, m: UpdateFeaturesRequest, version: int) -> None:
    out += _pack_i(m.timeout_ms)
    put_compact_count(out, len(m.feature_updates))
    for feature_updates_item in m.feature_updates:
        _write_feature_update_key(out, feature_updates_item, version)
    if version >= 1:
        out.append(1 if m.validate_only else 0)
    else:
        if m.validate_only:
            raise not_in_version(m, "validate_only", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_updatable_feature_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdatableFeatureResult, int]:
    m = object.__new__(UpdatableFeatureResult)
    m.feature, pos = read_compact_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_updatable_feature_result(out: bytearray, m: UpdatableFeatureResult, version: int) -> None:
    put_compact_string(out, m.feature)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_update_features_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UpdateFeaturesResponse, int]:
    m = object.__new__(UpdateFeaturesResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if version >= 2:
        m.results = []
    else:
        count, pos = read_compact_count(buf, pos, limit, 5)
        results_: list[UpdatableFeatureResult] = []
        for _ in range(count):
            results_item, pos = _read_updatable_feature_result(buf, pos, limit, version)
            results_.append(results_item)
        m.results = results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_update_features_response(out: bytearray, m: UpdateFeaturesResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if version < 2:
        put_compact_count(out, len(m.results))
        for results_item in m.results:
            _write_updatable_feature_result(out, results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
