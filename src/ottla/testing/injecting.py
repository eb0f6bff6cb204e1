"""What may befall a producer's transaction, at the moment that a test wants it to.

A time-out is decided by the coordinator, and a fence comes from another producer: both go the way that they always go,
and only what would bring them about, the time and that producer, is left out.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from ottla.client.errors import error_of
from ottla.handlers.calls.call import Services
from ottla.model import TRANSACTION_TOPIC, ErrorCode
from ottla.steps import at_once
from ottla.transactions.asked import ProducerAnswer, ProducerInit
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.states import ENDING

TransactionFault = Literal["timeout", "fence"]

#: What passes by itself: the id is loaded, or an end is under way.
_PASSES: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS})
_ENDING: Final = frozenset(status.kafka_name for status in ENDING)
#: Until it is asked again.
_PAUSE_S: Final = 0.002


async def inject(services: Services, fault: TransactionFault, transactional_id: str) -> None:
    """Returns when all markers of what it has ended are written."""
    if fault not in ("timeout", "fence"):
        raise ValueError(f'a transaction meets a "timeout" or a "fence", and no {fault!r}')
    if services.metadata.topic(TRANSACTION_TOPIC) is None:
        raise error_of(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, about=transactional_id)
    coordinator = services.transactions
    attempt = _time_out if fault == "timeout" else _fence
    while error := await attempt(coordinator, transactional_id):
        if error not in _PASSES:
            raise error_of(error, about=transactional_id)
        await asyncio.sleep(_PAUSE_S)
    while at_once(coordinator.describing(transactional_id)).transaction_state in _ENDING:  # noqa: ASYNC110 - markers tell nobody
        await asyncio.sleep(_PAUSE_S)


async def _time_out(coordinator: TransactionCoordinator, transactional_id: str) -> ErrorCode:
    answer = asyncio.get_running_loop().create_future()
    coordinator.time_out(coordinator.led.now(), transactional_id, answer.set_result)
    error: ErrorCode = await answer
    return error


async def _fence(coordinator: TransactionCoordinator, transactional_id: str) -> ErrorCode:
    known = at_once(coordinator.describing(transactional_id))
    if known.error_code:
        return ErrorCode(known.error_code)
    answer = asyncio.get_running_loop().create_future()
    asked = ProducerInit(transactional_id, known.transaction_timeout_ms)
    coordinator.init_producer_id(coordinator.led.now(), asked, answer.set_result)
    given: ProducerAnswer = await answer
    return given.error
