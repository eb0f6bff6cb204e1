"""The state of a transactional id, as the transaction topic keeps it.

Made from schemas/transaction_log_value.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, tag_of_other_size, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    NULL_COUNT,
    put_compact_count,
    put_compact_string,
    put_count,
    put_numbers,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_count,
    read_compact_string,
    read_count,
    read_nullable_count,
    read_numbers,
    read_string,
    read_tag,
    read_tag_count,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_ib = Struct(">ib").pack
_pack_q = Struct(">q").pack
_pack_qq = Struct(">qq").pack
_unpack_h = Struct(">h").unpack_from
_unpack_ib = Struct(">ib").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qq = Struct(">qq").unpack_from

class PartitionsSchema(Structure):
    __slots__ = ("topic", "partition_ids", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partition_ids: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is EMPTY_LIST else partition_ids
        self.unknown_tags = unknown_tags


class TransactionLogValue(Message):
    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version", "unknown_tags",)
    API_KEY = -1
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_FROM = 1
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[PartitionsSchema] | None = EMPTY_LIST,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is EMPTY_LIST else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 1:
            raise unencodable(TransactionLogValue, version)
        try:
            _write_transaction_log_value(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(TransactionLogValue, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[TransactionLogValue, int]:
        if not 0 <= version <= 1:
            raise undecodable(TransactionLogValue, version)
        try:
            return _read_transaction_log_value(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(TransactionLogValue, version, fault) from fault


_TAGS_TRANSACTION_LOG_VALUE = frozenset((0, 1, 2, 3,))


def _read_partitions_schema(buf: Buffer, pos: int, limit: int, version: int) -> tuple[PartitionsSchema, int]:
    m = object.__new__(PartitionsSchema)
    if version >= 1:
        m.topic, pos = read_compact_string(buf, pos, limit)
    else:
        m.topic, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    m.partition_ids, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_partitions_schema(out: bytearray, m: PartitionsSchema, version: int) -> None:
    if version >= 1:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 1:
        put_compact_count(out, len(m.partition_ids))
    else:
        put_count(out, len(m.partition_ids))
    put_numbers(out, m.partition_ids, "i")
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_transaction_log_value(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TransactionLogValue, int]:
    m = object.__new__(TransactionLogValue)
    (m.producer_id,) = _unpack_q(buf, pos)
    pos += 8
    m.previous_producer_id = -1
    m.next_producer_id = -1
    (m.producer_epoch,) = _unpack_h(buf, pos)
    pos += 2
    m.next_producer_epoch = -1
    m.transaction_timeout_ms, m.transaction_status = _unpack_ib(buf, pos)
    pos += 5
    count, pos = read_compact_nullable_count(buf, pos, limit, 3) if version >= 1 else read_nullable_count(buf, pos, limit, 3)
    if count < 0:
        m.transaction_partitions = None
    else:
        transaction_partitions_: list[PartitionsSchema] = []
        for _ in range(count):
            transaction_partitions_item, pos = _read_partitions_schema(buf, pos, limit, version)
            transaction_partitions_.append(transaction_partitions_item)
        m.transaction_partitions = transaction_partitions_
    m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms = _unpack_qq(buf, pos)
    pos += 16
    m.client_transaction_version = 0
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_transaction_log_value_tags(m, buf, pos, limit, version)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_transaction_log_value_tags(m: TransactionLogValue, buf: Buffer, pos: int, limit: int, version: int) -> int:
    unknown: dict[int, bytes] = {}
    many, pos = read_tag_count(buf, pos, limit)
    for _ in range(many):
        tag, pos, end = read_tag(buf, pos, limit)
        if tag == 0:
            (m.previous_producer_id,) = _unpack_q(buf, pos)
            pos += 8
        elif tag == 1:
            (m.next_producer_id,) = _unpack_q(buf, pos)
            pos += 8
        elif tag == 2:
            (m.client_transaction_version,) = _unpack_h(buf, pos)
            pos += 2
        elif tag == 3:
            (m.next_producer_epoch,) = _unpack_h(buf, pos)
            pos += 2
        else:
            unknown[tag] = bytes(buf[pos:end])
            pos = end
        if pos != end:
            raise tag_of_other_size(m, tag)
    m.unknown_tags = unknown or NO_TAGS
    return pos


def _write_transaction_log_value(out: bytearray, m: TransactionLogValue, version: int) -> None:
    out += _pack_q(m.producer_id)
    if version < 1:
        if m.previous_producer_id != -1:
            raise not_in_version(m, "previous_producer_id", version)
        if m.next_producer_id != -1:
            raise not_in_version(m, "next_producer_id", version)
    out += _pack_h(m.producer_epoch)
    if version < 1:
        if m.next_producer_epoch != -1:
            raise not_in_version(m, "next_producer_epoch", version)
    out += _pack_ib(m.transaction_timeout_ms, m.transaction_status)
    if m.transaction_partitions is None:
        out += b"\0" if version >= 1 else NULL_COUNT
    else:
        if version >= 1:
            put_compact_count(out, len(m.transaction_partitions))
        else:
            put_count(out, len(m.transaction_partitions))
        for transaction_partitions_item in m.transaction_partitions:
            _write_partitions_schema(out, transaction_partitions_item, version)
    out += _pack_qq(m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms)
    if version < 1:
        if m.client_transaction_version != 0:
            raise not_in_version(m, "client_transaction_version", version)
    if version >= 1:
        tags: list[tuple[int, bytearray]] = []
        if m.previous_producer_id != -1:
            tag = bytearray()
            tag += _pack_q(m.previous_producer_id)
            tags.append((0, tag))
        if m.next_producer_id != -1:
            tag = bytearray()
            tag += _pack_q(m.next_producer_id)
            tags.append((1, tag))
        if m.client_transaction_version != 0:
            tag = bytearray()
            tag += _pack_h(m.client_transaction_version)
            tags.append((2, tag))
        if m.next_producer_epoch != -1:
            tag = bytearray()
            tag += _pack_h(m.next_producer_epoch)
            tags.append((3, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_TRANSACTION_LOG_VALUE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
