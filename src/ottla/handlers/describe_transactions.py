"""DescribeTransactions (65), version 0: the state of transactional ids, and the partitions of their transactions."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.group_calls import steps_of_name
from ottla.handlers.calls.transaction_calls import may_describe
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from ottla.security.authorizer import Operation
from ottla.steps import Steps, pieces

#: Of all ids of an answer: eight megabytes. Those beyond it get INVALID_REQUEST, and may be asked for by themselves.
PARTITIONS_MAX: Final = 2_000_000


def handle(call: Call, request: DescribeTransactionsRequest) -> Steps[DescribeTransactionsResponse]:
    # An id that is named again has the same answer, which takes no memory a second time.
    known: dict[str, _Described] = {}
    states: list[TransactionState] = []
    room = PARTITIONS_MAX
    for transactional_id in request.transactional_ids:
        found = known.get(transactional_id)
        if found is None:
            found = known[transactional_id] = yield from _described(call, transactional_id)
            yield from steps_of_name(transactional_id)
        if found.partitions > room:
            state = TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
            # Whatever has more is refused from here on, and so is this one where it is named again.
            room, known[transactional_id] = 0, _Described(state, 0)
            found = known[transactional_id]
        room -= found.partitions
        states.append(found.state)
        yield
    return DescribeTransactionsResponse(throttle_time_ms=call.throttle_ms(), transaction_states=states)


class _Described(NamedTuple):
    state: TransactionState
    #: How many the answer has of it.
    partitions: int


def _described(call: Call, transactional_id: str) -> Steps[_Described]:
    if not may_describe(call, transactional_id):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _Described(TransactionState(error_code=error, transactional_id=transactional_id), 0)
    state = yield from call.services.transactions.describing(transactional_id)
    topics, state.topics, count = state.topics, [], 0
    for piece in pieces(topics):
        allowed = [topic for topic in piece if call.allowed_on_topic(Operation.DESCRIBE, topic.topic)]
        state.topics += allowed
        count += sum(len(topic.partitions) for topic in allowed)
        yield
    return _Described(state, count)
