"""Moves between log directories: what they cost the loop, and what becomes of one whose flush fails."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest
from tests.replication.roles_world import DIRECTORIES, NOW, TP, US, RolesWorld
from tests.storage.log_world import batch, read_first

from ottla.model import TopicPartition
from ottla.ports.memory.loop import VirtualLoop
from ottla.replication import moves
from ottla.replication.throttles import ReplicationQuota
from ottla.steps import DiskSteps, done_at_once
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.moving import FutureLog
from ottla.storage.errors import StorageFault
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
        read_first(log)
        log.stage(memoryview(bytearray(batch(b"v" * 100))), 1, NOW)
        log.write_staged()

    def elsewhere(self, tp: TopicPartition) -> str:
        home = self.replicas.directories.directory_of(tp)
        return next(path for path in DIRECTORIES if path != home)

    def begin(self, tp: TopicPartition) -> str:
        target = self.elsewhere(tp)
        done_at_once(self.replicas.moves.starting(tp, target))
        return target

    def run(
        self,
        partitions: list[TopicPartition],
        each_turn: Callable[[], None] = lambda: None,
        turns: int = TURNS_MAX,
    ) -> None:
        """Begins to move all of them in one turn of the loop, and runs until nobody is moved."""

        async def work() -> None:
            self.targets = {tp: self.begin(tp) for tp in partitions}
            for _ in range(turns):
                each_turn()
                if not self.replicas.directories.moves:
                    break
                await asyncio.sleep(0.001)
            await self.replicas.changes_end()

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
        copied = plain(move, max_bytes)
        if copied:
            steps.append(turn[0])
        return copied

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
    plain = LogDirectories.taking_over

    def finish(directories: LogDirectories, tp: TopicPartition, *args: object, **names: object) -> object:
        copy = directories.future(tp)
        assert copy is not None
        unflushed.append(copy.log.end_offset - copy.log.recovery_point)
        return plain(directories, tp, *args, **names)  # type: ignore[arg-type]

    monkeypatch.setattr(LogDirectories, "taking_over", finish)
    world.run(world.partitions)
    assert world.are_moved()
    assert unflushed == [0] * PARTITIONS


@pytest.fixture
def in_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What waits for the disk and is not done by a worker."""
    in_worker, found = [False], list[str]()
    ports = RolesWorld().ports
    plain_thread = type(ports.workers).thread

    def thread(workers: object, work: Callable[[], object]) -> object:
        def marked() -> object:
            in_worker[0] = True
            try:
                return work()
            finally:
                in_worker[0] = False

        return plain_thread(workers, marked)  # type: ignore[arg-type]

    def watched(of: type, name: str) -> None:
        plain = getattr(of, name)

        def call(*args: object, **names: object) -> object:
            if not in_worker[0]:
                found.append(name)
            return plain(*args, **names)

        monkeypatch.setattr(of, name, call)

    monkeypatch.setattr(type(ports.workers), "thread", thread)
    for name in ("rename", "remove", "sync_directory"):
        watched(type(ports.disk), name)
    watched(type(ports.disk.open("/data/a/any", create=True)), "sync")
    return found


def test_nothing_of_a_change_over_waits_for_the_disk_in_the_loop(in_loop: list[str]) -> None:
    world = MovingWorld()

    async def work() -> None:
        target = world.elsewhere(TP)
        await world.replicas.change(world.replicas.moves.starting(TP, target))
        await asyncio.sleep(1)
        await world.replicas.changes_end()
        assert world.replicas.directories.directory_of(TP) == target

    in_loop.clear()
    world.ports.loop.run_until_complete(work())
    assert in_loop == []


