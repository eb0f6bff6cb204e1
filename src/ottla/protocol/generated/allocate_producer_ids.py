"""A broker asks the controller for a block of producer ids.

Made from schemas/allocate_producer_ids.schema by `python -m ottla.protocol.compile`: change that file.
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
    put_tags,
    read_tags,
)

_pack_ihqi = Struct(">ihqi").pack
_pack_iq = Struct(">iq").pack
_unpack_ihqi = Struct(">ihqi").unpack_from
_unpack_iq = Struct(">iq").unpack_from

class AllocateProducerIdsRequest(Message):
    __slots__ = ("broker_id", "broker_epoch", "unknown_tags",)
    API_KEY = 67
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AllocateProducerIdsRequest, version)
        try:
            _write_allocate_producer_ids_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AllocateProducerIdsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AllocateProducerIdsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(AllocateProducerIdsRequest, version)
        try:
            return _read_allocate_producer_ids_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AllocateProducerIdsRequest, version, fault) from fault


class AllocateProducerIdsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len", "unknown_tags",)
    API_KEY = 67
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(AllocateProducerIdsResponse, version)
        try:
            _write_allocate_producer_ids_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AllocateProducerIdsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AllocateProducerIdsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(AllocateProducerIdsResponse, version)
        try:
            return _read_allocate_producer_ids_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AllocateProducerIdsResponse, version, fault) from fault


def _read_allocate_producer_ids_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AllocateProducerIdsRequest, int]:
    m = object.__new__(AllocateProducerIdsRequest)
    m.broker_id, m.broker_epoch = _unpack_iq(buf, pos)
    pos += 12
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_allocate_producer_ids_request(out: bytearray, m: AllocateProducerIdsRequest, version: int) -> None:
    out += _pack_iq(m.broker_id, m.broker_epoch)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_allocate_producer_ids_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AllocateProducerIdsResponse, int]:
    m = object.__new__(AllocateProducerIdsResponse)
    m.throttle_time_ms, m.error_code, m.producer_id_start, m.producer_id_len = _unpack_ihqi(buf, pos)
    pos += 18
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_allocate_producer_ids_response(out: bytearray, m: AllocateProducerIdsResponse, version: int) -> None:
    out += _pack_ihqi(m.throttle_time_ms, m.error_code, m.producer_id_start, m.producer_id_len)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
