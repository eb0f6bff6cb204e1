"""Gives an idempotent or transactional producer its id and epoch.

Made from schemas/init_producer_id.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_nullable_string,
    put_nullable_string,
    put_tags,
    read_compact_nullable_string,
    read_nullable_string,
    read_tags,
)

_pack_i = Struct(">i").pack
_pack_ihqh = Struct(">ihqh").pack
_pack_qh = Struct(">qh").pack
_pack_tt = Struct(">??").pack
_unpack_i = Struct(">i").unpack_from
_unpack_ihqh = Struct(">ihqh").unpack_from
_unpack_qh = Struct(">qh").unpack_from
_unpack_tt = Struct(">??").unpack_from

class InitProducerIdRequest(Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn", "unknown_tags",)
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(InitProducerIdRequest, version)
        try:
            _write_init_producer_id_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(InitProducerIdRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[InitProducerIdRequest, int]:
        if not 0 <= version <= 6:
            raise undecodable(InitProducerIdRequest, version)
        try:
            return _read_init_producer_id_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(InitProducerIdRequest, version, fault) from fault


class InitProducerIdResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id", "ongoing_txn_producer_epoch", "unknown_tags",)
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_FROM = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 6:
            raise unencodable(InitProducerIdResponse, version)
        try:
            _write_init_producer_id_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(InitProducerIdResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[InitProducerIdResponse, int]:
        if not 0 <= version <= 6:
            raise undecodable(InitProducerIdResponse, version)
        try:
            return _read_init_producer_id_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(InitProducerIdResponse, version, fault) from fault


def _read_init_producer_id_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitProducerIdRequest, int]:
    m = object.__new__(InitProducerIdRequest)
    if version >= 2:
        m.transactional_id, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.transactional_id, pos = read_nullable_string(buf, pos, limit)
    (m.transaction_timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 3:
        m.producer_id, m.producer_epoch = _unpack_qh(buf, pos)
        pos += 10
    else:
        m.producer_id = -1
        m.producer_epoch = -1
    if version >= 6:
        m.enable2_pc, m.keep_prepared_txn = _unpack_tt(buf, pos)
        pos += 2
    else:
        m.enable2_pc = False
        m.keep_prepared_txn = False
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_init_producer_id_request(out: bytearray, m: InitProducerIdRequest, version: int) -> None:
    if version >= 2:
        put_compact_nullable_string(out, m.transactional_id)
    else:
        put_nullable_string(out, m.transactional_id)
    out += _pack_i(m.transaction_timeout_ms)
    if version >= 3:
        out += _pack_qh(m.producer_id, m.producer_epoch)
    else:
        if m.producer_id != -1:
            raise not_in_version(m, "producer_id", version)
        if m.producer_epoch != -1:
            raise not_in_version(m, "producer_epoch", version)
    if version >= 6:
        out += _pack_tt(m.enable2_pc, m.keep_prepared_txn)
    else:
        if m.enable2_pc:
            raise not_in_version(m, "enable2_pc", version)
        if m.keep_prepared_txn:
            raise not_in_version(m, "keep_prepared_txn", version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_init_producer_id_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[InitProducerIdResponse, int]:
    m = object.__new__(InitProducerIdResponse)
    m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch = _unpack_ihqh(buf, pos)
    pos += 16
    if version >= 6:
        m.ongoing_txn_producer_id, m.ongoing_txn_producer_epoch = _unpack_qh(buf, pos)
        pos += 10
    else:
        m.ongoing_txn_producer_id = -1
        m.ongoing_txn_producer_epoch = -1
    if version >= 2:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_init_producer_id_response(out: bytearray, m: InitProducerIdResponse, version: int) -> None:
    out += _pack_ihqh(m.throttle_time_ms, m.error_code, m.producer_id, m.producer_epoch)
    if version >= 6:
        out += _pack_qh(m.ongoing_txn_producer_id, m.ongoing_txn_producer_epoch)
    else:
        if m.ongoing_txn_producer_id != -1:
            raise not_in_version(m, "ongoing_txn_producer_id", version)
        if m.ongoing_txn_producer_epoch != -1:
            raise not_in_version(m, "ongoing_txn_producer_epoch", version)
    if version >= 2:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
