"""A power cut at every operation on the disk that a pass makes: the log has the old segments or the new one.

What the cut loses of names and bytes is chosen by a seed; a failure names it and the operation.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random

import pytest
from tests.searches import seeds
from tests.storage.at_once import clean, done, expire
from tests.storage.cleaner.cleaning import COMPACTED, Cleaner, Kept, compacted_world, newest, put_keyed, records_of
from tests.storage.log_world import FOLDER, NOW, World, marker, put

from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.memory.faults import SimulatedCrash
from ottla.storage.cleaner.faults import DiskRefused
from ottla.storage.errors import StorageFault
from ottla.storage.formats.names import CLEANED, LOG, format_segment_file
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log

#: More than any pass here makes.
OPERATIONS_MAX = 400
CONFIG = COMPACTED._replace(segment_bytes=500)


def filled(seed: int) -> tuple[World, Log, dict[bytes, bytes]]:
    """Four segments or more that fit in pairs once they are cleaned, with tombstones and keys that stand but once."""
    rng = Random(seed)
    world = compacted_world(config=CONFIG)
    log = world.open()
    for number in range(25):
        pairs = [(b"k%d" % rng.randrange(6), rng.choice([None, b"v%d" % rng.randrange(1000)])) for _ in range(3)]
        if number % 3 == 0:
            pairs[0] = (b"only %d" % number, b"here")
        put_keyed(log, *pairs)
    written = newest(records_of(log))
    world.flush(log)
    return world, log, written


def cleaned_once(world: World, log: Log) -> Cleaner:
    cleaner = Cleaner(world)
    cleaner.clean(log)
    cleaner.remove()
    cleaner.now_ms += 5000
    rng = Random(log.end_offset)
    for _ in range(12):
        put_keyed(log, (b"k%d" % rng.randrange(6), rng.choice([None, b"w"])))
    world.flush(log)
    return cleaner


def disk_of(world: World) -> MemoryDisk:
    assert isinstance(world.disk, MemoryDisk)
    return world.disk


def look_after_crash(world: World, cleaner: Cleaner, before: list[Kept], where: str, cuts: int = 1) -> None:
    table = newest(before)
    log = world.open(clean=False)
    for cut in range(cuts):
        if cut:
            log.abandon()
            world.crash(Random(where))
            log = world.open(clean=False)
        found = records_of(log)
        assert set(found) <= set(before), f"{where}: a record that was never there"
        assert newest(found) == table, where
        assert not [name for name in world.disk.names(world.folder) if name.endswith((".cleaned", ".swap"))], where
        assert log.end_offset == before[-1].offset + 1, where
        assert log.recovery is None or not log.recovery.truncated_bytes, f"{where}: {log.recovery}"
    log.cleaned_to = min(cleaner.cleaned_to, log.end_offset)
    again = Cleaner(world)
    again.now_ms = cleaner.now_ms
    again.clean(log)
    assert newest(records_of(log)) == table, f"{where}: after the next pass"


def cut_everywhere(seed: int, *, again: bool, cuts: int = 1) -> None:
    for operation in range(1, OPERATIONS_MAX):
        world, log, _ = filled(seed)
        cleaner = cleaned_once(world, log) if again else Cleaner(world)
        before = records_of(log)
        steps = cleaner.steps(log)
        disk_of(world).crash_at(operation)
        try:
            clean(steps)
            cleaner.remove()
        except SimulatedCrash:
            world.crash(Random(f"{seed} {operation}"))
            look_after_crash(world, cleaner, before, f"seed {seed}, operation {operation}", cuts)
        else:
            assert operation > 20, "a pass has more operations"
            return
    pytest.fail("the pass never came to its end")


@pytest.mark.parametrize("again", [False, True], ids=["first pass", "second pass"])
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_a_power_cut_in_any_operation(seed: int, *, again: bool) -> None:
    cut_everywhere(seed, again=again)


@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_second_power_cut_right_after_the_start(seed: int) -> None:
    """What a start has put in order stays so: no segment comes back that a cleaned one has replaced."""
    cut_everywhere(seed, again=True, cuts=2)


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_what_a_killed_worker_left_takes_no_finished_segment_with_it(seed: int) -> None:
    """A start takes a `.cleaned` file as a sign that `.swap` files behind it are half of something."""
    for operation in range(1, OPERATIONS_MAX):
        world, log, _ = filled(seed)
        # Of a group that does not begin there any more.
        left = world.path(format_segment_file(log.segments[0].base_offset + 1, LOG, CLEANED))
        world.disk.open(left, create=True).close()
        world.disk.sync_directory(world.folder)
        cleaner = Cleaner(world)
        before = records_of(log)
        steps = cleaner.steps(log)
        disk_of(world).crash_at(operation)
        try:
            clean(steps)
            cleaner.remove()
        except SimulatedCrash:
            world.crash(Random(f"{seed} {operation}"))
            look_after_crash(world, cleaner, before, f"seed {seed}, operation {operation}")
        else:
            assert not world.disk.exists(left)
            return
    pytest.fail("the pass never came to its end")


def test_a_power_cut_after_a_pass() -> None:
    """Nothing of a pass that ended may be undone, with the removals run or not."""
    for seed in range(40):
        rng = Random(seed)
        world, log, _ = filled(seed)
        cleaner = Cleaner(world)
        clean(cleaner.steps(log))
        after = records_of(log)
        if rng.random() < 0.5:
            cleaner.remove()
        world.crash(rng)
        log = world.open(clean=False)
        assert records_of(log) == after, f"seed {seed}"


@pytest.mark.parametrize("operation", ["append", "sync", "rename", "sync_directory", "create", "remove", "open"])
def test_a_fault_of_the_disk_leaves_the_old_or_the_new(operation: str) -> None:
    for after in range(60):
        world, log, table = filled(1)
        cleaner = Cleaner(world)
        before = records_of(log)
        disk_of(world).fail(operation, "*", errno.EIO, after=after, times=1)
        failed = False
        try:
            clean(cleaner.steps(log))
        except (OSError, StorageFault, DiskRefused):
            failed = True
        disk_of(world).stop_failing()
        log.abandon()
        if not failed:
            return
        world.crash(Random(after))
        log = world.open(clean=False)
        assert newest(records_of(log)) == table, f"{operation} {after}"
        assert set(records_of(log)) <= set(before)
        log.abandon()
    pytest.fail("it never stopped failing")


def test_a_full_disk_ends_a_pass_and_leaves_nothing_behind() -> None:
    world, log, table = filled(2)
    cleaner = Cleaner(world)
    disk = disk_of(world)
    disk.fail("append", "*.cleaned", errno.ENOSPC)
    with pytest.raises(DiskRefused, match="No space"):
        clean(cleaner.steps(log))
    disk.stop_failing()
    assert newest(records_of(log)) == table
    assert not [name for name in disk.names(world.folder) if name.endswith((".cleaned", ".swap"))]
    cleaner.clean(log)
    assert newest(records_of(log)) == table


def test_aborted_records_do_not_come_back_with_a_power_cut() -> None:
    """The marker outlives its transaction's records, whichever of the segments a cut brings back."""
    for seed in range(4):
        for operation in range(1, OPERATIONS_MAX):
            world = compacted_world(config=CONFIG)
            log = world.open()
            put_keyed(log, (b"a", b"committed"))
            for sequence in range(8):
                put_keyed(log, (b"a", b"never"), producer=(7, 0, sequence), transactional=True)
            put(log, marker(7, 0, aborts=True), origin=Origin.COORDINATOR)
            for _ in range(8):
                put_keyed(log, (b"b", b"other"))
            world.flush(log)
            cleaner = Cleaner(world)
            steps = cleaner.steps(log)
            disk_of(world).crash_at(operation)
            with suppress(SimulatedCrash):
                clean(steps)
                break
            world.crash(Random(f"{seed} {operation}"))
            log = world.open(clean=False)
            aborted = log.aborted_transactions(0, log.end_offset)
            visible = [each for each in records_of(log) if not (each.value == b"never" and aborted == [(7, 1)])]
            assert newest(visible) == {b"a": b"committed", b"b": b"other"}, f"seed {seed}, operation {operation}"


