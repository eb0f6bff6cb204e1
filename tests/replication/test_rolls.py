"""Segments that workers begin: what waits for them, what they wait for, and what becomes of a log where one fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest
from tests.replication.roles_world import DIRECTORIES, NOW, OTHER, TP, US, RolesWorld
from tests.storage.at_once import cut_to_leader
from tests.storage.log_world import append, batch, read_all

from ottla.config.log import LogConfig
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory.loop import VirtualLoop
from ottla.replication.rolls import AT_ONCE_MAX
from ottla.storage.errors import FaultKind, RollDue, StorageFault
from ottla.storage.log import durability
from ottla.storage.log.log import Log
from ottla.storage.log.rolling import Roll

VALUE = bytes(100)
SMALL = LogConfig(segment_bytes=300)
INDEXED = LogConfig(segment_bytes=1_000, index_interval_bytes=100)
LEADER_EPOCH = 3
BESIDE = TopicPartition("u", 0)
#: Many more than a few rolls take.
TURNS_MAX = 2_000


def following(config: LogConfig = SMALL) -> RolesWorld:
    world = RolesWorld(config)
    world.role(epoch=9, leader=OTHER, replicas=(US, OTHER))
    return world


def sent(offset: int, count: int = 1) -> memoryview:
    batches = [bytes(batch(VALUE, base_offset=offset + n, leader_epoch=LEADER_EPOCH)) for n in range(count)]
    return memoryview(bytearray(b"".join(batches)))


def run(world: RolesWorld, work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.set_event_loop(world.ports.loop)
    world.ports.loop.run_until_complete(main())


def rolled(world: RolesWorld, log: Log) -> StorageFault | None:
    """What the roll of a log that has raised RollDue came to."""
    came_to: list[StorageFault | None] = []

    async def work() -> None:
        world.replicas.files.roll_log(log, came_to.append)
        assert log.is_rolling
        await world.replicas.files.rolls_end()

    run(world, work)
    (fault,) = came_to
    assert not log.is_rolling
    return fault


def test_a_follower_keeps_what_came_before_the_roll() -> None:
    world = following()
    follower = world.follower
    with pytest.raises(RollDue):
        follower.append(sent(0, count=3), 0)
    assert follower.log.end_offset == 1
    with pytest.raises(RollDue):
        follower.append(sent(1, count=2), 0)
    assert rolled(world, follower.log) is None
    follower.append(sent(1), 0)
    assert [segment.base_offset for segment in follower.log.segments] == [0, 1]
    assert [offset for offset, _ in read_all(follower.log)] == [0, 1]


def test_a_log_is_not_cut_while_its_segment_is_made() -> None:
    world = following()
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=2), 0)
    with pytest.raises(RollDue):
        cut_to_leader(world.follower, LEADER_EPOCH, 0)
    assert log.end_offset == 1
    assert rolled(world, log) is None
    assert cut_to_leader(world.follower, LEADER_EPOCH, 0) == 0
    world.follower.append(sent(0), 0)
    assert log.end_offset == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_log_whose_segment_cannot_be_made_goes_on_as_it_was(number: int) -> None:
    world = following()
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=2), 0)
    # Where no descriptor is left, the broker closes what it can and tries once more by itself.
    world.ports.disk.fail("create", "*.log", number, times=2)
    fault = rolled(world, log)
    assert fault is not None
    assert not fault.directory_failed
    world.ports.disk.stop_failing()
    with pytest.raises(RollDue):
        world.follower.append(sent(1), 0)
    assert rolled(world, log) is None
    world.follower.append(sent(1), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_log_that_is_read_again_for_want_of_a_descriptor_begins_no_segment() -> None:
    world = following()
    world.follower.append(sent(0), 0)
    world.stop()
    world.start()
    world.role(epoch=10, leader=OTHER, replicas=(US, OTHER))
    log = world.follower.log
    directories = world.replicas.directories
    directories.prefer(BESIDE, directories.directory_of(TP) or "")
    beside = directories.create(BESIDE, bytes(16), INDEXED, now_ms=NOW)
    append(beside, b"open, and on the medium")
    flush = beside.prepare_flush()
    assert flush is not None
    flush.run()
    beside.flushed(flush)
    with pytest.raises(RollDue):
        log.stage_replica(sent(1))
    world.ports.disk.fail("descriptor", log.active.path(), errno.EMFILE, times=1)
    assert rolled(world, log) is None
    log.stage_replica(batch(b"v", base_offset=1, leader_epoch=LEADER_EPOCH))
    log.write_staged()
    assert [segment.base_offset for segment in log.segments] == [0]


def test_a_fault_of_ours_leaves_the_log_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = following()
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=2), 0)

    def planted(_: Roll) -> None:
        raise ValueError("planted")

    with monkeypatch.context() as patched:
        patched.setattr(Roll, "run", planted)
        fault = rolled(world, log)
    assert fault is not None
    assert fault.kind is FaultKind.ROLLING
    assert world.failed == []
    with pytest.raises(RollDue):
        world.follower.append(sent(1), 0)
    assert rolled(world, log) is None


def test_a_disk_that_fails_takes_its_directory_offline() -> None:
    world = following()
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=2), 0)
    world.ports.disk.fail("create", "*.log", errno.EIO, times=1)
    fault = rolled(world, log)
    assert fault is not None
    assert fault.directory_failed
    assert world.failed == [TP]


def test_few_segments_are_made_at_once() -> None:
    world = RolesWorld(SMALL)
    count = 3 * AT_ONCE_MAX
    states = [world.state(1, partition=number) for number in range(count)]
    assert set(world.replicas.apply(states, lambda _: world.config).values()) == {ErrorCode.NONE}
    leaders = list(world.replicas.leaders.values())
    most = 0

    async def work() -> None:
        nonlocal most
        for leader in leaders:
            leader.append(batch(VALUE), NOW)
            leader.log.write_staged()
            with pytest.raises(RollDue):
                leader.append(batch(VALUE), NOW)
            world.replicas.files.roll(leader)
        while world.replicas.files.is_rolling:
            most = max(most, len(world.replicas.files._rolls._running))
            await asyncio.sleep(0)

    run(world, work)
    assert 0 < most <= AT_ONCE_MAX
    assert [len(leader.log.segments) for leader in leaders] == [2] * count
    assert DIRECTORIES[0] in world.replicas.directories.online_paths


def test_nobody_waits_for_a_roll_whose_worker_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that is given up in its middle stops what has begun, and its workers may have ended before."""
    world = following()
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=3), 0)

    async def work() -> None:
        asked: list[asyncio.Future[None]] = []

        def thread(_: object, __: Callable[[], object]) -> asyncio.Future[None]:
            asked.append(asyncio.get_running_loop().create_future())
            return asked[-1]

        monkeypatch.setattr(type(world.ports.workers), "thread", thread)
        world.replicas.files.roll_log(log, lambda _: None)
        await asyncio.sleep(0)
        asked[0].cancel()
        await world.replicas.files.rolls_end()

    run(world, work)


