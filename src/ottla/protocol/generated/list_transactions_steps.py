"""The transactions that a broker coordinates.

In steps; made from schemas/list_transactions.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import getsizeof
from typing import Any

from ottla.protocol.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    _write_transaction_state,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_string,
    put_tags,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    read_numbers,
    read_tags,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    NUMBERS_A_PIECE,
    PIECE,
    Pace,
    read_many_numbers,
    read_strings,
    write_strings,
    write_structs,
)
from ottla.steps import Steps

_pack_ih = Struct(">ih").pack
_unpack_q = Struct(">q").unpack_from


def _read_list_transactions_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[ListTransactionsRequest, int]]:
    m = object.__new__(ListTransactionsRequest)
    count, pos = read_compact_count(buf, pos, limit, 1)
    allowance.take_array(count, 304)
    m.state_filters, pos = yield from read_strings(read_compact_string, buf, pos, limit, count, allowance)
    count, pos = read_compact_count(buf, pos, limit, 8)
    if count > NUMBERS_A_PIECE:
        allowance.take_array(count, 304)
        m.producer_id_filters, pos = yield from read_many_numbers(buf, pos, count, "q", 8, allowance)
    else:
        m.producer_id_filters, pos = read_numbers(buf, pos, count, "q", 8)
        allowance.left -= count * 304
        allowance.work -= count // PIECE
    if version >= 1:
        (m.duration_filter,) = _unpack_q(buf, pos)
        pos += 8
    else:
        m.duration_filter = -1
    if version >= 2:
        m.transactional_id_pattern, pos = read_compact_nullable_string(buf, pos, limit)
        allowance.left -= getsizeof(m.transactional_id_pattern)
    else:
        m.transactional_id_pattern = None
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_list_transactions_response_steps(out: bytearray, m: ListTransactionsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_count(out, len(m.unknown_state_filters))
    yield from write_strings(out, m.unknown_state_filters, put_compact_string, pace)
    put_compact_count(out, len(m.transaction_states))
    if len(m.transaction_states) > FEW:
        yield from write_structs(out, m.transaction_states, _write_transaction_state, version, pace)
    else:
        for transaction_states_item in m.transaction_states:
            _write_transaction_state(out, transaction_states_item, version)
        pace.work -= len(m.transaction_states)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListTransactionsRequest: _read_list_transactions_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ListTransactionsResponse: _write_list_transactions_response_steps,
}
