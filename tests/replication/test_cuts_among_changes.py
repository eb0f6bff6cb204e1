"""A log is being cut by workers when its partition is deleted, when its role changes, or when the broker stops."""

from __future__ import annotations

import asyncio

import pytest
from tests.replication.roles_world import OTHER, TP, US, RolesWorld
from tests.storage.log_world import NOW, batch

from ottla.replication.follower import Follower

RECORDS = 30


class CuttingWorld(RolesWorld):
    """A follower with records of two leader epochs, of which its leader has only the first."""

    def __init__(self) -> None:
        super().__init__()
        self.config = self.config._replace(segment_bytes=1000, retention_ms=-1)
        self.ports.workers.latency_ms = (10, 10)
        self.role(1, OTHER, replicas=(US, OTHER), isr=(US, OTHER))
        log = self.follower.log
        log.staging.rolls_apart = False
        for number in range(RECORDS):
            log.stage_replica(batch(b"%02d" % number * 50, base_offset=number, leader_epoch=number // 10))
            log.write_staged()
        assert len(log.segments) > 3
        log.staging.roll_apart()

    @property
    def follower(self) -> Follower:
        return self.replicas.followers[TP]

    def begin(self) -> asyncio.Future[int]:
        """The cut is asked for, and waits for its first worker."""
        return self.replicas.change_apart(self.follower.cutting_to_leader(0, 10))

    def folders(self) -> list[str]:
        return [
            name
            for path in ("/data/a", "/data/b")
            for name in self.ports.disk.names(path)
            if name.startswith(f"{TP.topic}-")
        ]


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
def test_a_partition_that_is_deleted_meanwhile_is_gone_when_both_have_ended(turns: int) -> None:
    world = CuttingWorld()

    async def work() -> None:
        cut = world.begin()
        for _ in range(turns):
            await asyncio.sleep(0.004)
        gone = world.replicas.change_apart(world.replicas.give_up([TP], delete=True))
        await asyncio.wait([cut, gone])
        assert gone.exception() is None

    world.ports.loop.run_until_complete(work())
    assert world.replicas.directories.get(TP) is None
    for removal in world.removed:
        removal.run()
    assert world.folders() == []


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
def test_a_stop_waits_for_it_and_the_next_start_finds_the_log_cut(turns: int) -> None:
    world = CuttingWorld()

    async def work() -> None:
        cut = world.begin()
        for _ in range(turns):
            await asyncio.sleep(0.004)
        await world.replicas.changes_end()
        assert await cut == 10

    world.ports.loop.run_until_complete(work())
    world.stop()
    world.start()
    log = world.replicas.directories.get(TP)
    assert log is not None
    assert (log.end_offset, log.epochs.entries()) == (10, [(0, 0)])


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
def test_a_role_that_comes_meanwhile_comes_behind_the_cut(turns: int) -> None:
    world = CuttingWorld()

    async def work() -> None:
        cut = world.begin()
        for _ in range(turns):
            await asyncio.sleep(0.004)
        await world.replicas.change(world.replicas.take_on([world.state(2)], lambda _: world.config))
        assert await cut == 10
        log = world.leader.log
        log.staging.rolls_apart = False
        log.stage(batch(b"new"), 2, NOW)
        log.write_staged()
        assert (log.end_offset, log.epochs.entries()) == (11, [(0, 0), (2, 10)])

    world.ports.loop.run_until_complete(work())
