"""Files on their way out: when they go, how many at a time, and what becomes of them at a stop."""

from __future__ import annotations

import asyncio
import errno

import pytest

from ottla.broker.removals import REMOVALS_A_BATCH, Removals
from ottla.ports.memory import memory_ports


class Files:
    def __init__(self, world: RemovalsWorld, name: str, fault: Exception | None = None) -> None:
        self.world = world
        self.name = name
        self.fault = fault

    def run(self) -> None:
        if self.fault is not None:
            raise self.fault
        self.world.removed.append((self.world.ports.clock.monotonic_ms(), self.name))


class RemovalsWorld:
    def __init__(self) -> None:
        self.ports = memory_ports(seed=1, shuffle=False)
        self.loop = self.ports.loop
        self.ports.workers.latency_ms = (10, 10)
        self.removed: list[tuple[int, str]] = []
        self.failed: list[tuple[str, int | None]] = []
        #: Whether whoever hears of a fault has one as well.
        self.fails = False
        self.removals = Removals(self.ports.workers, self.ports.clock, self.not_removed)
        self.began_ms = self.ports.clock.monotonic_ms()

    def not_removed(self, _: object, path: str, fault: Exception) -> None:
        self.failed.append((path, getattr(fault, "errno", None)))
        if self.fails:
            raise ValueError("planted")

    def add(self, name: str, delay_ms: int, fault: Exception | None = None) -> None:
        self.removals.add(Files(self, name, fault), "/data/a", delay_ms)

    def run(self, seconds: float) -> list[tuple[int, str]]:
        self.loop.run_until_complete(asyncio.sleep(seconds))
        return [(at_ms - self.began_ms, name) for at_ms, name in self.removed]


def test_each_goes_when_its_time_has_come() -> None:
    world = RemovalsWorld()

    async def add() -> None:
        world.add("late", 5_000)
        world.add("soon", 100)
        world.add("later", 6_000)
        world.add("now", 0)

    world.loop.run_until_complete(add())
    assert world.run(10) == [(10, "now"), (110, "soon"), (5_010, "late"), (6_010, "later")]


def test_ten_thousand_take_one_worker_a_batch_at_a_time() -> None:
    world = RemovalsWorld()

    async def add() -> None:
        for number in range(10_000):
            world.add(f"f{number}", 0)

    world.loop.run_until_complete(add())
    assert len(world.ports.workers._waiting) <= 1
    done = world.run(60)
    assert [name for _, name in done] == [f"f{number}" for number in range(10_000)]
    at_once = [at_ms for at_ms, _ in done]
    assert max(at_once.count(at_ms) for at_ms in set(at_once)) == REMOVALS_A_BATCH


def test_a_fault_is_told_and_the_others_go_on() -> None:
    world = RemovalsWorld()

    async def add() -> None:
        world.add("a", 0)
        world.add("b", 0, OSError(errno.EIO, "bad"))
        world.add("c", 0)

    world.loop.run_until_complete(add())
    assert [name for _, name in world.run(1)] == ["a", "c"]
    assert world.failed == [("/data/a", errno.EIO)]


def test_what_waits_at_a_stop_is_left_to_the_next_start() -> None:
    world = RemovalsWorld()

    async def add_and_close() -> None:
        world.add("a", 100)
        world.removals.close()
        world.add("b", 0)

    world.loop.run_until_complete(add_and_close())
    assert world.run(1) == []
    assert len(world.removals) == 0


def test_a_fault_of_ours_in_a_removal_is_told_and_the_others_go_on() -> None:
    world = RemovalsWorld()

    async def add() -> None:
        world.add("a", 0)
        world.add("b", 0, ValueError("planted"))
        world.add("c", 0)
        world.add("d", 500)

    world.loop.run_until_complete(add())
    assert [name for _, name in world.run(1)] == ["a", "c", "d"]
    assert world.failed == [("/data/a", None)]


def test_whoever_is_told_may_fail_and_the_others_go_on() -> None:
    world = RemovalsWorld()
    world.fails = True

    async def add() -> None:
        for name in ("a", "b"):
            world.add(name, 0, OSError(errno.EIO, "bad"))
        world.add("c", 500)

    world.loop.run_until_complete(add())
    assert [name for _, name in world.run(1)] == ["c"]
    assert len(world.failed) == 2


def test_files_wait_where_no_worker_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RemovalsWorld()

    def full(*_: object) -> None:
        raise BlockingIOError("65536 pieces of work wait already")

    async def add() -> None:
        world.add("a", 0)
        world.add("b", 0)

    with monkeypatch.context() as patch:
        patch.setattr(type(world.ports.workers), "thread", full)
        world.loop.run_until_complete(add())
        assert world.run(1) == []
    assert [name for _, name in world.run(30)] == ["a", "b"]


def test_files_whose_worker_was_lost_are_tried_again() -> None:
    world = RemovalsWorld()

    async def add_and_lose() -> None:
        world.add("a", 0)
        await asyncio.sleep(0.005)
        (lost,) = world.ports.workers._waiting
        lost.cancel()

    world.loop.run_until_complete(add_and_lose())
    assert "a" in [name for _, name in world.run(30)]
