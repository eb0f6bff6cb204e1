"""The principal of a client whose request a broker forwards: what Envelope carries, behind its version.

Made from schemas/default_principal_data.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_string,
    put_tags,
    read_compact_string,
    read_tags,
)


class DefaultPrincipalData(Message):
    __slots__ = ("type", "name", "token_authenticated", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DefaultPrincipalData, version)
        try:
            _write_default_principal_data(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DefaultPrincipalData, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DefaultPrincipalData, int]:
        if not 0 <= version <= 0:
            raise undecodable(DefaultPrincipalData, version)
        try:
            return _read_default_principal_data(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DefaultPrincipalData, version, fault) from fault


def _read_default_principal_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DefaultPrincipalData, int]:
    m = object.__new__(DefaultPrincipalData)
    m.type, pos = read_compact_string(buf, pos, limit)
    m.name, pos = read_compact_string(buf, pos, limit)
    m.token_authenticated = buf[pos] != 0
    pos += 1
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_default_principal_data(out: bytearray, m: DefaultPrincipalData, version: int) -> None:
    put_compact_string(out, m.type)
    put_compact_string(out, m.name)
    out.append(1 if m.token_authenticated else 0)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
