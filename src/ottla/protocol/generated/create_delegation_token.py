"""Creates a token that stands in for its owner's credentials.

Made from schemas/create_delegation_token.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_string,
    put_tags,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack
_pack_qqq = Struct(">qqq").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qqq = Struct(">qqq").unpack_from

class CreatableRenewers(Structure):
    __slots__ = ("principal_type", "principal_name", "unknown_tags",)

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = unknown_tags


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms", "unknown_tags",)
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = EMPTY_LIST,
        max_lifetime_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY_LIST else renewers
        self.max_lifetime_ms = max_lifetime_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(CreateDelegationTokenRequest, version)
        try:
            _write_create_delegation_token_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateDelegationTokenRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateDelegationTokenRequest, int]:
        if not 1 <= version <= 3:
            raise undecodable(CreateDelegationTokenRequest, version)
        try:
            return _read_create_delegation_token_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateDelegationTokenRequest, version, fault) from fault


class CreateDelegationTokenResponse(Message):
    __slots__ = ("error_code", "principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms", "token_id", "hmac", "throttle_time_ms", "unknown_tags",)
    API_KEY = 38
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        throttle_time_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(CreateDelegationTokenResponse, version)
        try:
            _write_create_delegation_token_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(CreateDelegationTokenResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[CreateDelegationTokenResponse, int]:
        if not 1 <= version <= 3:
            raise undecodable(CreateDelegationTokenResponse, version)
        try:
            return _read_create_delegation_token_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(CreateDelegationTokenResponse, version, fault) from fault


def _read_creatable_renewers(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreatableRenewers, int]:
    m = object.__new__(CreatableRenewers)
    if version >= 2:
        m.principal_type, pos = read_compact_string(buf, pos, limit)
        m.principal_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.principal_type, pos = read_string(buf, pos, limit)
        m.principal_name, pos = read_string(buf, pos, limit)
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_creatable_renewers(out: bytearray, m: CreatableRenewers, version: int) -> None:
    if version >= 2:
        put_compact_string(out, m.principal_type)
        put_compact_string(out, m.principal_name)
    else:
        put_string(out, m.principal_type)
        put_string(out, m.principal_name)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_delegation_token_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateDelegationTokenRequest, int]:
    m = object.__new__(CreateDelegationTokenRequest)
    if version >= 3:
        m.owner_principal_type, pos = read_compact_nullable_string(buf, pos, limit)
        m.owner_principal_name, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.owner_principal_type = ""
        m.owner_principal_name = ""
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    renewers_: list[CreatableRenewers] = []
    for _ in range(count):
        renewers_item, pos = _read_creatable_renewers(buf, pos, limit, version)
        renewers_.append(renewers_item)
    m.renewers = renewers_
    (m.max_lifetime_ms,) = _unpack_q(buf, pos)
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


def _write_create_delegation_token_request(out: bytearray, m: CreateDelegationTokenRequest, version: int) -> None:
    if version >= 3:
        put_compact_nullable_string(out, m.owner_principal_type)
        put_compact_nullable_string(out, m.owner_principal_name)
    else:
        if m.owner_principal_type != "":
            raise not_in_version(m, "owner_principal_type", version)
        if m.owner_principal_name != "":
            raise not_in_version(m, "owner_principal_name", version)
    if version >= 2:
        put_compact_count(out, len(m.renewers))
    else:
        put_count(out, len(m.renewers))
    for renewers_item in m.renewers:
        _write_creatable_renewers(out, renewers_item, version)
    out += _pack_q(m.max_lifetime_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_create_delegation_token_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CreateDelegationTokenResponse, int]:
    m = object.__new__(CreateDelegationTokenResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    if version >= 2:
        m.principal_type, pos = read_compact_string(buf, pos, limit)
        m.principal_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.principal_type, pos = read_string(buf, pos, limit)
        m.principal_name, pos = read_string(buf, pos, limit)
    if version >= 3:
        m.token_requester_principal_type, pos = read_compact_string(buf, pos, limit)
        m.token_requester_principal_name, pos = read_compact_string(buf, pos, limit)
    else:
        m.token_requester_principal_type = ""
        m.token_requester_principal_name = ""
    m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms = _unpack_qqq(buf, pos)
    pos += 24
    if version >= 2:
        m.token_id, pos = read_compact_string(buf, pos, limit)
        m.hmac, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.token_id, pos = read_string(buf, pos, limit)
        m.hmac, pos = read_bytes(buf, pos, limit)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_create_delegation_token_response(out: bytearray, m: CreateDelegationTokenResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_string(out, m.principal_type)
        put_compact_string(out, m.principal_name)
    else:
        put_string(out, m.principal_type)
        put_string(out, m.principal_name)
    if version >= 3:
        put_compact_string(out, m.token_requester_principal_type)
        put_compact_string(out, m.token_requester_principal_name)
    else:
        if m.token_requester_principal_type != "":
            raise not_in_version(m, "token_requester_principal_type", version)
        if m.token_requester_principal_name != "":
            raise not_in_version(m, "token_requester_principal_name", version)
    out += _pack_qqq(m.issue_timestamp_ms, m.expiry_timestamp_ms, m.max_timestamp_ms)
    if version >= 2:
        put_compact_string(out, m.token_id)
        put_compact_bytes(out, m.hmac)
    else:
        put_string(out, m.token_id)
        put_bytes(out, m.hmac)
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
