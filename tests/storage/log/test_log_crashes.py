"""Power cuts at any operation on the disk: with a flush before the answer, nothing that was answered is lost.

A failing seed prints itself: `CrashRun(seed).run()` repeats it.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from tests.searches import some
from tests.storage.at_once import cut_to, expire
from tests.storage.log_world import NOW, World, append, batch, marker, put, read_all, read_batches

from ottla.config.log import LogConfig
from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.memory.faults import SimulatedCrash
from ottla.records.batch import check_crc
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log

LIVES = 4
STEPS_MAX = 60


class CrashRun:
    """A few lives of one log, each ended by a power cut in the middle of something."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        config = LogConfig(
            segment_bytes=self.rng.choice([700, 1500, 1 << 20]),
            index_interval_bytes=self.rng.choice([0, 200, 4096]),
            retention_ms=-1,
        )
        self.world = World(config=config)
        self.epoch = 0
        self.count = 0
        #: Every value that was ever staged, by offset: more than one where a crash took the first.
        self.written: dict[int, set[bytes]] = {}
        #: What was flushed, and so answered.
        self.safe: dict[int, bytes] = {}
        self.start = 0
        #: Next sequence of the producer, as the client knows it after the last answer.
        self.sequence = 0
        self.pending: list[tuple[int, list[bytes], int | None]] = []

    def run(self) -> None:
        disk = self.world.disk
        assert isinstance(disk, MemoryDisk)
        for life in range(LIVES):
            disk.crash_at(self.rng.randint(1, 60))
            with suppress(SimulatedCrash):
                self.live(self.world.open(clean=False))
            self.world.crash(self.rng)
            self.check(f"after life {life}")

    def live(self, log: Log) -> None:
        self.pending = []
        self.epoch += 1
        self.resume(log)
        for _ in range(STEPS_MAX):
            step = self.rng.random()
            if step < 0.55:
                self.stage(log)
            elif step < 0.75:
                log.write_staged()
            elif step < 0.9:
                self.flush(log)
            elif step < 0.94:
                log.roll(NOW)
            elif step < 0.96:
                self.truncate(log)
            elif step < 0.98:
                log = self.restart(log)
            else:
                self.delete_records(log)
        log.write_staged()

    def resume(self, log: Log) -> None:
        """The producer asks the log where it was, as a client that sends again finds out."""
        known = [each for each in log.describe_producers() if each.producer_id == 1]
        self.sequence = known[0].last_sequence + 1 if known else 0

    def stage(self, log: Log) -> None:
        self.count += 1
        values = [
            b"%d-%d" % (self.count, number) + b"." * self.rng.randint(0, 90) for number in range(self.rng.randint(1, 3))
        ]
        idempotent = self.rng.random() < 0.5
        records = batch(*values, producer=(1, 0, self.sequence) if idempotent else (-1, -1, -1))
        appended = log.stage(records, leader_epoch=self.epoch, now_ms=NOW)
        if idempotent:
            self.sequence += len(values)
        for number, value in enumerate(values):
            self.written.setdefault(appended.first_offset + number, set()).add(value)
        self.pending.append((appended.first_offset, values, self.sequence if idempotent else None))

    def flush(self, log: Log) -> None:
        log.write_staged()
        flush = log.prepare_flush()
        if flush is None:
            return
        flush.run()
        log.flushed(flush)
        # The answer goes out, and then the checkpoint may or may not be written before the crash.
        for first, values, _ in self.pending:
            for number, value in enumerate(values):
                self.safe[first + number] = value
        self.pending = []
        if self.rng.random() < 0.7:
            self.world.recovery_point = log.recovery_point

    def truncate(self, log: Log) -> None:
        """Takes back what nobody was told of, as a follower does that has another leader."""
        safe_end = max(self.safe, default=self.start - 1) + 1
        offset = self.rng.randint(min(safe_end, log.end_offset), log.end_offset)
        self.world.recovery_point = min(self.world.recovery_point, offset)
        cut_to(log, offset)
        self.pending = [each for each in self.pending if each[0] + len(each[1]) <= log.end_offset]
        self.resume(log)

    def restart(self, log: Log) -> Log:
        """A clean stop: everything is safe, and the next start trusts the files."""
        log.close()
        self.world.recovery_point = log.recovery_point
        self.safe |= {
            first + number: value
            for first, values, _ in self.pending
            for number, value in enumerate(values)
            if first < log.end_offset
        }
        self.pending = []
        log = self.world.open(clean=True)
        assert self.world.warnings == []
        self.resume(log)
        return log

    def delete_records(self, log: Log) -> None:
        if self.safe and log.recovery_point > log.start_offset:
            self.start = self.rng.randint(log.start_offset, log.recovery_point)
            # The start is checkpointed before its segments go.
            self.world.start_offset = self.start
            log.advance_start(self.start)
            for removal in expire(log, NOW, log.recovery_point):
                removal.run()

    def check(self, when: str) -> None:
        log = self.world.open(clean=False)
        where = f"seed {self.seed}, {when}: {log.recovery}"
        found = dict(read_all(log))
        for offset, value in self.safe.items():
            if offset >= self.start:
                assert found.get(offset) == value, f"{where}: offset {offset} was answered and is gone"
        for offset, value in found.items():
            assert value in self.written[offset], f"{where}: offset {offset} holds what was never written there"
        self.check_parts(log, where)
        # What was found is now there for good, as far as the next life is concerned.
        self.world.flush(log)
        self.safe = dict(found)
        log.abandon()

    def check_parts(self, log: Log, where: str) -> None:
        """Epochs and producers say what the batches say."""
        epochs: list[tuple[int, int]] = []
        sequence: int | None = None
        for header, data in read_batches(log):
            assert check_crc(data, 0, header.size)
            if not epochs or header.leader_epoch > epochs[-1][0]:
                epochs.append((header.leader_epoch, header.base_offset))
            if header.producer_id == 1:
                sequence = header.last_sequence
        known = log.epochs.entries()
        assert [epoch for epoch in known if epoch[1] > log.start_offset] == [
            epoch for epoch in epochs if epoch[1] > log.start_offset
        ], where
        producers = {each.producer_id: each.last_sequence for each in log.describe_producers()}
        if sequence is not None:
            assert producers == {1: sequence}, where
        assert [segment.base_offset for segment in log.segments] == sorted(
            {segment.base_offset for segment in log.segments}
        )