def test_nor_does_a_copy_that_begins_anew(in_loop: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention overtakes the copy, and so does the log's start before there is one."""
    world = MovingWorld()
    log = world.leader.log
    log.advance_start(3, log.end_offset)
    plain, overtaken = FutureLog.copy_step, list[int]()

    def step(move: FutureLog, max_bytes: int) -> int:
        copied = plain(move, max_bytes)
        if copied and not overtaken:
            overtaken.append(move.log.end_offset)
            log.advance_start(20, log.end_offset)
        return copied

    monkeypatch.setattr(FutureLog, "copy_step", step)

    async def work() -> None:
        target = world.elsewhere(TP)
        await world.replicas.change(world.replicas.moves.starting(TP, target))
        await asyncio.sleep(1)
        await world.replicas.changes_end()
        assert world.replicas.directories.directory_of(TP) == target

    in_loop.clear()
    world.ports.loop.run_until_complete(work())
    assert in_loop == []
    assert 3 < overtaken[0] < 20
    moved = world.leader.log
    assert (moved.start_offset, moved.end_offset) == (20, 30)


def test_while_a_copy_takes_over_nothing_is_appended_and_all_is_read() -> None:
    world = MovingWorld()
    refused, ends = list[int](), set[int]()

    def write() -> None:
        leader = world.leader
        assert leader.log.read(0, 1 << 20, leader.log.end_offset).size > 0
        if leader.changing_over is None:
            world.append(TP)
            return
        ends.add(leader.log.end_offset)
        with pytest.raises(StorageFault) as refusal:
            leader.append(memoryview(bytearray(batch(b"w" * 100))), NOW)
        assert not refusal.value.directory_failed
        refused.append(leader.log.end_offset)

    world.run([TP], write)
    assert world.are_moved()
    assert refused
    assert len(ends) == 1


def test_a_directory_that_fails_while_its_copy_takes_over_is_offline_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either of the two, at each of the change-over's steps in workers."""
    for which in ("source", "target"):
        for step in range(1, 6):
            world = MovingWorld()
            steps, failed, target = [0], list[str](), world.elsewhere(TP)

            def look(
                world: MovingWorld = world,
                steps: list[int] = steps,
                failed: list[str] = failed,
                target: str = target,
                which: str = which,
                step: int = step,
            ) -> None:
                directories = world.replicas.directories
                if not failed and TP in world.replicas.moves.changing:
                    steps[0] += 1
                    if steps[0] == step * 4:
                        source = next(path for path in DIRECTORIES if path != target)
                        path = source if which == "source" else target
                        failed.append(path)
                        directories.fail_directory(path, "planted")

            world.run([TP], look)
            left = world.replicas.directories.online_paths
            home = world.replicas.directories.directory_of(TP)
            if failed:
                assert failed[0] not in left
                assert home in (None, *left)
            if home is not None:
                world.append(TP)
                assert world.leader.log.directory.startswith(home)


def test_a_log_that_is_written_to_without_end_is_moved() -> None:
    world = MovingWorld()

    def write() -> None:
        """Within one flush, more than a change-over may find unflushed."""
        if world.leader.changing_over is not None:
            return
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


def test_all_moves_together_keep_to_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 90 KB at 10,000 bytes a second; without a rate it is a matter of milliseconds."""
    world = MovingWorld()
    copied: list[tuple[int, int]] = []
    plain = FutureLog.copy_step

    def step(move: FutureLog, max_bytes: int) -> int:
        size = plain(move, max_bytes)
        copied.append((world.ports.clock.monotonic_ms(), size))
        return size

    monkeypatch.setattr(FutureLog, "copy_step", step)
    rate = [10_000]
    world.replicas.moves.quota = ReplicationQuota(world.ports.clock, lambda: rate[0], 11, 1_000)
    world.run(world.partitions, turns=40_000)
    assert world.are_moved()
    total, began = sum(size for _, size in copied), copied[0][0]
    assert total > 50_000
    assert copied[-1][0] - began > (total / rate[0] - 2) * 1_000
    for at, _ in copied:
        in_window = sum(size for when, size in copied if at - 1_000 < when <= at)
        assert in_window <= rate[0] + 11_000, "of one second, and what had been saved before"


def test_a_rate_that_is_raised_while_replicas_move_counts_at_once() -> None:
    world = MovingWorld()
    rate = [1]
    world.replicas.moves.quota = ReplicationQuota(world.ports.clock, lambda: rate[0], 11, 1_000)
    turns = [0]

    def each_turn() -> None:
        turns[0] += 1
        if turns[0] == 1_000:
            rate[0] = 10**9

    world.run(world.partitions, each_turn, turns=4_000)
    assert turns[0] > 1_000, "a byte a second took longer"
    assert world.are_moved()


def changes_of(world: MovingWorld, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When moves have asked for a change of roles."""
    asked: list[float] = []
    plain = world.replicas.change

    def change(steps: DiskSteps[None]) -> Awaitable[None]:
        asked.append(world.ports.loop.time())
        if len(asked) > TURNS_MAX:
            world.ports.loop.stop()  # time stands still while somebody spins
        return plain(steps)

    monkeypatch.setattr(world.replicas, "change", change)
    return asked


def test_a_level_copy_whose_original_is_held_back_looks_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the tree is full, and nothing is appended for as long as that takes."""
    world = MovingWorld()
    asked = changes_of(world, monkeypatch)

    async def work() -> None:
        world.leader.log.staging.hold_back("/tree")
        target = world.begin(TP)
        await asyncio.sleep(60)
        assert len(asked) <= 60
        world.leader.log.staging.go_on()
        await asyncio.sleep(10)
        assert world.replicas.directories.directory_of(TP) == target

    world.ports.loop.run_until_complete(work())


def test_a_level_copy_whose_original_rolls_waits_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    world = MovingWorld()
    asked = changes_of(world, monkeypatch)

    async def work() -> None:
        target = world.begin(TP)
        await asyncio.sleep(0)
        world.ports.workers.latency_ms = (10_000, 10_000)
        world.leader.log.staging.want_roll(world.leader.log.end_offset)
        world.replicas.files.roll(world.leader)
        await asyncio.sleep(0)
        world.ports.workers.latency_ms = (10, 10)
        await asyncio.sleep(9)
        assert world.leader.log.is_rolling
        assert len(asked) <= 90
        await asyncio.sleep(10)
        assert world.replicas.directories.directory_of(TP) == target

    world.ports.loop.run_until_complete(work())


@pytest.mark.parametrize("place", [0, 150], ids=["offset", "value"])
def test_a_move_that_meets_damage_names_it_and_tries_ever_more_seldom(place: int, own_log_lines: list[str]) -> None:
    world = MovingWorld()
    source = f"{world.leader.log.directory}/{0:020}.log"
    byte = world.leader.log.size // 2 + place

    async def work() -> None:
        world.ports.disk.flip(source, byte)
        target = world.begin(TP)
        await asyncio.sleep(3_600)
        said = [line for line in own_log_lines if "moving a replica" not in line]
        assert 3 < len(said) < 20
        assert all("damaged" in line and "CORRUPT_MESSAGE" in line for line in said)
        world.append(TP)
        # Somebody has put the segment back from a backup.
        world.ports.disk.flip(source, byte)
        await asyncio.sleep(600)
        assert world.replicas.directories.directory_of(TP) == target

    world.ports.loop.run_until_complete(work())
    assert not world.failed


def test_a_copy_whose_segment_was_due_when_its_original_was_cut_begins_anew() -> None:
    """In its change-over: nobody makes that segment yet."""
    world = MovingWorld()

    async def work() -> None:
        target = world.begin(TP)
        await asyncio.sleep(0)
        move = world.replicas.directories.future(TP)
        assert move is not None
        move.log.staging.want_roll(move.log.end_offset)
        done_at_once(world.leader.log.cutting_to(5))
        await asyncio.sleep(10)
        assert world.replicas.directories.directory_of(TP) == target
        assert world.leader.log.end_offset == 5

    world.ports.loop.run_until_complete(work())
