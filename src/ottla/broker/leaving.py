"""A stop begins with the controller: others lead this broker's partitions before it is gone (ControlledShutdown)."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla import logs
from ottla.config.slices import BrokerConfig
from ottla.handlers.calls.call import Services
from ottla.model import BrokerId, ErrorCode

log_event = logs.logger("server")

#: For one try: a controller that answers does so in milliseconds, and a stop that waits for a dead one is no stop.
_TRY_S_MAX: Final = 5.0


async def hand_over(config: BrokerConfig, services: Services, broker_epoch: int) -> None:
    """Returns when nothing is led here any more that another broker could lead, or when that takes too many tries.

    A broker that is alone has nobody to hand anything over to.
    """
    others = services.metadata.brokers.keys() - {services.broker_id}
    if not config.controlled_shutdown or not others:
        return
    why = "it was not asked"
    for attempt in range(max(1, config.controlled_shutdown_retries_max)):
        if attempt:
            await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
        try:
            async with asyncio.timeout(_TRY_S_MAX):
                answer = await services.controller.shut_down(BrokerId(services.broker_id), broker_epoch)
        except TimeoutError:
            why = "the controller did not answer"
            continue
        if answer.error is ErrorCode.NONE and not answer.remaining:
            log_event.info("others lead this broker's partitions", tries=attempt + 1)
            return
        why = answer.error.name if answer.error is not ErrorCode.NONE else f"{len(answer.remaining)} are led here still"
    log_event.warning("the broker stops although it leads partitions", reason=why)
