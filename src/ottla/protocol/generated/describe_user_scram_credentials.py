"""Which SCRAM mechanisms users have, and their iterations.

Made from schemas/describe_user_scram_credentials.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
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
    read_compact_nullable_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_bi = Struct(">bi").pack
_pack_h = Struct(">h").pack
_pack_ih = Struct(">ih").pack
_unpack_bi = Struct(">bi").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_ih = Struct(">ih").unpack_from

class UserName(Structure):
    __slots__ = ("name", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.unknown_tags = unknown_tags


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users", "unknown_tags",)
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        users: list[UserName] | None = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.users = [] if users is EMPTY_LIST else users
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeUserScramCredentialsRequest, version)
        try:
            _write_describe_user_scram_credentials_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeUserScramCredentialsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeUserScramCredentialsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeUserScramCredentialsRequest, version)
        try:
            return _read_describe_user_scram_credentials_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeUserScramCredentialsRequest, version, fault) from fault


class CredentialInfo(Structure):
    __slots__ = ("mechanism", "iterations", "unknown_tags",)

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations
        self.unknown_tags = unknown_tags


class DescribeUserScramCredentialsResult(Structure):
    __slots__ = ("user", "error_code", "error_message", "credential_infos", "unknown_tags",)

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is EMPTY_LIST else credential_infos
        self.unknown_tags = unknown_tags


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results", "unknown_tags",)
    API_KEY = 50
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeUserScramCredentialsResponse, version)
        try:
            _write_describe_user_scram_credentials_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeUserScramCredentialsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeUserScramCredentialsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeUserScramCredentialsResponse, version)
        try:
            return _read_describe_user_scram_credentials_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeUserScramCredentialsResponse, version, fault) from fault


def _read_user_name(buf: Buffer, pos: int, limit: int, version: int) -> tuple[UserName, int]:
    m = object.__new__(UserName)
    m.name, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_user_name(out: bytearray, m: UserName, version: int) -> None:
    put_compact_string(out, m.name)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_user_scram_credentials_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeUserScramCredentialsRequest, int]:
    m = object.__new__(DescribeUserScramCredentialsRequest)
    count, pos = read_compact_nullable_count(buf, pos, limit, 2)
    if count < 0:
        m.users = None
    else:
        users_: list[UserName] = []
        for _ in range(count):
            users_item, pos = _read_user_name(buf, pos, limit, version)
            users_.append(users_item)
        m.users = users_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_user_scram_credentials_request(out: bytearray, m: DescribeUserScramCredentialsRequest, version: int) -> None:
    if m.users is None:
        out.append(0)
    else:
        put_compact_count(out, len(m.users))
        for users_item in m.users:
            _write_user_name(out, users_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_credential_info(buf: Buffer, pos: int, limit: int, version: int) -> tuple[CredentialInfo, int]:
    m = object.__new__(CredentialInfo)
    m.mechanism, m.iterations = _unpack_bi(buf, pos)
    pos += 5
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_credential_info(out: bytearray, m: CredentialInfo, version: int) -> None:
    out += _pack_bi(m.mechanism, m.iterations)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_user_scram_credentials_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeUserScramCredentialsResult, int]:
    m = object.__new__(DescribeUserScramCredentialsResult)
    m.user, pos = read_compact_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6)
    credential_infos_: list[CredentialInfo] = []
    for _ in range(count):
        credential_infos_item, pos = _read_credential_info(buf, pos, limit, version)
        credential_infos_.append(credential_infos_item)
    m.credential_infos = credential_infos_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_user_scram_credentials_result(out: bytearray, m: DescribeUserScramCredentialsResult, version: int) -> None:
    put_compact_string(out, m.user)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.credential_infos))
    for credential_infos_item in m.credential_infos:
        _write_credential_info(out, credential_infos_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_user_scram_credentials_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeUserScramCredentialsResponse, int]:
    m = object.__new__(DescribeUserScramCredentialsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6)
    results_: list[DescribeUserScramCredentialsResult] = []
    for _ in range(count):
        results_item, pos = _read_describe_user_scram_credentials_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_user_scram_credentials_response(out: bytearray, m: DescribeUserScramCredentialsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        _write_describe_user_scram_credentials_result(out, results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
