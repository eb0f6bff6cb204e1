"""Sets and removes users' SCRAM credentials.

Made from schemas/alter_user_scram_credentials.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_bytes,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_tags,
    read_compact_bytes,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_tags,
    shortened,
)

_pack_b = Struct(">b").pack
_pack_bi = Struct(">bi").pack
_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_b = Struct(">b").unpack_from
_unpack_bi = Struct(">bi").unpack_from
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from

class ScramCredentialDeletion(Structure):
    __slots__ = ("name", "mechanism", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.unknown_tags = unknown_tags


class ScramCredentialUpsertion(Structure):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: Buffer = b"",
        salted_password: Buffer = b"",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password
        self.unknown_tags = unknown_tags


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions", "unknown_tags",)
    API_KEY = 51
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = EMPTY_LIST,
        upsertions: list[ScramCredentialUpsertion] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.deletions = [] if deletions is EMPTY_LIST else deletions
        self.upsertions = [] if upsertions is EMPTY_LIST else upsertions
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AlterUserScramCredentialsRequest, version)
        try:
            _write_alter_user_scram_credentials_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterUserScramCredentialsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterUserScramCredentialsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(AlterUserScramCredentialsRequest, version)
        try:
            return _read_alter_user_scram_credentials_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterUserScramCredentialsRequest, version, fault) from fault


class AlterUserScramCredentialsResult(Structure):
    __slots__ = ("user", "error_code", "error_message", "unknown_tags",)

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = unknown_tags


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results", "unknown_tags",)
    API_KEY = 51
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY_LIST else results
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AlterUserScramCredentialsResponse, version)
        try:
            _write_alter_user_scram_credentials_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AlterUserScramCredentialsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AlterUserScramCredentialsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(AlterUserScramCredentialsResponse, version)
        try:
            return _read_alter_user_scram_credentials_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AlterUserScramCredentialsResponse, version, fault) from fault


def _read_scram_credential_deletion(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ScramCredentialDeletion, int]:
    m = object.__new__(ScramCredentialDeletion)
    m.name, pos = read_compact_string(buf, pos, limit)
    (m.mechanism,) = _unpack_b(buf, pos)
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_scram_credential_deletion(out: bytearray, m: ScramCredentialDeletion, version: int) -> None:
    put_compact_string(out, m.name)
    out += _pack_b(m.mechanism)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_scram_credential_upsertion(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ScramCredentialUpsertion, int]:
    m = object.__new__(ScramCredentialUpsertion)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.mechanism, m.iterations = _unpack_bi(buf, pos)
    pos += 5
    m.salt, pos = read_compact_bytes(buf, pos, limit)
    m.salted_password, pos = read_compact_bytes(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_scram_credential_upsertion(out: bytearray, m: ScramCredentialUpsertion, version: int) -> None:
    put_compact_string(out, m.name)
    out += _pack_bi(m.mechanism, m.iterations)
    put_compact_bytes(out, m.salt)
    put_compact_bytes(out, m.salted_password)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_user_scram_credentials_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterUserScramCredentialsRequest, int]:
    m = object.__new__(AlterUserScramCredentialsRequest)
    count, pos = read_compact_count(buf, pos, limit, 3)
    deletions_: list[ScramCredentialDeletion] = []
    for _ in range(count):
        deletions_item, pos = _read_scram_credential_deletion(buf, pos, limit, version)
        deletions_.append(deletions_item)
    m.deletions = deletions_
    count, pos = read_compact_count(buf, pos, limit, 9)
    upsertions_: list[ScramCredentialUpsertion] = []
    for _ in range(count):
        upsertions_item, pos = _read_scram_credential_upsertion(buf, pos, limit, version)
        upsertions_.append(upsertions_item)
    m.upsertions = upsertions_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_user_scram_credentials_request(out: bytearray, m: AlterUserScramCredentialsRequest, version: int) -> None:
    put_compact_count(out, len(m.deletions))
    for deletions_item in m.deletions:
        _write_scram_credential_deletion(out, deletions_item, version)
    put_compact_count(out, len(m.upsertions))
    for upsertions_item in m.upsertions:
        _write_scram_credential_upsertion(out, upsertions_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_user_scram_credentials_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterUserScramCredentialsResult, int]:
    m = object.__new__(AlterUserScramCredentialsResult)
    m.user, pos = read_compact_string(buf, pos, limit)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.error_message, pos = read_compact_nullable_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_user_scram_credentials_result(out: bytearray, m: AlterUserScramCredentialsResult, version: int) -> None:
    put_compact_string(out, m.user)
    out += _pack_h(m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_alter_user_scram_credentials_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AlterUserScramCredentialsResponse, int]:
    m = object.__new__(AlterUserScramCredentialsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5)
    results_: list[AlterUserScramCredentialsResult] = []
    for _ in range(count):
        results_item, pos = _read_alter_user_scram_credentials_result(buf, pos, limit, version)
        results_.append(results_item)
    m.results = results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_alter_user_scram_credentials_response(out: bytearray, m: AlterUserScramCredentialsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.results))
    for results_item in m.results:
        _write_alter_user_scram_credentials_result(out, results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
