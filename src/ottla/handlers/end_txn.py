"""EndTxn (26), versions 0 to 5: commits or aborts a producer's transaction.

From version 5 on each transaction has an epoch of its own, and the answer has the one of the next.
"""

from __future__ import annotations

from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.transaction_calls import END_TXN_V2, in_words_of, may_write, now_of
from ottla.model import ErrorCode
from ottla.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from ottla.transactions.asked import EndAsked, ProducerAnswer
from ottla.transactions.transaction import EPOCH_A_TRANSACTION

_FENCED_SINCE: Final = 2


def handle(call: Call, request: EndTxnRequest) -> EndTxnResponse | Later:
    if not may_write(call, request.transactional_id):
        return ended_answer(call, ProducerAnswer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    answer, asked = Later(), asked_to_end(call, request)
    call.services.transactions.end(now_of(call), asked, lambda found: answer.set(ended_answer(call, found)))
    return answer


def asked_to_end(call: Call, request: EndTxnRequest) -> EndAsked:
    return EndAsked(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_A_TRANSACTION if call.version >= END_TXN_V2 else 0,
    )


def ended_answer(call: Call, answer: ProducerAnswer) -> EndTxnResponse:
    return EndTxnResponse(
        throttle_time_ms=call.throttle_ms(),
        error_code=in_words_of(call.version, _FENCED_SINCE, answer.error),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )
