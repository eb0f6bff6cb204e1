"""The state of transactions.

Made from schemas/describe_transactions.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_string,
    read_numbers,
    read_tags,
)

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_iqqh = Struct(">iqqh").pack
_unpack_h = Struct(">h").unpack_from
_unpack_i = Struct(">i").unpack_from
_unpack_iqqh = Struct(">iqqh").unpack_from

class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids", "unknown_tags",)
    API_KEY = 65
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY_LIST else transactional_ids
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeTransactionsRequest, version)
        try:
            _write_describe_transactions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeTransactionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeTransactionsRequest, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeTransactionsRequest, version)
        try:
            return _read_describe_transactions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeTransactionsRequest, version, fault) from fault


class TopicData(Structure):
    __slots__ = ("topic", "partitions", "unknown_tags",)

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY_LIST else partitions
        self.unknown_tags = unknown_tags


class TransactionState(Structure):
    __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics", "unknown_tags",)

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is EMPTY_LIST else topics
        self.unknown_tags = unknown_tags


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states", "unknown_tags",)
    API_KEY = 65
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY_LIST else transaction_states
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 0:
            raise unencodable(DescribeTransactionsResponse, version)
        try:
            _write_describe_transactions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(DescribeTransactionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[DescribeTransactionsResponse, int]:
        if not 0 <= version <= 0:
            raise undecodable(DescribeTransactionsResponse, version)
        try:
            return _read_describe_transactions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(DescribeTransactionsResponse, version, fault) from fault


def _read_describe_transactions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTransactionsRequest, int]:
    m = object.__new__(DescribeTransactionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_transactional_ids = read_compact_string
    transactional_ids_: list[str] = []
    for _ in range(count):
        transactional_ids_item, pos = read_transactional_ids(buf, pos, limit)
        transactional_ids_.append(transactional_ids_item)
    m.transactional_ids = transactional_ids_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_transactions_request(out: bytearray, m: DescribeTransactionsRequest, version: int) -> None:
    put_compact_count(out, len(m.transactional_ids))
    put_transactional_ids = put_compact_string
    for transactional_ids_item in m.transactional_ids:
        put_transactional_ids(out, transactional_ids_item)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_topic_data(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TopicData, int]:
    m = object.__new__(TopicData)
    m.topic, pos = read_compact_string(buf, pos, limit)
    count, pos = read_compact_count(buf, pos, limit, 4)
    m.partitions, pos = read_numbers(buf, pos, count, "i", 4)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_topic_data(out: bytearray, m: TopicData, version: int) -> None:
    put_compact_string(out, m.topic)
    put_compact_count(out, len(m.partitions))
    put_numbers(out, m.partitions, "i")
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_transaction_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TransactionState, int]:
    m = object.__new__(TransactionState)
    (m.error_code,) = _unpack_h(buf, pos)
    pos += 2
    m.transactional_id, pos = read_compact_string(buf, pos, limit)
    m.transaction_state, pos = read_compact_string(buf, pos, limit)
    m.transaction_timeout_ms, m.transaction_start_time_ms, m.producer_id, m.producer_epoch = _unpack_iqqh(buf, pos)
    pos += 22
    count, pos = read_compact_count(buf, pos, limit, 3)
    topics_: list[TopicData] = []
    for _ in range(count):
        topics_item, pos = _read_topic_data(buf, pos, limit, version)
        topics_.append(topics_item)
    m.topics = topics_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_transaction_state(out: bytearray, m: TransactionState, version: int) -> None:
    out += _pack_h(m.error_code)
    put_compact_string(out, m.transactional_id)
    put_compact_string(out, m.transaction_state)
    out += _pack_iqqh(m.transaction_timeout_ms, m.transaction_start_time_ms, m.producer_id, m.producer_epoch)
    put_compact_count(out, len(m.topics))
    for topics_item in m.topics:
        _write_topic_data(out, topics_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_describe_transactions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[DescribeTransactionsResponse, int]:
    m = object.__new__(DescribeTransactionsResponse)
    (m.throttle_time_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 28)
    transaction_states_: list[TransactionState] = []
    for _ in range(count):
        transaction_states_item, pos = _read_transaction_state(buf, pos, limit, version)
        transaction_states_.append(transaction_states_item)
    m.transaction_states = transaction_states_
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_describe_transactions_response(out: bytearray, m: DescribeTransactionsResponse, version: int) -> None:
    out += _pack_i(m.throttle_time_ms)
    put_compact_count(out, len(m.transaction_states))
    for transaction_states_item in m.transaction_states:
        _write_transaction_state(out, transaction_states_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
