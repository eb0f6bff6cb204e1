"""Moves between log directories: what they cost the loop, and what becomes of one whose flush fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest
from tests.replication.roles_world import DIRECTORIES, NOW, TP, US, RolesWorld
from tests.storage.log_world import batch

from ottla.model import TopicPartition
from ottla.ports.memory.loop import VirtualLoop
from ottla.replication import moves
from ottla.steps import done_at_once
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.moving import FutureLog
from ottla.storage.log.flush import Flush

PARTITIONS = 20
TURNS_MAX = 2_000
STEP_BYTES = 1_000


class MovingWorld(RolesWorld):
    def __init__(self) -> None:
        super().__init__()
        self.ports.workers.latency_ms = (10, 10)
        states = [self.state(1, US, partition=number) for number in range(PARTITIONS)]
        self.replicas.apply(states, lambda _: self.config)
        self.partitions = [TopicPartition(TP.topic, number) for number in range(PARTITIONS)]
        for tp in self.partitions:
            for _ in range(30):
                self.append(tp)

    def append(self, tp: TopicPartition) -> None:
        log = self.replicas.leaders[tp].log
        log.stage(memoryview(bytearray(batch(b"v" * 100))), 1, NOW)
        log.write_staged()

    def elsewhere(self, tp: TopicPartition) -> str:
        home = self.replicas.directories.directory_of(tp)
        return next(path for path in DIRECTORIES if path != home)

    def begin(self, tp: TopicPartition) -> str:
        target = self.elsewhere(tp)
        done_at_once(self.replicas.moves.starting(tp, target))
        return target

    def run(self, partitions: list[TopicPartition], each_turn: Callable[[], None] = lambda: None) -> None:
        """Begins to move all of them in one turn of the loop, and runs until nobody is moved."""

        async def work() -> None:
            self.targets = {tp: self.begin(tp) for tp in partitions}
            for _ in range(TURNS_MAX):
                each_turn()
                if not self.replicas.directories.moves:
                    return
                await asyncio.sleep(0.001)

        self.ports.loop.run_until_complete(work())

    def are_moved(self) -> bool:
        directory_of = self.replicas.directories.directory_of
        return all(directory_of(tp) == target for tp, target in self.targets.items())


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_STEP_BYTES", STEP_BYTES)


def test_of_many_moves_one_is_gone_on_with_in_a_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MovingWorld()
    turn, steps = [0], list[int]()
    plain, plain_turn = FutureLog.copy_step, VirtualLoop._run_once

    def step(move: FutureLog, max_bytes: int) -> int:
        steps.append(turn[0])
        return plain(move, max_bytes)

    def count(loop: VirtualLoop) -> None:
        turn[0] += 1
        plain_turn(loop)

    monkeypatch.setattr(FutureLog, "copy_step", step)
    monkeypatch.setattr(VirtualLoop, "_run_once", count)
    world.run(world.partitions)
    assert world.are_moved()
    assert len(steps) > PARTITIONS
    assert max(map(steps.count, steps)) == 1


def test_before_a_copy_takes_over_a_worker_has_flushed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MovingWorld()
    unflushed: list[int] = []
    plain = LogDirectories.finish_move

    def finish(directories: LogDirectories, tp: TopicPartition, *args: object, **names: object) -> object:
        copy = directories.future(tp)
        assert copy is not None
        unflushed.append(copy.log.end_offset - copy.log.recovery_point)
        return plain(directories, tp, *args, **names)  # type: ignore[arg-type]

    monkeypatch.setattr(LogDirectories, "finish_move", finish)
    world.run(world.partitions)
    assert world.are_moved()
    assert unflushed == [0] * PARTITIONS


def test_a_log_that_is_written_to_without_end_is_moved() -> None:
    world = MovingWorld()

    def write() -> None:
        """Within one flush, more than a change-over may find unflushed."""
        for _ in range(3):
            world.append(TP)

    world.run([TP], write)
    assert world.are_moved()
    assert world.leader.log.end_offset > 30


def test_the_copy_of_another_move_takes_over_where_the_first_was_given_up_in_its_flush() -> None:
    world = MovingWorld()
    home = world.replicas.directories.directory_of(TP)
    assert home is not None

    async def work() -> None:
        for _ in range(10):
            target = world.begin(TP)
            await asyncio.sleep(0.005)  # its flush is under way: ten milliseconds
            done_at_once(world.replicas.moves.starting(TP, home))
            assert world.replicas.directories.directory_of(TP) == home
        world.begin(TP)
        await asyncio.sleep(1)
        assert world.replicas.directories.directory_of(TP) == target

    world.ports.loop.run_until_complete(work())
    assert not world.failed


def test_a_failed_flush_of_a_copy_is_its_directorys_fault_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MovingWorld()
    target = world.elsewhere(TP)

    def fail(flush: Flush) -> None:
        flush.failed = True
        flush.release()
        raise OSError(errno.EIO, "planted")

    monkeypatch.setattr(Flush, "run", fail)
    world.run([TP])
    assert not world.replicas.directories.moves
    assert world.replicas.directories.get(TP) is world.leader.log
    assert TP not in world.failed
    assert any(event.directory == target for event in world.events)


def test_a_flush_of_a_copy_that_fails_for_a_fault_of_ours_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MovingWorld()
    plain, tries = Flush.run, list[bool]()

    def fail_once(flush: Flush) -> None:
        tries.append(True)
        if len(tries) == 1:
            raise RuntimeError("planted")
        plain(flush)

    monkeypatch.setattr(Flush, "run", fail_once)

    async def work() -> None:
        target = world.begin(TP)
        await asyncio.sleep(20)
        assert world.replicas.directories.directory_of(TP) == target

    world.ports.loop.run_until_complete(work())


def test_a_stop_waits_for_the_flush_of_a_copy() -> None:
    world = MovingWorld()

    async def work() -> None:
        target = world.begin(TP)
        await asyncio.sleep(0.005)
        world.replicas.moves.close()
        await world.replicas.flushes_end()
        copy = world.replicas.directories.future(TP)
        assert copy is not None
        assert copy.target_path == target
        assert not copy.log.durability.is_flushing
        assert copy.log.recovery_point == copy.log.end_offset

    world.ports.loop.run_until_complete(work())
