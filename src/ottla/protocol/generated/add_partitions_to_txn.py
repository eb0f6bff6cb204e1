"""Adds partitions to transactions; from version 4 on brokers ask for many transactions at once.

Made from schemas/add_partitions_to_txn.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, not_tagged, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_count,
    put_numbers,
    put_string,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_count,
    read_numbers,
    read_string,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_ih = Struct(">ih").pack
_pack_qh = Struct(">qh").pack
_pack_qht = Struct(">qh?").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_ih = Struct(">ih").unpack_from
_unpack_qh = Struct(">qh").unpack_from
_unpack_qht = Struct(">qh?").unpack_from

class AddPartitionsToTxnTransaction(Structure):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnTopic(Structure):
    __slots__ = ("name", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnRequest(Message):
    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics", "unknown_tags",)
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY_LIST,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactions = [] if transactions is EMPTY_LIST else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY_LIST else v3_and_below_topics
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(AddPartitionsToTxnRequest, version)
        try:
            _write_add_partitions_to_txn_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AddPartitionsToTxnRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AddPartitionsToTxnRequest, int]:
        if not 0 <= version <= 5:
            raise undecodable(AddPartitionsToTxnRequest, version)
        try:
            return _read_add_partitions_to_txn_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AddPartitionsToTxnRequest, version, fault) from fault


class AddPartitionsToTxnResult(Structure):
    __slots__ = ("transactional_id", "topic_results", "unknown_tags",)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is EMPTY_LIST else topic_results
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnPartitionResult(Structure):
    __slots__ = ("partition_index", "partition_error_code", "unknown_tags",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnTopicResult(Structure):
    __slots__ = ("name", "results_by_partition", "unknown_tags",)

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is EMPTY_LIST else results_by_partition
        self.unknown_tags = unknown_tags


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below", "unknown_tags",)
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_FROM = 3
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY_LIST,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY_LIST else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is EMPTY_LIST else results_by_topic_v3_and_below
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 5:
            raise unencodable(AddPartitionsToTxnResponse, version)
        try:
            _write_add_partitions_to_txn_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(AddPartitionsToTxnResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[AddPartitionsToTxnResponse, int]:
        if not 0 <= version <= 5:
            raise undecodable(AddPartitionsToTxnResponse, version)
        try:
            return _read_add_partitions_to_txn_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(AddPartitionsToTxnResponse, version, fault) from fault


def _read_add_partitions_to_txn_transaction(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnTransaction, int]:
    m = object.__new__(AddPartitionsToTxnTransaction)
    m.transactional_id, pos = read_compact_string(buf, pos, limit)
    m.producer_id, m.producer_epoch, m.verify_only = _unpack_qht(buf, pos)
    pos += 11
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        topics_item, pos = _read_add_partitions_to_txn_topic(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_add_partitions_to_txn_transaction(out: bytearray, m: AddPartitionsToTxnTransaction, version: int) -> None:
    put_compact_string(out, m.transactional_id)
    out += _pack_qht(m.producer_id, m.producer_epoch, m.verify_only)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_add_partitions_to_txn_topic(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_add_partitions_to_txn_topic(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnTopic, int]:
    m = object.__new__(AddPartitionsToTxnTopic)
    if version >= 3:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4) if version >= 3 else read_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_partitions_to_txn_topic(out: bytearray, m: AddPartitionsToTxnTopic, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 3:
        put_compact_count(out, len(m.partitions))
    else:
        put_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_add_partitions_to_txn_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnRequest, int]:
    m = object.__new__(AddPartitionsToTxnRequest)
    if version >= 4:
        count, pos = read_compact_count(buf, pos, limit, 14)
        transactions_: list[AddPartitionsToTxnTransaction] = []
        for _ in range(count):
            transactions_item, pos = _read_add_partitions_to_txn_transaction(buf, pos, limit, version)
            transactions_.append(transactions_item)
        m.transactions = transactions_
    else:
        m.transactions = []
    if version >= 4:
        m.v3_and_below_transactional_id = ""
    elif version >= 3:
        m.v3_and_below_transactional_id, pos = read_compact_string(buf, pos, limit)
    else:
        m.v3_and_below_transactional_id, pos = read_string(buf, pos, limit)
    if version >= 4:
        m.v3_and_below_producer_id = 0
        m.v3_and_below_producer_epoch = 0
        m.v3_and_below_topics = []
    else:
        m.v3_and_below_producer_id, m.v3_and_below_producer_epoch = _unpack_qh(buf, pos)
        pos += 10
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
        v3_and_below_topics_: list[AddPartitionsToTxnTopic] = []
        for _ in range(count):
            v3_and_below_topics_item, pos = _read_add_partitions_to_txn_topic(buf, pos, limit, version)
            v3_and_below_topics_.append(v3_and_below_topics_item)
        m.v3_and_below_topics = v3_and_below_topics_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_partitions_to_txn_request(out: bytearray, m: AddPartitionsToTxnRequest, version: int) -> None:
    if version >= 4:
        put_compact_count(out, len(m.transactions))
        for transactions_item in m.transactions:
            _write_add_partitions_to_txn_transaction(out, transactions_item, version)
    else:
        if m.transactions != []:
            raise not_in_version(m, "transactions", version)
    if version >= 4:
        if m.v3_and_below_transactional_id != "":
            raise not_in_version(m, "v3_and_below_transactional_id", version)
    elif version >= 3:
        put_compact_string(out, m.v3_and_below_transactional_id)
    else:
        put_string(out, m.v3_and_below_transactional_id)
    if version >= 4:
        if m.v3_and_below_producer_id != 0:
            raise not_in_version(m, "v3_and_below_producer_id", version)
        if m.v3_and_below_producer_epoch != 0:
            raise not_in_version(m, "v3_and_below_producer_epoch", version)
        if m.v3_and_below_topics != []:
            raise not_in_version(m, "v3_and_below_topics", version)
    else:
        out += _pack_qh(m.v3_and_below_producer_id, m.v3_and_below_producer_epoch)
        if version >= 3:
            put_compact_count(out, len(m.v3_and_below_topics))
        else:
            put_count(out, len(m.v3_and_below_topics))
        for v3_and_below_topics_item in m.v3_and_below_topics:
            _write_add_partitions_to_txn_topic(out, v3_and_below_topics_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_add_partitions_to_txn_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnResult, int]:
    m = object.__new__(AddPartitionsToTxnResult)
    m.transactional_id, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 3)
    topic_results_: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        topic_results_item, pos = _read_add_partitions_to_txn_topic_result(buf, pos, limit, version)
        topic_results_.append(topic_results_item)
    m.topic_results = topic_results_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_add_partitions_to_txn_result(out: bytearray, m: AddPartitionsToTxnResult, version: int) -> None:
    put_compact_string(out, m.transactional_id)
    put_compact_count(out, len(m.topic_results))
    for topic_results_item in m.topic_results:
        _write_add_partitions_to_txn_topic_result(out, topic_results_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_add_partitions_to_txn_partition_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    m = object.__new__(AddPartitionsToTxnPartitionResult)
    m.partition_index, m.partition_error_code = _unpack_ih(buf, pos)
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


def _write_add_partitions_to_txn_partition_result(out: bytearray, m: AddPartitionsToTxnPartitionResult, version: int) -> None:
    out += _pack_ih(m.partition_index, m.partition_error_code)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_add_partitions_to_txn_topic_result(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnTopicResult, int]:
    m = object.__new__(AddPartitionsToTxnTopicResult)
    if version >= 3:
        m.name, pos = read_compact_string(buf, pos, limit)
    else:
        m.name, pos = read_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 6) if version >= 3 else read_count(buf, pos, limit, 6)
    results_by_partition_: list[AddPartitionsToTxnPartitionResult] = []
    for _ in range(count):
        results_by_partition_item, pos = _read_add_partitions_to_txn_partition_result(buf, pos, limit, version)
        results_by_partition_.append(results_by_partition_item)
    m.results_by_partition = results_by_partition_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_partitions_to_txn_topic_result(out: bytearray, m: AddPartitionsToTxnTopicResult, version: int) -> None:
    if version >= 3:
        put_compact_string(out, m.name)
    else:
        put_string(out, m.name)
    if version >= 3:
        put_compact_count(out, len(m.results_by_partition))
    else:
        put_count(out, len(m.results_by_partition))
    for results_by_partition_item in m.results_by_partition:
        _write_add_partitions_to_txn_partition_result(out, results_by_partition_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


def _read_add_partitions_to_txn_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[AddPartitionsToTxnResponse, int]:
    m = object.__new__(AddPartitionsToTxnResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    if version >= 4:
        (m.error_code,) = _unpack_h(buf, pos)
        pos += 2
        count, pos = read_compact_count(buf, pos, limit, 3)
        results_by_transaction_: list[AddPartitionsToTxnResult] = []
        for _ in range(count):
            results_by_transaction_item, pos = _read_add_partitions_to_txn_result(buf, pos, limit, version)
            results_by_transaction_.append(results_by_transaction_item)
        m.results_by_transaction = results_by_transaction_
        m.results_by_topic_v3_and_below = []
    else:
        m.error_code = 0
        m.results_by_transaction = []
        count, pos = read_compact_count(buf, pos, limit, 3) if version >= 3 else read_count(buf, pos, limit, 3)
        results_by_topic_v3_and_below_: list[AddPartitionsToTxnTopicResult] = []
        for _ in range(count):
            results_by_topic_v3_and_below_item, pos = _read_add_partitions_to_txn_topic_result(buf, pos, limit, version)
            results_by_topic_v3_and_below_.append(results_by_topic_v3_and_below_item)
        m.results_by_topic_v3_and_below = results_by_topic_v3_and_below_
    if version >= 3:
        if buf[pos] == 0:
            m.unknown_tags = NO_TAGS
            pos += 1
        else:
            m.unknown_tags, pos = read_tags(buf, pos, limit)
    else:
        m.unknown_tags = NO_TAGS
    return m, pos


def _write_add_partitions_to_txn_response(out: bytearray, m: AddPartitionsToTxnResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    if version >= 4:
        out += _pack_h(m.error_code)
        put_compact_count(out, len(m.results_by_transaction))
        for results_by_transaction_item in m.results_by_transaction:
            _write_add_partitions_to_txn_result(out, results_by_transaction_item, version)
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
            _write_add_partitions_to_txn_topic_result(out, results_by_topic_v3_and_below_item, version)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)
