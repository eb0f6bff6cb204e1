"""InitProducerId (22), versions 0 to 5, for idempotent producers: a fresh id with epoch 0. Version 6 is not final.

A producer with a transactional id belongs to its transaction coordinator, which this broker does not run yet: it is
sent to look for one again.
"""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.model import ErrorCode
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.security.authorizer import Operation, Resource


async def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    error = _refusal(call, request)
    if error is not None:
        return InitProducerIdResponse(throttle_time_ms=call.throttle_ms(), error_code=error, producer_epoch=-1)
    producer_id = await call.services.producer_ids.next()
    if isinstance(producer_id, ErrorCode):
        return InitProducerIdResponse(throttle_time_ms=call.throttle_ms(), error_code=producer_id, producer_epoch=-1)
    return InitProducerIdResponse(throttle_time_ms=call.throttle_ms(), producer_id=producer_id, producer_epoch=0)


def _refusal(call: Call, request: InitProducerIdRequest) -> ErrorCode | None:
    if request.transactional_id is not None:
        if not request.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not call.allowed(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return ErrorCode.NOT_COORDINATOR
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    if not call.allowed_on_cluster(Operation.IDEMPOTENT_WRITE):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return None