@pytest.mark.parametrize("first", some(range(0, 200, 50), 0))
def test_nothing_answered_is_lost(first: int) -> None:
    for seed in range(first, first + 50):
        CrashRun(seed).run()


def test_retention_and_a_power_cut() -> None:
    """Whatever renaming and removing the cut undoes, all that retention had kept is there."""
    for seed in range(150):
        rng = Random(seed)
        world = World(config=LogConfig(segment_bytes=300, retention_ms=-1))
        disk = world.disk
        assert isinstance(disk, MemoryDisk)
        log = world.open()
        for number in range(30):
            log.stage(batch(b"%d" % number * 20), leader_epoch=0, now_ms=NOW)
        log.write_staged()
        world.flush(log)
        # The checkpoints are as old as can be: none was ever written.
        world.recovery_point = 0
        removals = []
        for _ in range(3):
            log.advance_start(rng.randint(log.start_offset, log.end_offset))
            removals += expire(log, NOW, log.end_offset)
        expected = dict(read_all(log))
        for removal in rng.sample(removals, rng.randint(0, len(removals))):
            removal.run()
        world.crash(rng)
        for _ in range(2):
            log = world.open(clean=False)
            found = dict(read_all(log))
            assert expected.items() <= found.items(), f"seed {seed}: {log.recovery}"
            assert log.end_offset == 30
            offsets = list(found)
            assert offsets == list(range(30 - len(offsets), 30)), f"seed {seed}: a hole"
            log.abandon()
            world.crash(rng)


