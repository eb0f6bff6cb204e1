"""The state of a transactional id, as the transaction topic keeps it.

In steps; made from schemas/transaction_log_value.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.transaction_log_value import (
    PartitionsSchema,
    TransactionLogValue,
    _TAGS_TRANSACTION_LOG_VALUE,
)
from ottla.protocol.message import Message, not_in_version, not_tagged, tag_of_other_size
from ottla.protocol.primitives import (
    Buffer,
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
from ottla.protocol.stepping import (
    DecodingAllowance,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_many_numbers,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_ib = Struct(">ib").pack
_pack_q = Struct(">q").pack
_pack_qq = Struct(">qq").pack
_unpack_h = Struct(">h").unpack_from
_unpack_ib = Struct(">ib").unpack_from
_unpack_q = Struct(">q").unpack_from
_unpack_qq = Struct(">qq").unpack_from


def _read_partitions_schema_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[PartitionsSchema, int]]:
    m = object.__new__(PartitionsSchema)
    if version >= 1:
        m.topic, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    else:
        m.topic, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.topic)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 1 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 40)
        m.partition_ids, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partition_ids, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 40
        allowance.work -= count // PIECE
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_partitions_schema_steps(out: bytearray, m: PartitionsSchema, version: int, pace: Pace) -> Steps[None]:
    if version >= 1:
        put_compact_string(out, m.topic)
    else:
        put_string(out, m.topic)
    if version >= 1:
        put_compact_count(out, len(m.partition_ids))
    else:
        put_count(out, len(m.partition_ids))
    if len(m.partition_ids) > NUMBERS_A_PIECE:
        yield from write_many_numbers(out, m.partition_ids, "i", pace)
    else:
        put_numbers(out, m.partition_ids, "i")
        pace.work -= len(m.partition_ids) // PIECE
    if version >= 1:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_transaction_log_value_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[TransactionLogValue, int]]:
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
        allowance.take_array(count, 224)
        transaction_partitions_: list[PartitionsSchema] = []
        for _ in range(count):
            transaction_partitions_item, pos = yield from _read_partitions_schema_held(buf, pos, limit, version, allowance)
            transaction_partitions_.append(transaction_partitions_item)
            if allowance.due(pos):
                yield
        m.transaction_partitions = transaction_partitions_
    m.transaction_last_update_timestamp_ms, m.transaction_start_timestamp_ms = _unpack_qq(buf, pos)
    pos += 16
    m.client_transaction_version = 0
    if version >= 1:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            pos = _read_transaction_log_value_tags_held(m, buf, pos, limit, version, allowance)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_transaction_log_value_tags_held(m: TransactionLogValue, buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> int:
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
    allowance.take_tags(unknown)
    return pos


def _write_transaction_log_value_steps(out: bytearray, m: TransactionLogValue, version: int, pace: Pace) -> Steps[None]:
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
            yield from _write_partitions_schema_steps(out, transaction_partitions_item, version, pace)
            if pace.due():
                yield
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


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    TransactionLogValue: _read_transaction_log_value_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    TransactionLogValue: _write_transaction_log_value_steps,
}
