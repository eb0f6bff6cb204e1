"""ListTransactions (66), versions 0 to 2: the transactional ids that this broker coordinates.

By state and producer id; from version 1 on by how long the transaction is open, from version 2 on by an expression
that the whole id is to match.
"""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.loading import EXPRESSIONS, module_loaded
from ottla.handlers.calls.transaction_calls import may_describe
from ottla.handlers.calls.turns import PausingSteps
from ottla.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.steps import pieces


def handle(call: Call, request: ListTransactionsRequest) -> PausingSteps[ListTransactionsResponse]:
    if request.transactional_id_pattern:
        yield from module_loaded(call.services.workers, EXPRESSIONS)
    response = yield from call.services.transactions.list_transactions(request, call.now_ms)
    response.throttle_time_ms = call.throttle_ms()
    if not call.services.authorizer.allows_all:
        listed, response.transaction_states = response.transaction_states, []
        for piece in pieces(listed):
            response.transaction_states += [each for each in piece if may_describe(call, each.transactional_id)]
            yield None
    return response