@pytest.mark.parametrize("seed", [525, 608, 4660])
def test_what_a_recovery_cut_does_not_come_back(seed: int) -> None:
    """These find a recovery that does not sync the folder after it has removed a segment."""
    CrashRun(seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_nothing_answered_is_lost_in_thousands_of_schedules(first: int) -> None:
    for seed in range(first, first + 500):
        CrashRun(seed).run()


def test_transactions_come_back_from_the_log_alone() -> None:
    for seed in range(40):
        rng = Random(seed)
        world = World()
        log = world.open()
        open_since: dict[int, int] = {}
        aborted: list[tuple[int, int]] = []
        sequences = dict.fromkeys(range(3), 0)
        for _ in range(40):
            producer = rng.randrange(3)
            if producer in open_since and rng.random() < 0.4:
                aborts = rng.random() < 0.5
                log.stage(marker(producer, 0, aborts=aborts), leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
                if aborts:
                    aborted.append((producer, open_since[producer]))
                del open_since[producer]
            else:
                records = batch(
                    b"x" * rng.randint(0, 80), producer=(producer, 0, sequences[producer]), transactional=True
                )
                appended = log.stage(records, leader_epoch=0, now_ms=NOW)
                sequences[producer] += 1
                open_since.setdefault(producer, appended.first_offset)
            if rng.random() < 0.5:
                log.write_staged()
            if rng.random() < 0.1:
                world.flush(log)
        log.write_staged()
        unstable = log.first_unstable_offset
        assert unstable == min(open_since.values(), default=None)
        log.abandon()
        again = world.open(clean=False)
        assert again.first_unstable_offset == unstable
        assert again.aborted_transactions(0, again.end_offset) == aborted


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("flushes", [False, True])
def test_what_a_cut_took_from_a_segment_that_was_rolled_then_does_not_come_back(seed: int, *, flushes: bool) -> None:
    """No start looks into it: it is below the recovery point."""
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    for number in range(6):
        append(log, b"old %d" % number)
    world.flush(log)
    cut_to(log, 3)
    world.recovery_point = log.recovery_point
    log.roll(NOW)
    append(log, b"new", epoch=1)
    if flushes:
        world.flush(log)
    world.crash(Random(seed))
    log = world.open(clean=False)
    kept = [(0, b"old 0"), (1, b"old 1"), (2, b"old 2")]
    assert read_all(log, max_bytes=10_000) in ([kept, [*kept, (3, b"new")]])
    assert log.end_offset == 4 or not flushes


@pytest.mark.parametrize("seed", range(30))
def test_what_a_cut_took_does_not_come_back_behind_what_was_written_in_its_place(seed: int) -> None:
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    for number in range(6):
        append(log, b"old %d" % number)
    world.flush(log)
    cut_to(log, 3)
    world.recovery_point = log.recovery_point
    append(log, b"new 3", epoch=1)
    world.crash(Random(seed))
    log = world.open(clean=False)
    found = [value for _, value in read_all(log, max_bytes=10_000)]
    assert found[3:] in ([], [b"new 3"], [b"old 3"], [b"old 3", b"old 4"], [b"old 3", b"old 4", b"old 5"])
    assert log.epochs.entries() == ([(0, 0), (1, 3)] if b"new 3" in found else [(0, 0)])


def test_records_of_a_lower_leader_epoch_outlive_a_kill() -> None:
    """A tree that was restored from a backup has lower ones than the logs that its leaders go on with."""
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    append(log, b"before", epoch=5)
    world.flush(log)
    world.recovery_point = log.recovery_point
    append(log, b"behind", epoch=1)
    log.abandon()
    log = world.open(clean=False)
    assert [value for _, value in read_all(log, max_bytes=10_000)] == [b"before", b"behind"]


def _abort(log: Log, sequence: int) -> None:
    put(log, batch(b"t", producer=(7, 0, sequence), transactional=True))
    put(log, marker(7, 0, aborts=True), origin=Origin.COORDINATOR)


def _aborted_are_known(world: World, expected: list[tuple[int, int]]) -> Log:
    log = world.open(clean=False)
    there = [each for each in expected if log.start_offset <= each[1] < log.end_offset]
    assert [each for each in log.aborted_transactions(0, log.end_offset) if each[1] >= log.start_offset] == there
    return log


def test_aborted_transactions_of_a_segment_that_a_power_cut_gives_its_name_back_are_known() -> None:
    """Retention had taken it out, and its other files have still lost theirs."""
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    _abort(log, 0)
    log.roll(NOW)
    append(log, b"v")
    world.flush(log)
    log.reconfigure(LogConfig(retention_ms=-1, retention_bytes=0))
    expire(log, NOW, log.end_offset)
    name = world.path(f"{0:020d}.log")
    world.disk.rename(f"{name}.deleted", name)
    for seed in range(2):
        log = _aborted_are_known(world, [(7, 0)])
        assert log.start_offset == 0
        world.crash(Random(seed))


@pytest.mark.parametrize("seed", range(20))
def test_aborted_transactions_that_a_start_has_found_are_on_the_medium_with_the_next_flush(seed: int) -> None:
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    _abort(log, 0)
    log.abandon()
    log = world.open(clean=False)
    world.flush(log)
    assert log.recovery_point == 2
    log.roll(NOW)
    world.crash(Random(seed))
    _aborted_are_known(world, [(7, 0)])


@pytest.mark.parametrize("seed", range(20))
def test_aborted_transactions_that_were_cut_do_not_come_back(seed: int) -> None:
    world = World(config=LogConfig(retention_ms=-1))
    log = world.open()
    for sequence in range(3):
        _abort(log, sequence)
    world.flush(log)
    world.close(log)
    log = world.open()
    cut_to(log, 3)
    world.recovery_point = log.recovery_point
    log.roll(NOW)
    world.crash(Random(seed))
    log = world.open(clean=False)
    assert log.aborted_transactions(0, log.end_offset) == [(7, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_aborted_transactions_below_the_recovery_point_outlive_a_second_power_cut(seed: int) -> None:
    """The first start finds the index damaged, and goes through the whole segment."""
    world = World(config=LogConfig(retention_ms=-1, index_interval_bytes=0))
    log = world.open()
    _abort(log, 0)
    for number in range(3):
        append(log, b"v", timestamp=NOW + number)
    world.close(log)
    index = world.path(f"{0:020d}.index")
    sound = world.disk.read_file(index)
    world.disk.open(index).write(b"\xff", 0)
    log = _aborted_are_known(world, [(7, 0)])
    log.abandon()
    world.crash(Random(seed))
    world.disk.open(index, create=True).write(sound, 0)
    _aborted_are_known(world, [(7, 0)])
