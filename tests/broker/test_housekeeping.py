"""Jobs between requests: a fault of ours in one of them, or with one log, ends neither the job nor the others."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.replication.roles_world import DIRECTORIES, RolesWorld
from tests.storage.at_once import write_checkpoints
from tests.storage.log_world import append

from ottla.broker.housekeeping import Housekeeping
from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.config.log import LogConfig
from ottla.model import ErrorCode
from ottla.replication.replicas import Replicas
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.formats import offset_checkpoint
from ottla.storage.log.log import Log

PROPERTIES = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.flush.scheduler.interval.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "1000",
}
JOBS = (
    "_retain",
    "_flush_by_time",
    "_checkpoint_recovery_points",
    "_checkpoint_starts",
    "_checkpoint_watermarks",
    "_expire_producers",
)


class KeepingWorld(RolesWorld):
    def __init__(self) -> None:
        super().__init__(LogConfig(retention_ms=1000))
        states = [self.state(1, partition=partition) for partition in range(4)]
        self.replicas.apply(states, lambda _: self.config)
        live = LiveConfig(Config.parse({"listeners": "PLAINTEXT://h:1", **PROPERTIES}))
        self.keeping = Housekeeping(self.replicas, self.ports.workers, self.ports.clock, live)
        self.unhandled: list[dict[str, Any]] = []
        self.ports.loop.set_exception_handler(lambda _, details: self.unhandled.append(details))

    def run(self, seconds: float, *, starting: bool = False) -> None:
        async def work() -> None:
            if starting:
                self.keeping.start()
            await asyncio.sleep(seconds)

        self.ports.loop.run_until_complete(work())
        assert self.unhandled == []


def at_once(_: object) -> Iterator[None]:
    raise ValueError("planted")


def in_the_middle(_: object) -> Iterator[None]:
    yield
    raise ValueError("planted")


def cancelled(_: object) -> Iterator[None]:
    yield
    raise asyncio.CancelledError


@pytest.mark.parametrize("fault", [at_once, in_the_middle, cancelled])
@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_fails_runs_again(job: str, fault: Callable[[object], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    def planted(keeping: object) -> Any:
        nonlocal runs
        runs += 1
        return fault(keeping)

    monkeypatch.setattr(Housekeeping, job, planted)
    world = KeepingWorld()
    world.run(10, starting=True)
    assert runs >= 9


@pytest.mark.parametrize("fault", [at_once, in_the_middle, cancelled])
def test_logs_that_could_not_be_made_are_tried_again_after_a_fault(
    fault: Callable[[object], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0

    def planted(replicas: object) -> Any:
        nonlocal runs
        runs += 1
        return fault(replicas)

    monkeypatch.setattr(Replicas, "make_missing", planted)
    monkeypatch.setattr(Replicas, "lacks_some", True)
    KeepingWorld().run(10, starting=True)
    assert runs >= 4


def test_a_job_ends_with_the_process() -> None:
    world = KeepingWorld()
    world.ports.workers.latency_ms = (500, 500)
    world.run(1.2, starting=True)

    async def ends() -> None:
        for task in [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]:
            task.cancel()
        await asyncio.sleep(0)

    tasks = len(world.keeping._tasks)
    timers = len([timer for timer in world.keeping._timers.values() if timer.when() > world.ports.loop.time()])
    world.ports.loop.run_until_complete(ends())
    left = len([timer for timer in world.keeping._timers.values() if timer.when() > world.ports.loop.time()])
    assert tasks > 0
    assert left == timers


@pytest.mark.parametrize("step", ["may_expire", "flush_due", "has_producers", "recovery_point", "start_offset"])
def test_a_fault_with_one_log_costs_no_other_its_turn(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = KeepingWorld()
    seen: Counter[int] = Counter()
    plain = getattr(Log, step, None)

    def planted(log: Log, *args: Any) -> Any:
        seen[log.tp.partition] += 1
        if log.tp.partition == 0:
            raise ValueError("planted")
        if callable(plain):
            return plain(log, *args)
        return plain.__get__(log) if plain is not None else log.__dict__[step]

    monkeypatch.setattr(Log, step, planted if callable(plain) else property(planted))
    world.run(5, starting=True)
    assert min(seen[partition] for partition in range(4)) > 0
    assert len(world.replicas.directories.online_paths) == 2


def test_folders_go_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    world = KeepingWorld()
    plain, calls = Housekeeping._write_checkpoints, 0

    def planted(keeping: Housekeeping) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("planted")
        return plain(keeping)

    monkeypatch.setattr(Housekeeping, "_write_checkpoints", planted)
    folders = [f"{DIRECTORIES[0]}/gone-{number}-delete" for number in range(3)]
    for folder in folders:
        world.ports.disk.make_directory(folder)

    async def remove() -> None:
        for folder in folders:
            world.keeping.remove_folder_later(FolderRemoval(world.ports.disk, folder, world.leader.tp))

    world.ports.loop.run_until_complete(remove())
    world.run(30)
    assert not any(world.ports.disk.exists(folder) for folder in folders)


def test_a_folder_keeps_its_name_while_there_is_no_room_to_forget_it() -> None:
    """Its files make room. Without the name a start would miss the partition, and refuse a later one of that name."""
    world = KeepingWorld()
    disk, tp = world.ports.disk, world.leader.tp
    append(world.leader.log, b"a", b"b", epoch=1)
    home = world.replicas.directories.directory_of(tp)
    assert home is not None
    write_checkpoints(world.replicas.directories, {tp: 2})
    assert world.replicas.stop(tp, delete=True) == ErrorCode.NONE
    [removal] = world.removed
    disk.fail("append", "*.tmp", errno.ENOSPC)

    async def remove() -> None:
        world.keeping.remove_folder_later(removal)

    world.ports.loop.run_until_complete(remove())
    world.run(30)
    assert disk.names(removal.path) == []
    assert tp in offset_checkpoint.read(disk, f"{home}/{offset_checkpoint.HIGH_WATERMARKS}")
    disk.stop_failing()
    world.run(30)
    assert not disk.exists(removal.path)
    assert tp not in offset_checkpoint.read(disk, f"{home}/{offset_checkpoint.HIGH_WATERMARKS}")
