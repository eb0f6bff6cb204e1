"""Commits or aborts a transaction.

Made from schemas/end_txn.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_compact_string,
    put_string,
    put_tags,
    read_compact_string,
    read_string,
    read_tags,
)

_pack_ih = Struct(">ih").pack
_pack_qh = Struct(">qh").pack
_pack_qht = Struct(">qh?").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_qh = Struct(">qh").unpack_from
_unpack_qht = Struct(">qh?").unpack_from

class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed", "unknown_tags",)
    API_KEY = 26
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(EndTxnRequest, version)
        try:
            _write_end_txn_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(EndTxnRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[EndTxnRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(EndTxnRequest, version)
        try:
            return _read_end_txn_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(EndTxnRequest, version, fault) from fault


class EndTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "unknown_tags",)
    API_KEY = 26
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(EndTxnResponse, version)
        try:
            _write_end_txn_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(EndTxnResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[EndTxnResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(EndTxnResponse, version)
        try:
            return _read_end_txn_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(EndTxnResponse, version, fault) from fault


def _read_end_txn_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EndTxnRequest, int]:
    m = object.__new__(EndTxnRequest)
    if version >= 3:
        m.transactional_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.transactional_id, pos = read_string(buf, pos, limit)
    m.producer_id, m.producer_epoch, m.committed = _unpack_qht(buf, pos)
    pos += 11
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_end_txn_request(out: bytearray, m: EndTxnRequest, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.transactional_id)
    else:
        put_string(out, m.transactional_id)
    out += _pack_qht(m.producer_id, m.producer_epoch, m.committed)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_end_txn_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[EndTxnResponse, int]:
    m = object.__new__(EndTxnResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 5:
        m.producer_id, m.producer_epoch = _unpack_qh(buf, pos)
        pos += 10
    else:
        m.producer_id = -1
        m.producer_epoch = -1
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_end_txn_response(out: bytearray, m: EndTxnResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 5:
        out += _pack_qh(m.producer_id, m.producer_epoch)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