def test_a_clean_stop_completes_a_swap_that_is_under_way() -> None:
    """Stopping between any two steps, with the log closed and opened as after a clean stop."""
    for count in range(1, OPERATIONS_MAX):
        world, log, table = filled(3)
        steps = Cleaner(world).steps(log)
        sent: object = None
        try:
            for _ in range(count):
                step = steps.send(sent)
                sent = done(step)
        except StopIteration:
            return
        steps.close()
        world.close(log)
        log = world.open(clean=True)
        assert not [name for name in world.disk.names(world.folder) if name.endswith((".cleaned", ".swap"))]
        assert newest(records_of(log)) == table, f"after {count} steps"
        assert world.warnings == []


@pytest.mark.parametrize("after", range(4))
def test_a_folder_that_cannot_be_opened_for_a_sync_leaves_no_segment_between_two_names(after: int) -> None:
    """No descriptor is left for a moment. Retention waits while a segment is between its names."""
    world, log, _ = filled(1)
    log.reconfigure(CONFIG._replace(cleanup_policy=frozenset({"compact", "delete"})))
    disk_of(world).fail("sync_directory", FOLDER, errno.EMFILE, after=after, times=1)
    with suppress(StorageFault, DiskRefused):
        Cleaner(world).clean(log)
    assert log.swap is None
    assert not [name for name in world.disk.names(FOLDER) if name.endswith(".swap")]
    log.reconfigure(log.config._replace(retention_bytes=0))
    expire(log, NOW, log.end_offset)
    assert log.start_offset > 0
