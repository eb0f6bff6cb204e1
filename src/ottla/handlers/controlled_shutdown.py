"""ControlledShutdown (7), versions 0 to 3: a broker that is about to stop has its leaderships moved away.

The controller answers with what the broker still leads: it asks again until that is nothing, or stops all the same.
"""

from __future__ import annotations

from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import from_broker
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.generated.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


async def handle(call: Call, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    refusal = from_broker(call)
    if refusal is not ErrorCode.NONE:
        return ControlledShutdownResponse(error_code=refusal, remaining_partitions=[])
    controller = call.services.own_controller
    if not controller.active:
        return ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER, remaining_partitions=[])
    answer = await controller.shut_down(BrokerId(request.broker_id), request.broker_epoch)
    return ControlledShutdownResponse(
        error_code=answer.error,
        remaining_partitions=[
            RemainingPartition(topic_name=tp.topic, partition_index=tp.partition) for tp in answer.remaining
        ],
    )
