"""A follower's log is cut by workers: what its broker's loop asks of the disk meanwhile waits for nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world, run_in_world
from tests.server.watched_disk import watched

from ottla.model import ErrorCode
from ottla.ports import Workers
from ottla.replication.fetching.partition import FetchState

T = TypeVar("T")
#: What waits for the medium, or for a folder.
WAITING = frozenset({"sync", "sync_directory", "remove", "rename", "create", "truncate", "write", "open", "read_file"})


class Beside:
    """Workers of a simulated broker: what they do is not the loop's, though it is done on its thread."""

    def __init__(self, workers: Workers, threads: list[int]) -> None:
        self._workers = workers
        self._threads = threads

    def thread(self, work: Callable[[], T]) -> Awaitable[T]:
        def beside() -> T:
            before = list(self._threads)
            self._threads.clear()
            try:
                return work()
            finally:
                self._threads[:] = before

        return self._workers.thread(beside)

    def __getattr__(self, name: str) -> object:
        return getattr(self._workers, name)


async def restarted(world: FetchingWorld, number: int) -> Counter[tuple[str, str]]:
    """Starts a broker again and gives it its roles: what its loop asks of the disk from then on."""
    machine = world.brokers[number]
    disk, asked, threads = watched(machine.ports.disk)
    workers = Beside(machine.ports.workers, threads)
    machine.ports = dataclasses.replace(machine.ports, disk=disk, workers=workers)  # type: ignore[arg-type]
    await machine.started()
    threads.append(threading.get_ident())
    await world.announce()
    return asked


def waiting(asked: Counter[tuple[str, str]]) -> set[tuple[str, str]]:
    return {each for each in asked if each[0] in WAITING and "coordination" not in each[1]}


@in_world()
async def test_what_its_leader_does_not_have_is_cut_by_workers(world: FetchingWorld) -> None:
    world.configs["t"] = {"segment.bytes": "300"}
    await world.lead_one(1, epoch=1)
    await world.produce(b"0")
    await world.settled()
    for each in (2, 3):
        world.kill(each)
    for number in range(9):
        assert (await world.try_produce(b"%d" % number * 100, to=1, acks=1))[0] == ErrorCode.NONE
    assert len(world.log(1, TP).segments) > 3
    world.kill(1)
    await world.start(2)
    await world.lead_one(2, epoch=2, isr=(2,))
    assert (await world.try_produce(b"new", to=2, acks=1))[0] == ErrorCode.NONE
    asked = await restarted(world, 1)
    await world.settled()
    assert world.values(1) == [b"0", b"new"]
    assert world.said("was cut to what its leader has")
    assert waiting(asked) == set()


@in_world()
async def test_a_follower_starts_over_beside_the_loop(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"old")
    await world.settled()
    world.kill(3)
    await world.lead_one(1, epoch=2, isr=(1, 2))
    for number in range(10):
        await world.produce(b"%d" % number)
    world.log(1, TP).advance_start(8)
    asked = await restarted(world, 3)
    await world.settled()
    assert world.values(3) == [b"7", b"8", b"9"]
    assert world.said("starts over there", "begins=8")
    assert waiting(asked) == set()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "failing"])
def test_a_cut_fails_while_its_partition_waits_for_another_role(number: int) -> None:
    """Nobody fetches in the former role any more when that is known: a full disk has its time, a failed one is one."""

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
        # The checkpoint speaks of what is to be cut by then, and has to be lowered first.
        await asyncio.sleep(6)
        fabric.heal()
        machine.ports.workers.latency_ms = (20.0, 20.0)
        machine.ports.disk.fail("create", "*/recovery-point-offset-checkpoint.tmp", number)
        await world.lead_one(2, epoch=3, isr=(2, 3))
        fetched = world.fetched(1)
        await world.until(lambda: fetched.state is FetchState.CUTTING)
        assert machine.broker is not None
        assert machine.broker.services is not None
        replicas, config = machine.broker.services.replicas, machine.broker.config.log
        world.states[TP] = world.state(TP, 2, 4, (2, 3))
        # It waits for the cut, and is done in the turn in which that has failed.
        taken_on = replicas.change(replicas.take_on([world.states[TP]], lambda _: config))
        await world.loop.create_task(taken_on, context=machine.process.context())
        if number == errno.EIO:
            await world.until(lambda: machine.gave_up is not None, within_s=1.0)
            return
        assert world.fetched(1) is not fetched
        await asyncio.sleep(0.1)
        machine.ports.disk.stop_failing()
        await world.announce()
        await world.settled()
        assert machine.gave_up is None

    run_in_world(scenario)
