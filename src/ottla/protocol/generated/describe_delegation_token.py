"""The delegation tokens of given owners.

Made from schemas/describe_delegation_token.schema by `python -m ottla.protocol.compile`: change that file.
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
    NULL_COUNT,
    put_bytes,
    put_compact_bytes,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_qqq = Struct(">qqq").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_qqq = Struct(">qqq").unpack_from

class DescribeDelegationTokenOwner(Structure):
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


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners", "unknown_tags",)
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.owners = [] if owners is EMPTY_LIST else owners
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DescribeDelegationTokenRequest, version)
        try:
            _write_describe_delegation_token_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeDelegationTokenRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeDelegationTokenRequest, int]:
        if not 1 <= version <= 3:
            raise undecodable(DescribeDelegationTokenRequest, version)
        try:
            return _read_describe_delegation_token_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeDelegationTokenRequest, version, fault) from fault


class DescribedDelegationTokenRenewer(Structure):
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


class DescribedDelegationToken(Structure):
    __slots__ = ("principal_type", "principal_name", "token_requester_principal_type", "token_requester_principal_name", "issue_timestamp", "expiry_timestamp", "max_timestamp", "token_id", "hmac", "renewers", "unknown_tags",)

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is EMPTY_LIST else renewers
        self.unknown_tags = unknown_tags


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms", "unknown_tags",)
    API_KEY = 41
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_FROM = 2
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY_LIST,
        throttle_time_ms: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY_LIST else tokens
        self.throttle_time_ms = throttle_time_ms
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 1 <= version <= 3:
            raise unencodable(DescribeDelegationTokenResponse, version)
        try:
            _write_describe_delegation_token_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeDelegationTokenResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeDelegationTokenResponse, int]:
        if not 1 <= version <= 3:
            raise undecodable(DescribeDelegationTokenResponse, version)
        try:
            return _read_describe_delegation_token_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeDelegationTokenResponse, version, fault) from fault


def _read_describe_delegation_token_owner(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeDelegationTokenOwner, int]:
    m = object.__new__(DescribeDelegationTokenOwner)
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


def _write_describe_delegation_token_owner(out: bytearray, m: DescribeDelegationTokenOwner, version: int) -> None:
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


def _read_describe_delegation_token_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeDelegationTokenRequest, int]:
    m = object.__new__(DescribeDelegationTokenRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 2 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.owners = None
    else:
        owners_: list[DescribeDelegationTokenOwner] = []
        for _ in range(count):
            owners_item, pos = _read_describe_delegation_token_owner(buf, pos, limit, version)
            owners_.append(owners_item)
        m.owners = owners_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_describe_delegation_token_request(out: bytearray, m: DescribeDelegationTokenRequest, version: int) -> None:
    if m.owners is None:
        out += b"\0" if version >= 2 else NULL_COUNT
    else:
        if version >= 2:
            put_compact_count(out, len(m.owners))
        else:
            put_count(out, len(m.owners))
        for owners_item in m.owners:
            _write_describe_delegation_token_owner(out, owners_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_described_delegation_token_renewer(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribedDelegationTokenRenewer, int]:
    m = object.__new__(DescribedDelegationTokenRenewer)
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


def _write_described_delegation_token_renewer(out: bytearray, m: DescribedDelegationTokenRenewer, version: int) -> None:
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


def _read_described_delegation_token(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribedDelegationToken, int]:
    m = object.__new__(DescribedDelegationToken)
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
    m.issue_timestamp, m.expiry_timestamp, m.max_timestamp = _unpack_qqq(buf, pos)
    pos += 24
    if version >= 2:
        m.token_id, pos = read_compact_string(buf, pos, limit)
        m.hmac, pos = read_compact_bytes(buf, pos, limit)
    else:
        m.token_id, pos = read_string(buf, pos, limit)
        m.hmac, pos = read_bytes(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3) if version >= 2 else read_count(buf, pos, limit, 3)
    renewers_: list[DescribedDelegationTokenRenewer] = []
    for _ in range(count):
        renewers_item, pos = _read_described_delegation_token_renewer(buf, pos, limit, version)
        renewers_.append(renewers_item)
    m.renewers = renewers_
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_described_delegation_token(out: bytearray, m: DescribedDelegationToken, version: int) -> None:
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
    out += _pack_qqq(m.issue_timestamp, m.expiry_timestamp, m.max_timestamp)
    if version >= 2:
        put_compact_string(out, m.token_id)
        put_compact_bytes(out, m.hmac)
    else:
        put_string(out, m.token_id)
        put_bytes(out, m.hmac)
    if version >= 2:
        put_compact_count(out, len(m.renewers))
    else:
        put_count(out, len(m.renewers))
    for renewers_item in m.renewers:
        _write_described_delegation_token_renewer(out, renewers_item, version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_describe_delegation_token_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeDelegationTokenResponse, int]:
    m = object.__new__(DescribeDelegationTokenResponse)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    count, pos = read_compact_count(buf, pos, limit, 30) if version >= 2 else read_count(buf, pos, limit, 30)
    tokens_: list[DescribedDelegationToken] = []
    for _ in range(count):
        tokens_item, pos = _read_described_delegation_token(buf, pos, limit, version)
        tokens_.append(tokens_item)
    m.tokens = tokens_
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


def _write_describe_delegation_token_response(out: bytearray, m: DescribeDelegationTokenResponse, version: int) -> None:
    out += _pack_h(m.error_code)
    if version >= 2:
        put_compact_count(out, len(m.tokens))
    else:
        put_count(out, len(m.tokens))
    for tokens_item in m.tokens:
        _write_described_delegation_token(out, tokens_item, version)
    out += _pack_i(m.throttle_time_ms)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
