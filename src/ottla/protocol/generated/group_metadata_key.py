"""Whose members a record of the offsets topic keeps.

Made from schemas/group_metadata_key.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_string,
    read_string,
)


class GroupMetadataKey(Message):
    __slots__ = ("group", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 2
    MAX_VERSION = 2
    FLEXIBLE_FROM = None

    def __init__(
        self,
        *,
        group: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.group = group
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 2 <= version <= 2:
            raise unencodable(GroupMetadataKey, version)
        try:
            _write_group_metadata_key(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(GroupMetadataKey, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[GroupMetadataKey, int]:
        if not 2 <= version <= 2:
            raise undecodable(GroupMetadataKey, version)
        try:
            return _read_group_metadata_key(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(GroupMetadataKey, version, fault) from fault


def _read_group_metadata_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[GroupMetadataKey, int]:
    m = object.__new__(GroupMetadataKey)
    m.group, pos = read_string(buf, pos, limit)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_group_metadata_key(out: bytearray, m: GroupMetadataKey, version: int) -> None:
    put_string(out, m.group)
    if m.unknown_tags:
        raise not_tagged(m, version)