def turns_of(world: RolesWorld, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the loop has had a turn."""
    turns: list[float] = []
    plain = VirtualLoop._run_once

    def count(loop: VirtualLoop) -> None:
        turns.append(loop.time())
        if len(turns) > TURNS_MAX:
            loop.stop()  # time stands still while somebody spins
        plain(loop)

    monkeypatch.setattr(VirtualLoop, "_run_once", count)
    return turns


def test_who_waits_for_a_roll_behind_a_flush_takes_no_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "UNWRITTEN_ENTRIES_MAX", 1)
    world = following(INDEXED)
    log = world.follower.log
    with pytest.raises(RollDue):
        world.follower.append(sent(0, count=10), 0)
    world.ports.workers.latency_ms = (10_000, 10_000)
    turns = turns_of(world, monkeypatch)

    async def work() -> None:
        world.replicas.files.flush(log)
        assert log.durability.writes_indexes
        world.replicas.files.roll_log(log, lambda _: None)
        await asyncio.sleep(1)
        await world.replicas.files.rolls_end()
        assert not log.is_rolling

    run(world, work)
    assert turns[-1] - turns[0] >= 20
    assert len(log.segments) == 2


def test_nor_does_who_waits_for_one_that_is_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RolesWorld(SMALL)
    states = [world.state(1, partition=number) for number in range(2 * AT_ONCE_MAX)]
    world.replicas.apply(states, lambda _: world.config)
    world.ports.workers.latency_ms = (10_000, 10_000)
    turns_of(world, monkeypatch)

    async def work() -> None:
        for leader in world.replicas.leaders.values():
            leader.append(batch(VALUE), NOW)
            leader.log.write_staged()
            with pytest.raises(RollDue):
                leader.append(batch(VALUE), NOW)
            world.replicas.files.roll(leader)
        await asyncio.sleep(1)
        await world.replicas.files._rolls.end([leader.log])
        assert len(leader.log.segments) == 2

    run(world, work)
