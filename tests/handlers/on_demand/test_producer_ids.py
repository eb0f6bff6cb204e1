"""Producer ids are taken from the controller by the block, and a client is told what it can understand."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.interface import ProducerIdRange
from ottla.handlers.on_demand.producer_ids import ProducerIds
from ottla.model import BrokerId, ErrorCode


class Answers:
    """A controller that has one answer after the other."""

    def __init__(self, *blocks: ProducerIdRange) -> None:
        self._blocks = list(blocks)

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        return self._blocks.pop(0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_what_brokers_say_to_each_other_is_no_answer_for_clients(said: ErrorCode, told: ErrorCode) -> None:
    """A broker whose session was over and began anew asks before the controller has heard of it (seed 991000039)."""
    controller = Answers(ProducerIdRange(0, 0, said), ProducerIdRange(1000, 2, ErrorCode.NONE))

    async def taken() -> list[int]:
        ids = ProducerIds(controller, BrokerId(1))  # type: ignore[arg-type]
        return [await ids.next() for _ in range(3)]

    assert asyncio.run(taken()) == [told, 1000, 1001]
