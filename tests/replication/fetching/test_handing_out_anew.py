"""Another number of fetchers while partitions are not simply fetched: nothing is done twice, and no pause is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world, run_in_world

from ottla.model import ErrorCode
from ottla.replication.fetching.fetchers import fetcher_number
from ottla.replication.fetching.partition import FetchState
from ottla.replication.log_files import LogFiles

#: With so many the partition is another fetcher's.
MANY = next(number for number in range(2, 9) if fetcher_number(TP, number))


def test_a_partition_whose_log_is_being_cut_is_handed_over_behind_that(monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[object] = []
    plain = LogFiles.cut

    def cut(files: LogFiles, follower: Any, cutting: Any) -> Any:
        cuts.append(follower)
        return plain(files, follower, cutting)

    async def scenario(world: FetchingWorld) -> None:
        fabric, machine = world.simulation.world.fabric, world.brokers[1]
        await world.lead_one(1, epoch=1)
        await world.produce(b"0")
        await world.settled()
        for each in (2, 3):
            fabric.cut(machine.name, world.brokers[each].name)
        await world.lead_one(2, epoch=2, isr=(2, 3), to=(2, 3))
        assert await world.try_produce(b"nobody gets it", to=1, acks=1) == (ErrorCode.NONE, 1)
        assert await world.produce(b"1") == 1
        fabric.heal()
        machine.ports.workers.latency_ms = (2_000.0, 2_000.0)
        monkeypatch.setattr(LogFiles, "cut", cut)
        await world.lead_one(2, epoch=3, isr=(2, 3))
        fetched = world.fetched(1)
        await world.until(lambda: fetched.state is FetchState.CUTTING)
        world.reconfigure(1, {"num.replica.fetchers": str(MANY)})
        assert world.fetched(1) is fetched
        await world.until(lambda: world.fetched(1) is not fetched)
        assert fetched.state is FetchState.FETCHING
        await world.settled()
        assert {fetcher.number for fetcher, _ in world.fetchers(1).partitions()} == {fetcher_number(TP, MANY)}
        assert len(cuts) == 1

    run_in_world(scenario)


@in_world()
async def test_one_that_waits_goes_on_waiting(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"0")
    await world.settled()
    ((fetcher, one),) = world.fetchers(2).partitions()
    fetcher.partitions.back_off(one)
    world.reconfigure(2, {"num.replica.fetchers": str(MANY)})
    handed = world.fetched(2)
    assert handed is not one
    assert (handed.state, handed.due_ms, handed.failures) == (FetchState.WAITING, one.due_ms, 1)
    await world.produce(b"1")
    await world.settled()
    assert handed.state is FetchState.FETCHING
    assert fetcher_number(TP, MANY) == next(world.fetchers(2).partitions())[0].number
