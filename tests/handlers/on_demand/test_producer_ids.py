"""Producer ids are taken from the controller by the block, and a client is told what it can understand."""

from __future__ import annotations

import asyncio

import pytest

from ottla.controller.interface import ProducerIdRange
from ottla.handlers.on_demand.producer_ids import ProducerIds
from ottla.model import BrokerId, ErrorCode
from ottla.ports.memory.loop import VirtualLoop


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


class IsCutOff:
    """A controller that answers when the links are whole again."""

    def __init__(self) -> None:
        self.healed = asyncio.Event()

    async def allocate_producer_ids(self, broker_id: BrokerId) -> ProducerIdRange:
        await self.healed.wait()
        return ProducerIdRange(1000, 2, ErrorCode.NONE)


def test_who_waits_for_a_controller_that_does_not_answer_is_asked_to_come_again() -> None:
    """A producer may have an id from another broker meanwhile."""

    async def scenario() -> None:
        controller, began = IsCutOff(), asyncio.get_running_loop().time()
        ids = ProducerIds(controller, BrokerId(1))  # type: ignore[arg-type]
        told: list[int | ErrorCode] = []
        ids.ask(told.append)
        assert await asyncio.gather(*(ids.next() for _ in range(3))) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
        assert told == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        assert await ids.next() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert asyncio.get_running_loop().time() - began < 5
        asyncio.get_running_loop().call_later(0.5, controller.healed.set)
        assert {await ids.next(), await ids.next()} == {1000, 1001}

    loop = VirtualLoop(seed=1)
    loop.run_until_complete(scenario())
    loop.close()
