"""A stop begins with the controller: others lead this broker's partitions before it is gone (ControlledShutdown)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.config.slices import BrokerConfig
from ottla.controller.interface import ShutdownAnswer
from ottla.handlers.calls.call import Services
from ottla.model import BrokerId, ErrorCode

log_event = logs.logger("server")

#: For one try: a controller that answers does so in milliseconds, and a stop that waits for a dead one is no stop.
_TRY_S_MAX: Final = 5.0
#: Between two looks at who else is there.
_LOOK_S: Final = 0.1
#: How long a broker goes on serving that leads no more. A client learns from its answers that others lead, asks it who
#: they are, and asks again 100 ms later where that came too early. One that knew no other broker, and was hung up on in
#: between, would wait for its next look at the metadata instead: up to a second.
LINGER_S: Final = 0.2


async def hand_over(config: BrokerConfig, services: Services, broker_epoch: Callable[[], int]) -> None:
    """Returns when nothing is led here any more that another broker could lead, or when that takes too many tries.

    A broker that is alone has nobody to hand anything over to. Its session may end meanwhile, and it is registered
    anew then: each try is under the `broker_epoch` of its moment.
    """
    if not config.controlled_shutdown or _is_alone(services):
        return
    led = bool(services.replicas.leaders)
    why = "it was not asked"
    for attempt in range(max(1, config.controlled_shutdown_retries_max)):
        if attempt and await _alone_within(services, config.controlled_shutdown_retry_backoff_ms / 1000):
            return
        answer = await _asked(services, broker_epoch())
        if answer is None:
            why = "the controller did not answer"
            continue
        if answer.error is ErrorCode.NONE and not answer.remaining:
            log_event.info("others lead this broker's partitions", tries=attempt + 1)
            if led:
                await asyncio.sleep(LINGER_S)
            return
        why = answer.error.name if answer.error is not ErrorCode.NONE else f"{len(answer.remaining)} are led here still"
    log_event.warning("the broker stops although it leads partitions", reason=why)


async def _asked(services: Services, broker_epoch: int) -> ShutdownAnswer | None:
    """What the controller answers; None where it does not, or no broker is left that could."""
    asking = asyncio.ensure_future(services.controller.shut_down(BrokerId(services.broker_id), broker_epoch))
    left = _TRY_S_MAX
    while left > 0 and not asking.done() and not _is_alone(services):
        await asyncio.wait([asking], timeout=min(left, _LOOK_S))
        left -= _LOOK_S
    if not asking.done():
        asking.cancel()
        await asyncio.wait([asking])
        return None
    return asking.result()


def _is_alone(services: Services) -> bool:
    return not services.metadata.brokers.keys() - {services.broker_id}


async def _alone_within(services: Services, seconds: float) -> bool:
    """Waits, and no longer than there are others: where all stop, the last one has nobody to wait for."""
    left = seconds
    while left > 0 and not _is_alone(services):
        await asyncio.sleep(min(left, _LOOK_S))
        left -= _LOOK_S
    return _is_alone(services)
