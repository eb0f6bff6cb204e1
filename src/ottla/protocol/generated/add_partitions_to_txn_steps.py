"""Adds partitions to transactions; from version 4 on brokers ask for many transactions at once.

In steps; made from schemas/add_partitions_to_txn.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    _write_add_partitions_to_txn_partition_result,
)
from ottla.protocol.message import Message, not_in_version, not_tagged
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_unpack_qh = Struct(">qh").unpack_from
_unpack_qht = Struct(">qh?").unpack_from


def _read_add_partitions_to_txn_transaction_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AddPartitionsToTxnTransaction, int]]:
    m = object.__new__(AddPartitionsToTxnTransaction)
    m.transactional_id, pos = read_compact_string(buf, pos, limit)
    allowance.left -= getsizeof(m.transactional_id)
    m.producer_id, m.producer_epoch, m.verify_only = _unpack_qht(buf, pos)
    pos += 11
    count, pos = read_compact_count(buf, pos, limit, 3)
    allowance.take_array(count, 224)
    topics_: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        topics_item, pos = yield from _read_add_partitions_to_txn_topic_held(buf, pos, limit, version, allowance)
        topics_.append(topics_item)
        if allowance.due(pos):
            yield
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _read_add_partitions_to_txn_topic_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AddPartitionsToTxnTopic, int]]:
    m = object.__new__(AddPartitionsToTxnTopic)
    if version >= 3:
        m.name, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    else:
        m.name, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.name)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 3 else read_count(buf, pos, limit, 4)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.partitions, pos = yield from read_many_numbers(buf, pos, count, "i", 4, allowance)
    else:
        m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _read_add_partitions_to_txn_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[AddPartitionsToTxnRequest, int]]:
    m = object.__new__(AddPartitionsToTxnRequest)
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 14)
        allowance.take_array(count, 232)
        transactions_: list[AddPartitionsToTxnTransaction] = []
        for _ in range(count):
            transactions_item, pos = yield from _read_add_partitions_to_txn_transaction_held(buf, pos, limit, version, allowance)
            transactions_.append(transactions_item)
            if allowance.due(pos):
                yield
        m.transactions = transactions_
    else:
        m.transactions = []
    if version >= 4:
        m.v3_and_below_transactional_id = ""
    elif version >= 3:
        m.v3_and_below_transactional_id, pos = read_compact_string(buf, pos, limit)
        allowance.left -= getsizeof(m.v3_and_below_transactional_id)
    else:
        m.v3_and_below_transactional_id, pos = read_string(buf, pos, limit)
        allowance.left -= getsizeof(m.v3_and_below_transactional_id)
    if version >= 4:
        m.v3_and_below_producer_id = 0
        m.v3_and_below_producer_epoch = 0
        m.v3_and_below_topics = []
    else:
        m.v3_and_below_producer_id, m.v3_and_below_producer_epoch = _unpack_qh(buf, pos)
        pos += 10
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
        allowance.take_array(count, 224)
        v3_and_below_topics_: list[AddPartitionsToTxnTopic] = []
        for _ in range(count):
            v3_and_below_topics_item, pos = yield from _read_add_partitions_to_txn_topic_held(buf, pos, limit, version, allowance)
            v3_and_below_topics_.append(v3_and_below_topics_item)
            if allowance.due(pos):
                yield
        m.v3_and_below_topics = v3_and_below_topics_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
            allowance.take_tags(m.unknown_tags)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_partitions_to_txn_result_steps(out: bytearray, m: AddPartitionsToTxnResult, version: int, pace: Pace) -> Steps[None]:
    put_compact_string(out, m.transactional_id)
    put_compact_count(out, len(m.topic_results))
    for topic_results_item in m.topic_results:
        yield from _write_add_partitions_to_txn_topic_result_steps(out, topic_results_item, version, pace)
        if pace.due():
            yield
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _write_add_partitions_to_txn_topic_result_steps(out: bytearray, m: AddPartitionsToTxnTopicResult, version: int, pace: Pace) -> Steps[None]:
    if version >= 3:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 3:
        put_compact_count(out, len(m.results_by_partition))
    else:
        put_count(out, len(m.results_by_partition))
    if len(m.results_by_partition) > FEW:
        yield from write_structs(out, m.results_by_partition, _write_add_partitions_to_txn_partition_result, version, pace)
    else:
        for results_by_partition_item in m.results_by_partition:
            _write_add_partitions_to_txn_partition_result(out, results_by_partition_item, version)
        pace.work -= len(m.results_by_partition)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _write_add_partitions_to_txn_response_steps(out: bytearray, m: AddPartitionsToTxnResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        out += _pack_h(m.error_code)
        put_compact_count(out, len(m.results_by_transaction))
        for results_by_transaction_item in m.results_by_transaction:
            yield from _write_add_partitions_to_txn_result_steps(out, results_by_transaction_item, version, pace)
            if pace.due():
                yield
        if m.results_by_topic_v3_and_below != []:
            raise not_in_version(m, "results_by_topic_v3_and_below", version)
    else:
        if m.results_by_transaction != []:
            raise not_in_version(m, "results_by_transaction", version)
        if version >= 3:
            put_compact_count(out, len(m.results_by_topic_v3_and_below))
        else:
            put_count(out, len(m.results_by_topic_v3_and_below))
        for results_by_topic_v3_and_below_item in m.results_by_topic_v3_and_below:
            yield from _write_add_partitions_to_txn_topic_result_steps(out, results_by_topic_v3_and_below_item, version, pace)
            if pace.due():
                yield
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AddPartitionsToTxnRequest: _read_add_partitions_to_txn_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    AddPartitionsToTxnResponse: _write_add_partitions_to_txn_response_steps,
}
