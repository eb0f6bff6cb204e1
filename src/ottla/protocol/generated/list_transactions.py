"""The transactions that a broker coordinates.

Made from schemas/list_transactions.schema by `python -m ottla.protocol.compile`: change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from ottla.protocol.message import Message, Structure, bad_bytes, bad_value, not_in_version, undecodable, unencodable
from ottla.protocol.primitives import (
    Buffer,
    DECODE_FAULTS,
    EMPTY_LIST,
    ENCODE_FAULTS,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_compact_string,
    put_numbers,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
)

_pack_ih = Struct(">ih").pack
_pack_q = Struct(">q").pack
_unpack_ih = Struct(">ih").unpack_from
_unpack_q = Struct(">q").unpack_from

class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern", "unknown_tags",)
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY_LIST,
        producer_id_filters: list[int] = EMPTY_LIST,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY_LIST else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY_LIST else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(ListTransactionsRequest, version)
        try:
            _write_list_transactions_request(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListTransactionsRequest, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListTransactionsRequest, int]:
        if not 0 <= version <= 2:
            raise undecodable(ListTransactionsRequest, version)
        try:
            return _read_list_transactions_request(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListTransactionsRequest, version, fault) from fault


class TransactionState(Structure):
    __slots__ = ("transactional_id", "producer_id", "transaction_state", "unknown_tags",)

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state
        self.unknown_tags = unknown_tags


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states", "unknown_tags",)
    API_KEY = 66
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_FROM = 0
    HAS_ARRAYS = True

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY_LIST,
        transaction_states: list[TransactionState] = EMPTY_LIST,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY_LIST else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY_LIST else transaction_states
        self.unknown_tags = unknown_tags

    def encode_into(self, out: bytearray, version: int) -> None:
        if not 0 <= version <= 2:
            raise unencodable(ListTransactionsResponse, version)
        try:
            _write_list_transactions_response(out, self, version)
        except ENCODE_FAULTS as fault:
            raise bad_value(ListTransactionsResponse, version, fault) from fault

    @classmethod
    def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[ListTransactionsResponse, int]:
        if not 0 <= version <= 2:
            raise undecodable(ListTransactionsResponse, version)
        try:
            return _read_list_transactions_response(buf, pos, len(buf), version)
        except DECODE_FAULTS as fault:
            raise bad_bytes(ListTransactionsResponse, version, fault) from fault


def _read_list_transactions_request(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListTransactionsRequest, int]:
    m = object.__new__(ListTransactionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_state_filters = read_compact_string
    state_filters_: list[str] = []
    for _ in range(count):
        state_filters_item, pos = read_state_filters(buf, pos, limit)
        state_filters_.append(state_filters_item)
    m.state_filters = state_filters_
    count, pos = read_compact_count(buf, pos, limit, 8)
    m.producer_id_filters, pos = read_numbers(buf, pos, count, "q", 8)
    if version >= 1:
        (m.duration_filter,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.duration_filter = -1
    if version >= 2:
        m.transactional_id_pattern, pos = read_compact_nullable_string(buf, pos, limit)
    else:
        m.transactional_id_pattern = None
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_list_transactions_request(out: bytearray, m: ListTransactionsRequest, version: int) -> None:
    put_compact_count(out, len(m.state_filters))
    put_state_filters = put_compact_string
    for state_filters_item in m.state_filters:
        put_state_filters(out, state_filters_item)
    put_compact_count(out, len(m.producer_id_filters))
    put_numbers(out, m.producer_id_filters, "q")
    if version >= 1:
        out += _pack_q(m.duration_filter)
    else:
        if m.duration_filter != -1:
            raise not_in_version(m, "duration_filter", version)
    if version >= 2:
        put_compact_nullable_string(out, m.transactional_id_pattern)
    else:
        if m.transactional_id_pattern is not None:
            raise not_in_version(m, "transactional_id_pattern", version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_transaction_state(buf: Buffer, pos: int, limit: int, version: int) -> tuple[TransactionState, int]:
    m = object.__new__(TransactionState)
    m.transactional_id, pos = read_compact_string(buf, pos, limit)
    (m.producer_id,) = _unpack_q(buf, pos)
    pos += 8
    m.transaction_state, pos = read_compact_string(buf, pos, limit)
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
    return m, pos


def _write_transaction_state(out: bytearray, m: TransactionState, version: int) -> None:
    put_compact_string(out, m.transactional_id)
    out += _pack_q(m.producer_id)
    put_compact_string(out, m.transaction_state)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


def _read_list_transactions_response(buf: Buffer, pos: int, limit: int, version: int) -> tuple[ListTransactionsResponse, int]:
    m = object.__new__(ListTransactionsResponse)
    m.throttle_time_ms, m.error_code = _unpack_ih(buf, pos)
    pos += 6
    count, pos = read_compact_count(buf, pos, limit, 1)
    read_unknown_state_filters = read_compact_string
    unknown_state_filters_: list[str] = []
    for _ in range(count):
        unknown_state_filters_item, pos = read_unknown_state_filters(buf, pos, limit)
        unknown_state_filters_.append(unknown_state_filters_item)
    m.unknown_state_filters = unknown_state_filters_
    count, pos = read_compact_count(buf, pos, limit, 11)
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


def _write_list_transactions_response(out: bytearray, m: ListTransactionsResponse, version: int) -> None:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.unknown_state_filters))
    put_unknown_state_filters = put_compact_string
    for unknown_state_filters_item in m.unknown_state_filters:
        put_unknown_state_filters(out, unknown_state_filters_item)
    put_compact_count(out, len(m.transaction_states))
    for transaction_states_item in m.transaction_states:
        _write_transaction_state(out, transaction_states_item, version)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)
