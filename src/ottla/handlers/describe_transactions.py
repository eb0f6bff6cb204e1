"""DescribeTransactions (65), version 0: the state of transactional ids, and the partitions of their transactions."""

from __future__ import annotations

from typing import Final

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
from ottla.steps import Steps

#: Of all ids of an answer: eight megabytes. Those beyond it get INVALID_REQUEST, and may be asked for by themselves.
PARTITIONS_MAX: Final = 2_000_000


def handle(call: Call, request: DescribeTransactionsRequest) -> Steps[DescribeTransactionsResponse]:
    # An id that is named again has the same answer, which takes no memory a second time.
    known: dict[str, TransactionState] = {}
    states: list[TransactionState] = []
    room = PARTITIONS_MAX
    for transactional_id in request.transactional_ids:
        if transactional_id not in known:
            known[transactional_id] = _described(call, transactional_id)
            yield from steps_of_name(transactional_id)
        state = known[transactional_id]
        count = sum(len(topic.partitions) for topic in state.topics)
        if count > room:
            state = TransactionState(error_code=ErrorCode.INVALID_REQUEST, transactional_id=transactional_id)
        room -= min(count, room)
        states.append(state)
        yield
    return DescribeTransactionsResponse(throttle_time_ms=call.throttle_ms(), transaction_states=states)


def _described(call: Call, transactional_id: str) -> TransactionState:
    if not may_describe(call, transactional_id):
        return TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id=transactional_id
        )
    state = call.services.transactions.describe(transactional_id)
    state.topics = [topic for topic in state.topics if call.allowed_on_topic(Operation.DESCRIBE, topic.topic)]
    return state
