"""A fault of ours in a flush costs that flush: what it was to do is done by another one, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.replication.roles_world import NOW, RolesWorld
from tests.storage.log_world import batch

from ottla.config.log import LogConfig
from ottla.replication.log_files import LogFiles
from ottla.replication.waiters import Waiters
from ottla.steps import DiskSteps
from ottla.storage.log.flush import Flush
from ottla.storage.log.log import Log


class Planted(Exception):
    pass


def once(plain: Callable[..., object], *, behind: bool = False) -> Callable[..., object]:
    """Raises at the first call, or right behind it."""
    calls: list[bool] = []

    def planted(*args: object) -> object:
        calls.append(True)
        if len(calls) == 1:
            if behind:
                plain(*args)
            raise Planted
        return plain(*args)

    return planted


class FlushWorld(RolesWorld):
    def __init__(self) -> None:
        super().__init__(LogConfig(flush_messages=1))
        self.ports.workers.latency_ms = (10, 10)
        self.role(1)

    def append(self) -> None:
        log = self.leader.log
        log.stage(memoryview(bytearray(batch(b"v"))), 1, NOW)
        log.write_staged()

    def run(self, *calls: Callable[[], None]) -> None:
        """All in one turn; then until no flush is running."""

        async def work() -> None:
            for call in calls:
                call()
            await self.replicas.flushes_end()

        self.ports.loop.set_exception_handler(lambda *_: None)
        self.ports.loop.run_until_complete(work())

    def flush(self) -> None:
        self.replicas.files.flush(self.leader.log)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("owner", "step"), [(Flush, "run"), (Log, "flushed"), (LogFiles, "_flushed"), (Waiters, "settle")]
)
def test_the_flush_that_was_asked_for_behind_a_failing_one_comes(
    owner: type, step: str, behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = once(getattr(owner, step), behind=behind)
    # What a world binds when it is made is planted before.
    if owner is LogFiles:
        monkeypatch.setattr(owner, step, planted)
    world = FlushWorld()
    monkeypatch.setattr(owner, step, planted)
    world.append()
    world.run(world.flush, world.append, world.flush)
    assert world.leader.log.recovery_point == 2
    assert world.leader.high_watermark == 2


@pytest.mark.parametrize(
    ("owner", "step", "behind"),
    [(Flush, "run", False), (Log, "prepare_flush", False), (Log, "prepare_flush", True)],
)
def test_a_flush_that_failed_is_due_again(
    owner: type, step: str, behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = FlushWorld()
    monkeypatch.setattr(owner, step, once(getattr(owner, step), behind=behind))
    world.append()
    world.run(world.flush)
    log = world.leader.log
    assert log.flush_due(NOW)
    world.run(world.flush)
    assert log.recovery_point == world.leader.high_watermark == 1


def test_a_fault_behind_the_last_fsync_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = FlushWorld()
    monkeypatch.setattr(Flush, "run", once(Flush.run, behind=True))
    world.append()
    world.run(world.flush)
    assert world.leader.log.recovery_point == world.leader.high_watermark == 1


def full(*_: object) -> asyncio.Future[None]:
    raise BlockingIOError("65536 pieces of work wait already")


def test_a_flush_that_no_worker_takes_is_due_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = FlushWorld()
    world.append()
    log = world.leader.log
    with monkeypatch.context() as patch:
        patch.setattr(type(world.ports.workers), "thread", full)
        world.run(world.flush)
    assert log.flush_due(NOW)
    assert len(world.replicas.directories.online_paths) == 2
    world.run(world.flush)
    assert log.recovery_point == world.leader.high_watermark == 1


def test_a_change_of_folders_waits_for_the_flush_that_was_asked_for_behind_the_running_one() -> None:
    world = FlushWorld()
    log = world.leader.log
    world.append()

    def steps() -> DiskSteps[bool]:
        yield from world.replicas.files.work_ends([log.tp])
        return log.durability.is_flushing

    async def work() -> None:
        world.flush()
        world.append()
        world.flush()
        assert log.durability.is_flushing
        assert not await world.replicas.change(steps())
        assert log.recovery_point == 2

    world.ports.loop.run_until_complete(work())
