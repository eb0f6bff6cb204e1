"""A fault of ours in what a broker does beside its rounds: what it interrupts goes on by itself, without a restart."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.server.planted import Plant
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.testing.sim.wire import Unreachable

A, B = "/data/a", "/data/b"
PROPERTIES = {
    "log.dirs": f"{A},{B}",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
}


def run(scenario: Callable[[OneBroker], Coroutine[Any, Any, None]]) -> None:
    with OneBroker(1, PROPERTIES) as one:

        async def started() -> None:
            await one.broker.started()
            await scenario(one)

        one.run(started())


async def commit(one: OneBroker, group: str) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    try:
        await one.client.ask(FindCoordinatorRequest(key=group), 3)
        answer = await one.client.ask(request, 7)
    except Unreachable:
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize(
    "site",
    [
        ("ottla.broker.group_partitions", "GroupPartitions.became_leader"),
        ("ottla.handlers.on_demand.groups", "GroupsOnDemand.get"),
        ("ottla.coordinators.led_partitions", "LedPartitions.elected"),
        ("ottla.coordinators.led_partitions", "load"),
        ("ottla.replication.journals", "Journals.open"),
    ],
    ids=lambda site: site[1],
)
def test_a_group_coordinator_takes_its_partitions_on_after_a_fault(
    site: tuple[str, str], behind: bool, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plants = [Plant(*site, behind=behind) for _ in range(times)]
    for plant in plants:
        plant.put_in(monkeypatch)
        plant.calls_left = 0

    async def scenario(one: OneBroker) -> None:
        assert await one.create("t") == ErrorCode.NONE
        groups = {f"g{number}" for number in range(8)}
        for _ in range(120):
            groups -= {group for group in sorted(groups) if await commit(one, group) == ErrorCode.NONE}
            if not groups:
                break
            await asyncio.sleep(1)
        assert not groups
        assert all(plant.met for plant in plants)

    run(scenario)


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_a_loading_that_something_cancelled_is_tried_again(behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.coordinators import led_partitions

    plain, calls = led_partitions.load, 0

    async def cancelled(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            if behind:
                await plain(*args)
            raise asyncio.CancelledError
        return await plain(*args)

    monkeypatch.setattr(led_partitions, "load", cancelled)

    async def scenario(one: OneBroker) -> None:
        assert await one.create("t") == ErrorCode.NONE
        for group in ("g0", "g1", "g2", "g3"):
            for _ in range(120):
                if await commit(one, group) == ErrorCode.NONE:
                    break
                await asyncio.sleep(1)
            else:
                raise AssertionError(group)

    run(scenario)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it did not come about")


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_the_controller_hears_of_a_failed_directory_after_a_fault(
    behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant("ottla.controller.turns.replicas", "ReplicaTurns.replicas_failed", behind=behind)
    plant.put_in(monkeypatch)

    async def scenario(one: OneBroker) -> None:
        assert await one.create("t", 4) == ErrorCode.NONE
        broker = one.broker.broker
        assert broker is not None
        assert broker.services is not None
        plant.calls_left = 0
        broker.services.replicas.fail_directory(A, "planted")
        await until(lambda: sum(state.leader < 0 for state in broker.metadata.topics["t"].partitions) == 2)
        assert plant.met == 1

    run(scenario)


@pytest.mark.parametrize("site", ["FutureLog.copy_step", "FutureLog.is_level"])
def test_a_replica_moves_after_a_fault(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.storage.directories.moving import FutureLog

    name = site.split(".")[1]
    plain, met = getattr(FutureLog, name), 0

    def planted(move: FutureLog, *args: Any) -> Any:
        nonlocal met
        met += 1
        if met == 1:
            raise ValueError("planted")
        return plain.fget(move) if isinstance(plain, property) else plain(move, *args)

    monkeypatch.setattr(FutureLog, name, property(planted) if isinstance(plain, property) else planted)

    async def scenario(one: OneBroker) -> None:
        from tests.broker.test_moving_replicas import move, origin, until_it_is_in

        assert await one.create() == ErrorCode.NONE
        await one.must_produce(batches=5)
        _, there = await origin(one)
        assert await move(one, there) == ErrorCode.NONE
        await until_it_is_in(one, there)
        await one.must_produce()
        await one.check()
        assert met > 1

    run(scenario)


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_a_leader_that_did_not_hear_of_its_moved_log_writes_no_more_to_the_old_one(
    behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant("ottla.replication.replicas", "Replicas.log_replaced", behind=behind)
    plant.put_in(monkeypatch)
    plant.calls_left = 0

    async def scenario(one: OneBroker) -> None:
        from tests.broker.test_moving_replicas import move, origin

        assert await one.create() == ErrorCode.NONE
        await one.must_produce(batches=5)
        _, there = await origin(one)
        assert await move(one, there) == ErrorCode.NONE
        await until(lambda: plant.met == 1)
        broker = one.broker.broker
        assert broker is not None
        assert broker.services is not None
        leader = broker.services.replicas.leaders.get(TP)
        assert leader is None or leader.log is broker.services.replicas.directories.get(TP)
        await one.stop_and_start()
        await one.must_produce()
        await one.check()

    run(scenario)


def test_the_cleaner_goes_on_after_something_cancelled_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.broker.cleaning import Cleaning

    plain, turns = Cleaning._turn, 0

    async def planted(cleaning: Cleaning) -> bool:
        nonlocal turns
        turns += 1
        if turns == 2:
            raise asyncio.CancelledError
        return await plain(cleaning)

    monkeypatch.setattr(Cleaning, "_turn", planted)

    async def scenario(one: OneBroker) -> None:
        await asyncio.sleep(120)
        assert one.broker.broker is not None
        cleaning = one.broker.broker.cleaning
        assert cleaning is not None
        assert not cleaning.is_dead
        assert turns > 4

    run(scenario)


def test_a_leader_goes_on_in_its_new_directory_when_the_old_one_fails_at_the_change_over() -> None:
    async def scenario(one: OneBroker) -> None:
        from tests.broker.test_moving_replicas import move, origin

        assert await one.create() == ErrorCode.NONE
        await one.must_produce(batches=5)
        here, there = await origin(one)
        one.disk.fail("rename", f"{here}/t-0*", errno.EIO)
        assert await move(one, there) == ErrorCode.NONE
        broker = one.broker.broker
        assert broker is not None
        assert broker.services is not None
        replicas = broker.services.replicas
        await until(lambda: replicas.directories.online_paths == [there])
        assert replicas.leaders[TP].log is replicas.directories.get(TP)
        await one.must_produce()
        await one.check()

    run(scenario)
