"""InitProducerId (22), versions 0 to 5. Version 6, with Kafka's two-phase commit, is not final.

An idempotent producer gets a fresh id with epoch 0, from any broker. One with a transactional id gets the id's producer
under the next epoch, from the id's coordinator.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import Later
from ottla.handlers.calls.transaction_calls import in_words_of, may_write, now_of
from ottla.model import NO_PRODUCER_ID, ErrorCode
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.security.authorizer import Operation
from ottla.transactions.asked import ProducerAnswer, ProducerInit

_FENCED_SINCE: Final = 4


def handle(
    call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | Later | Awaitable[InitProducerIdResponse]:
    error = _refusal(call, request)
    if error is not None:
        return _answered(call, ProducerAnswer(error))
    if request.transactional_id is None:
        return _fresh(call)
    answer = Later()
    asked = ProducerInit(
        request.transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
    )
    call.services.transactions.init_producer_id(now_of(call), asked, lambda found: answer.set(_answered(call, found)))
    return answer


async def _fresh(call: Call) -> InitProducerIdResponse:
    producer_id = await call.services.producer_ids.next()
    if isinstance(producer_id, ErrorCode):
        return _answered(call, ProducerAnswer(producer_id))
    return _answered(call, ProducerAnswer(ErrorCode.NONE, producer_id, 0))


def _answered(call: Call, answer: ProducerAnswer) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time_ms=call.throttle_ms(),
        error_code=in_words_of(call.version, _FENCED_SINCE, answer.error),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def _refusal(call: Call, request: InitProducerIdRequest) -> ErrorCode | None:
    if request.transactional_id is not None:
        if not may_write(call, request.transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not call.allowed_on_cluster(Operation.IDEMPOTENT_WRITE):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    return None
