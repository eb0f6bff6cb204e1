"""What reaches the medium when, and what a failed fsync means."""

from __future__ import annotations

import errno
from random import Random

import pytest
from tests.storage.at_once import cut_to, expire, of_largest_timestamp
from tests.storage.log_world import NOW, SMALL, World, append, memory_disk, read_all

from ottla.config.log import LogConfig
from ottla.steps import DiskSteps, done_at_once
from ottla.storage.errors import StorageFault


def test_the_recovery_point_moves_when_the_flush_has_run() -> None:
    log = World().open()
    append(log, b"a")
    flush = log.prepare_flush()
    assert flush is not None
    append(log, b"b")
    assert log.prepare_flush() is None
    assert log.recovery_point == 0
    flush.run()
    assert log.recovery_point == 0
    log.flushed(flush)
    assert log.recovery_point == 1
    again = log.prepare_flush()
    assert again is not None
    again.run()
    log.flushed(again)
    assert log.recovery_point == 2
    assert log.prepare_flush() is None


def test_a_failed_flush_is_never_tried_again() -> None:
    disk = memory_disk()
    log = World(disk).open()
    append(log, b"a")
    disk.fail("sync", "*.log", errno.EIO, times=1)
    flush = log.prepare_flush()
    assert flush is not None
    with pytest.raises(OSError, match="Input/output"):
        flush.run()
    disk.stop_failing()
    for _ in range(2):
        with pytest.raises(StorageFault) as error:
            log.prepare_flush()
        assert error.value.directory_failed
    assert log.recovery_point == 0
    with pytest.raises(StorageFault):
        log.close()


def test_a_cut_makes_a_running_flush_worthless() -> None:
    world = World()
    log = world.open()
    append(log, b"a")
    append(log, b"b")
    flush = log.prepare_flush()
    assert flush is not None
    cut_to(log, 1)
    append(log, b"other")
    flush.run()
    log.flushed(flush)
    assert log.recovery_point == 0
    world.flush(log)
    assert log.recovery_point == 2
    assert read_all(log) == [(0, b"a"), (1, b"other")]


def test_retention_may_take_what_a_flush_still_holds() -> None:
    world = World()
    log = world.open()
    while len(log.segments) < 3:
        append(log, b"x" * 100, timestamp=NOW - 1000)
    world.flush(log)
    append(log, b"more")
    flush = log.prepare_flush()
    assert flush is not None
    log.reconfigure(SMALL._replace(retention_ms=1))
    for removal in expire(log, NOW, log.end_offset):
        removal.run()
    flush.run()
    log.flushed(flush)
    assert log.recovery_point == log.end_offset


def test_flushes_are_due_by_count_by_time_and_after_a_roll() -> None:
    log = World(config=LogConfig(flush_messages=3)).open()
    append(log, b"a", b"b")
    assert not log.flush_due(NOW)
    append(log, b"c")
    assert log.flush_due(NOW)

    log = World(config=LogConfig(flush_ms=1000)).open()
    assert not log.flush_due(NOW)
    append(log, b"a")
    assert not log.flush_due(NOW)
    assert not log.flush_due(NOW + 999)
    assert log.flush_due(NOW + 1000)

    world = World()
    log = world.open()
    append(log, b"a")
    assert not log.flush_due(NOW)
    log.roll(NOW)
    assert log.flush_due(NOW)
    world.flush(log)
    assert not log.flush_due(NOW)


def test_a_flush_by_time_waits_no_longer_because_the_clock_was_set_back() -> None:
    log = World(config=LogConfig(flush_ms=1000)).open()
    append(log, b"a")
    assert not log.flush_due(NOW)
    back = NOW - 3_600_000
    assert not log.flush_due(back)
    assert not log.flush_due(back + 999)
    assert log.flush_due(back + 1000)


def test_one_fsync_for_a_flush_of_an_active_segment() -> None:
    disk = memory_disk()
    world = World(disk, LogConfig())
    log = world.open()
    append(log, b"a")
    world.flush(log)
    append(log, b"b")
    before = disk.operations
    world.flush(log)
    assert disk.operations == before + 1


def test_closing_an_untouched_log_writes_nothing() -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    for number in range(50):
        append(log, b"%d" % number * 20)
    world.close(log)
    before = disk.operations
    for _ in range(3):
        log = world.open()
        read_all(log)
        world.close(log)
    assert disk.operations == before


def test_closing_makes_everything_certain_in_the_background_or_not() -> None:
    for in_background in (True, False):
        disk = memory_disk()
        world = World(disk)
        log = world.open()
        for number in range(50):
            append(log, b"%d" % number * 20)
        if in_background:
            flush = log.prepare_close()
            assert flush is not None
            flush.run()
            log.flushed(flush)
            before = disk.operations
            world.close(log)
            assert disk.operations == before
        else:
            world.close(log)
        expected = [(number, b"%d" % number * 20) for number in range(50)]
        for seed in range(20):
            disk.crash(Random(seed))
            log = world.open()
            assert read_all(log) == expected
            assert of_largest_timestamp(log) is not None
            assert world.warnings == []


def test_no_flush_begins_in_a_log_that_begins_anew_behind_a_cut_that_a_fault_has_ended() -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    for _ in range(3):
        append(log, b"a")
        log.roll(NOW)
    disk.fail("remove", "*", errno.ENOSPC, times=1)
    with pytest.raises(StorageFault):
        cut_to(log, 1)
    held: list[bool] = []

    def lowering(_offset: int) -> DiskSteps[None]:
        held.append(log.prepare_flush() is None)
        yield None

    done_at_once(log.beginning_anew_at(7, lowering))
    assert held
    assert all(held)
    assert (log.start_offset, log.end_offset) == (7, 7)
    append(log, b"b")
    world.flush(log)
    assert log.recovery_point == 8
