"""The leaders' questions on their way to the controller: one request at a time, and again where nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from tests.replication.roles_world import OTHER, US, RolesWorld
from tests.storage.log_world import append

from ottla.broker.isr_requests import IsrRequests
from ottla.controller.interface import IsrChange, IsrResult
from ottla.metadata import BrokerEndpoints, MetadataCache, MetadataUpdate
from ottla.model import BrokerId, Epoch, ErrorCode
from ottla.replication.isr_changes import IsrAsk
from ottla.replication.replicas import Replicas

THIRD = 3
ALL = (US, OTHER, THIRD)

Answer = Callable[[IsrChange], IsrResult | None]


class PlayedController:
    """Answers as the test says, when it says so."""

    def __init__(self) -> None:
        self.requests: list[list[IsrChange]] = []
        self.at_once = 0
        self.at_once_max = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.faults: list[BaseException] = []
        self.answer: Answer = self.done

    def done(self, change: IsrChange) -> IsrResult | None:
        state = RolesWorld.state(
            change.leader_epoch,
            replicas=ALL,
            isr=change.isr,
            partition=change.tp.partition,
            partition_epoch=change.partition_epoch + 1,
        )
        return IsrResult(change.tp, ErrorCode.NONE, state)

    async def alter_isr(self, broker_id: BrokerId, changes: Sequence[IsrChange]) -> list[IsrResult]:
        assert broker_id == US
        self.requests.append(list(changes))
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        try:
            await self.may_answer.wait()
        finally:
            self.at_once -= 1
        if self.faults:
            raise self.faults.pop()
        return [answer for change in changes if (answer := self.answer(change)) is not None]


class RequestsWorld(RolesWorld):
    def __init__(self, partitions: int = 1) -> None:
        super().__init__()
        self.metadata = MetadataCache()
        brokers = [BrokerEndpoints(BrokerId(each), (), None, 70 + each) for each in ALL]
        self.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), brokers=brokers))
        states = [self.state(1, replicas=ALL, isr=(US, OTHER), partition=number) for number in range(partitions)]
        self.replicas.apply(states, lambda _: self.config)
        self.controller = PlayedController()
        controller: Any = self.controller
        self.requests = IsrRequests(BrokerId(US), self.replicas, controller, self.metadata, self.ports.clock)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.ports.loop.run_until_complete(work)

    def join(self, partition: int = 0, broker_epoch: int = 73) -> None:
        replicas: Replicas = self.replicas
        leader = next(each for tp, each in replicas.leaders.items() if tp.partition == partition)
        replicas.follower_fetched(leader, THIRD, 0, broker_epoch, None, log_start=0)

    def members(self, partition: int = 0) -> set[int]:
        return next(set(each.isr.members) for tp, each in self.replicas.leaders.items() if tp.partition == partition)


def test_a_change_is_asked_for_with_epochs_and_answered() -> None:
    world = RequestsWorld()

    async def work() -> None:
        world.replicas.follower_fetched(world.leader, OTHER, 0, 72, None, log_start=0)
        world.join()
        await asyncio.sleep(1)

    world.run(work())
    ((change,),) = world.controller.requests
    assert (change.isr, change.isr_epochs, change.leader_epoch, change.partition_epoch) == (ALL, (71, 72, 73), 1, 0)
    assert world.members() == set(ALL)
    assert world.leader.partition_epoch == 1


def test_one_request_is_under_way_and_the_next_has_all_that_was_asked_since() -> None:
    world = RequestsWorld(partitions=5)

    async def work() -> None:
        world.controller.may_answer.clear()
        for number in range(5):
            world.join(number)
            await asyncio.sleep(0.1)
        world.controller.may_answer.set()
        await asyncio.sleep(1)

    world.run(work())
    assert [len(request) for request in world.controller.requests] == [1, 4]
    assert world.controller.at_once_max == 1
    assert all(world.members(number) == set(ALL) for number in range(5))


@pytest.mark.parametrize("fault", [ConnectionError("planted"), asyncio.CancelledError()])
def test_a_request_that_nobody_knows_the_end_of_is_sent_again(fault: BaseException) -> None:
    world = RequestsWorld()
    world.controller.faults = [fault]

    async def work() -> None:
        world.join()
        await asyncio.sleep(5)

    world.run(work())
    first, second = world.controller.requests
    assert first == second
    assert world.members() == set(ALL)


def test_partitions_that_an_answer_leaves_out_are_asked_again() -> None:
    world = RequestsWorld(partitions=2)
    left_out = [1]

    def answer(change: IsrChange) -> IsrResult | None:
        if change.tp.partition in left_out:
            left_out.clear()
            return None
        return world.controller.done(change)

    world.controller.answer = answer

    async def work() -> None:
        world.join(0)
        world.join(1)
        await asyncio.sleep(5)

    world.run(work())
    assert [[change.tp.partition for change in request] for request in world.controller.requests] == [[0, 1], [1]]
    assert world.members(1) == set(ALL)


def test_pauses_between_requests_that_come_to_nothing_grow() -> None:
    world = RequestsWorld()
    world.controller.answer = lambda change: IsrResult(change.tp, ErrorCode.NOT_CONTROLLER)

    async def work() -> None:
        world.join()
        await asyncio.sleep(60)
        world.requests.close()

    world.run(work())
    assert 55 < len(world.controller.requests) < 75


@pytest.mark.parametrize("broker_epoch", [72, 74])
def test_a_registration_that_this_broker_does_not_know_is_not_asked_for(broker_epoch: int) -> None:
    world = RequestsWorld()

    async def work() -> None:
        world.join(broker_epoch=broker_epoch)
        await asyncio.sleep(1)

    world.run(work())
    assert world.controller.requests == []


def test_a_dead_broker_is_not_asked_for() -> None:
    world = RequestsWorld()

    async def work() -> None:
        world.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), brokers=[]))
        world.join()
        await asyncio.sleep(1)

    world.run(work())
    assert world.controller.requests == []


class Waiting:
    """Waits for the high watermark."""

    def __init__(self, world: RequestsWorld, offset: int) -> None:
        self.world, self.offset, self.is_done = world, offset, False
        world.replicas.waiters.park(self, [world.leader.tp], 10**15)

    def try_complete(self, now_ms: int) -> bool:
        self.is_done = self.world.leader.high_watermark >= self.offset
        return self.is_done

    def expire(self, now_ms: int) -> None:
        raise AssertionError("nothing is that late")

    def failed(self, fault: Exception) -> None:
        raise AssertionError("nothing fails") from fault


def test_who_waits_is_answered_without_any_other_request() -> None:
    """The last follower that held the watermark back has left the set; nobody else talks to this broker."""
    world = RequestsWorld()

    async def work() -> None:
        append(world.leader.log, b"a", epoch=1)
        world.leader.advance()
        waiting = Waiting(world, 1)
        world.replicas.isr_changes.expire(world.leader, world.ports.clock.monotonic_ms() + 60_000)
        await asyncio.sleep(1)
        assert waiting.is_done

    world.run(work())
    assert world.members() == {US}


def test_nothing_is_asked_after_the_end() -> None:
    world = RequestsWorld()

    async def work() -> None:
        world.controller.may_answer.clear()
        world.join()
        await asyncio.sleep(1)
        world.requests.close()
        world.controller.may_answer.set()
        await asyncio.sleep(10)

    world.run(work())
    assert len(world.controller.requests) == 1
    assert world.members() == {US, OTHER}


def test_a_fault_in_one_partitions_answer_leaves_the_others_to_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RequestsWorld(partitions=5)
    changes = world.replicas.isr_changes
    settle = changes.answered
    planted = [RuntimeError("planted")]

    def answered(*arguments: Any) -> None:
        if planted:
            raise planted.pop()
        settle(*arguments)

    monkeypatch.setattr(changes, "answered", answered)

    async def work() -> None:
        world.controller.may_answer.clear()
        for number in range(5):
            world.join(number)
        world.controller.may_answer.set()
        await asyncio.sleep(5)

    world.run(work())
    assert sum(world.members(number) == set(ALL) for number in range(5)) == 4


def test_a_fault_that_comes_with_every_answer_is_not_met_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RequestsWorld(partitions=2)
    changes = world.replicas.isr_changes

    def answered(ask: IsrAsk, *_: Any) -> None:
        changes.unknown(ask)
        if len(world.controller.requests) < 1_000:  # by then nothing holds it up, not even the clock
            raise RuntimeError("planted")

    monkeypatch.setattr(changes, "answered", answered)

    async def work() -> None:
        world.join(0)
        world.join(1)
        await asyncio.sleep(60)
        world.requests.close()

    world.run(work())
    assert 55 < len(world.controller.requests) < 75


def test_changes_that_are_alike_are_one_line_of_the_log(log_lines: list[str]) -> None:
    world = RequestsWorld(partitions=50)

    async def work() -> None:
        for number in range(50):
            world.join(number)
        await asyncio.sleep(1)

    world.run(work())
    assert all(world.members(number) == set(ALL) for number in range(50))
    (line,) = [line for line in log_lines if "in-sync replicas have changed" in line]
    assert "joined=[3]" in line
    assert "partitions=50" in line


def brokers_of(*ids: int) -> MetadataUpdate:
    brokers = [BrokerEndpoints(BrokerId(each), (), None, 70 + each) for each in ids]
    return MetadataUpdate(controller_epoch=Epoch(1), brokers=brokers)


def test_a_follower_that_asked_before_it_was_known_joins_when_it_is() -> None:
    """It has everything, so it does not ask for its partition again until there is more."""
    world = RequestsWorld(partitions=3)

    async def work() -> None:
        world.metadata.apply(brokers_of(US, OTHER))
        for number in range(3):
            world.join(number)
        await asyncio.sleep(1)
        assert world.controller.requests == []
        world.metadata.apply(brokers_of(*ALL))
        await asyncio.sleep(1)

    world.run(work())
    assert all(world.members(number) == set(ALL) for number in range(3))


def test_a_follower_that_was_refused_is_asked_for_again_without_a_fetch() -> None:
    """As while the controller has not seen its registration yet."""
    world = RequestsWorld()
    refusals = [ErrorCode.INELIGIBLE_REPLICA] * 2

    def answer(change: IsrChange) -> IsrResult | None:
        return IsrResult(change.tp, refusals.pop(), None) if refusals else world.controller.done(change)

    async def work() -> None:
        world.controller.answer = answer
        world.join()
        await asyncio.sleep(3)

    world.run(work())
    assert len(world.controller.requests) == 3
    assert world.members() == set(ALL)
