"""Whose transactions a record of the transaction topic keeps.

Made from schemas/transaction_log_key.schema by `python -m ottla.protocol.compile`: change that file.
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


class TransactionLogKey(Message):
    __slots__ = ("transactional_id", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = None

    def __init__(
        self,
        *,
        transactional_id: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(TransactionLogKey, version)
        try:
            _write_transaction_log_key(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(TransactionLogKey, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[TransactionLogKey, int]:
        if not 0 <= version <= 0:
            raise undecodable(TransactionLogKey, version)
        try:
            return _read_transaction_log_key(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(TransactionLogKey, version, fault) from fault


def _read_transaction_log_key(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TransactionLogKey, int]:
    m = object.__new__(TransactionLogKey)
    m.transactional_id, pos = read_string(buf, pos, limit)
    m.unknown_tags = NO_TAGS
    return m, pos


def _write_transaction_log_key(out: bytearray, m: TransactionLogKey, version: int) -> None:
    put_string(out, m.transactional_id)
    if m.unknown_tags:
        raise not_tagged(m, version)
