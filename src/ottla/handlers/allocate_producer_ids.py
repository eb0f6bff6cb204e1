"""AllocateProducerIds (67), version 0: a broker gets a block of producer ids from the controller."""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import of_registered_broker
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    controller = call.services.own_controller
    if not controller.active:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    refusal = of_registered_broker(call, request.broker_id, request.broker_epoch)
    if refusal is not ErrorCode.NONE:
        return AllocateProducerIdsResponse(error_code=refusal)
    block = await controller.allocate_producer_ids(BrokerId(request.broker_id))
    return AllocateProducerIdsResponse(
        error_code=block.error, producer_id_start=block.first, producer_id_len=block.length
    )
