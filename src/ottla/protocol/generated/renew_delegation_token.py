"""Prolongs a delegation token.

Made from schemas/renew_delegation_token.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_bytes,
    put_compact_bytes,
    put_tags,
    read_bytes,
    read_compact_bytes,
    read_tags,
)

_pack_hqi = Struct(">hqi").pack
_pack_q = Struct(">q").pack
_unpack_hqi = Struct(">hqi").unpack_from
_unpack_q = Struct(">q").unpack_from

class RenewDelegationTokenRequest(Message):
    __slots__ = ("hmac", "renew_period_ms", "unknown_tags",)
    API_KEY = 39
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        hmac: Buffer = b"",
        renew_period_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(RenewDelegationTokenRequest, version)
        try:
            _write_renew_delegation_token_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(RenewDelegationTokenRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[RenewDelegationTokenRequest, int]:
        if not 1 <= version <= 2:
            raise undecodable(RenewDelegationTokenRequest, version)
        try:
            return _read_renew_delegation_token_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(RenewDelegationTokenRequest, version, fault) from fault


class RenewDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms", "unknown_tags",)
    API_KEY = 39
    MIN_VERSION = 1
    MAX_VERSION = 2
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 2:
            raise unencodable(RenewDelegationTokenResponse, version)
        try:
            _write_renew_delegation_token_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(RenewDelegationTokenResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[RenewDelegationTokenResponse, int]:
        if not 1 <= version <= 2:
            raise undecodable(RenewDelegationTokenResponse, version)
        try:
            return _read_renew_delegation_token_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(RenewDelegationTokenResponse, version, fault) from fault


def _read_renew_delegation_token_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RenewDelegationTokenRequest, int]:
    m = object.__new__(RenewDelegationTokenRequest)
    if version >= 2:
        m.hmac, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.hmac, pos = read_bytes(buf, pos, limit)
    (m.renew_period_ms,) = _unpack_q(buf, pos)
    pos += 8
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_renew_delegation_token_request(out: bytearray, m: RenewDelegationTokenRequest, version: int) -> None:
    if version >= 2:
        put_compact_bytes(out, m.hmac)
    else:
        put_bytes(out, m.hmac)
    out += _pack_q(m.renew_period_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_renew_delegation_token_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[RenewDelegationTokenResponse, int]:
    m = object.__new__(RenewDelegationTokenResponse)
    m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms = _unpack_hqi(buf, pos)
    pos += 14
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_renew_delegation_token_response(out: bytearray, m: RenewDelegationTokenResponse, version: int) -> None:
    out += _pack_hqi(m.error_code, m.expiry_timestamp_ms, m.throttle_time_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
