"""Adds a group's offsets to a transaction.

Made from schemas/add_offsets_to_txn.schema by `python -m ottla.protocol.compile`: change that file.
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
_unpack_ih = Struct(">ih").unpack_from
_unpack_qh = Struct(">qh").unpack_from

class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id", "unknown_tags",)
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(AddOffsetsToTxnRequest, version)
        try:
            _write_add_offsets_to_txn_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AddOffsetsToTxnRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AddOffsetsToTxnRequest, int]:
        if not 0 <= version <= 4:
            raise undecodable(AddOffsetsToTxnRequest, version)
        try:
            return _read_add_offsets_to_txn_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AddOffsetsToTxnRequest, version, fault) from fault


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_tags",)
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_FROM = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 4:
            raise unencodable(AddOffsetsToTxnResponse, version)
        try:
            _write_add_offsets_to_txn_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AddOffsetsToTxnResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AddOffsetsToTxnResponse, int]:
        if not 0 <= version <= 4:
            raise undecodable(AddOffsetsToTxnResponse, version)
        try:
            return _read_add_offsets_to_txn_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AddOffsetsToTxnResponse, version, fault) from fault


def _read_add_offsets_to_txn_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddOffsetsToTxnRequest, int]:
    m = object.__new__(AddOffsetsToTxnRequest)
    if version >= 3:
        m.transactional_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.transactional_id, pos = read_string(buf, pos, limit)
    m.producer_id, m.producer_epoch = _unpack_qh(buf, pos)
    pos += 10
    if version >= 3:
        m.group_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.group_id, pos = read_string(buf, pos, limit)
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_offsets_to_txn_request(out: bytearray, m: AddOffsetsToTxnRequest, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.transactional_id)
    else:
        put_string(out, m.transactional_id)
    out += _pack_qh(m.producer_id, m.producer_epoch)
    if version >= 3:
        put_compact_string(out, m.group_id)
    else:
        put_string(out, m.group_id)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_add_offsets_to_txn_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddOffsetsToTxnResponse, int]:
    m = object.__new__(AddOffsetsToTxnResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_offsets_to_txn_response(out: bytearray, m: AddOffsetsToTxnResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
