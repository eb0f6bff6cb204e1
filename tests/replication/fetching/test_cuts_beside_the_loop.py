"""A follower's log is cut by workers: what its broker's loop asks of the disk meanwhile waits for nothing."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world
from tests.server.watched_disk import watched

from ottla.model import ErrorCode
from ottla.ports import Workers

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
