"""Whatever the disk refuses, in whatever operation, a log tells as StorageFault, and is still whole."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from tests.storage.at_once import cut_to, expire, first_at_or_after, of_largest_timestamp
from tests.storage.log_world import NOW, TP, World, append, batch, marker, memory_disk, read_all

from ottla.ports.memory.disk import MemoryDisk
from ottla.storage.errors import CorruptLog, StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log

OPERATIONS = ("open", "create", "append", "write", "read", "truncate", "size", "exists", "remove", "rename")


def _stage(log: Log) -> None:
    producer = (9, 0, 3)
    log.stage(batch(b"x" * 700, producer=producer, timestamp=NOW + 1000), leader_epoch=4, now_ms=NOW + 1000)
    log.write_staged()


CALLS: dict[str, Callable[[Log], object]] = {
    "stage": _stage,
    "stage of a marker": lambda log: log.stage(
        marker(8, 0, aborts=True), leader_epoch=4, now_ms=NOW, origin=Origin.COORDINATOR
    ),
    "read": lambda log: log.read(1, 10_000, log.end_offset),
    "read up to a limit": lambda log: log.read(0, 10_000, 2),
    "offset for timestamp": lambda log: first_at_or_after(log, NOW + 1, log.end_offset),
    "largest timestamp": lambda log: of_largest_timestamp(log),
    "epochs": lambda log: log.epochs.epoch_at(0),
    "producers": lambda log: log.describe_producers(),
    "first unstable": lambda log: log.first_unstable_offset,
    "aborted": lambda log: log.aborted_transactions(0, log.end_offset),
    "roll": lambda log: log.roll(NOW),
    "roll due": lambda log: log.roll_due(NOW),
    "expire": lambda log: expire(log, NOW, log.end_offset),
    "prepare flush": lambda log: log.prepare_flush(),
    "prepare close": lambda log: log.prepare_close(),
    "truncate": lambda log: cut_to(log, log.end_offset - 1),
    "advance start": lambda log: log.advance_start(2),
}


def _filled() -> tuple[MemoryDisk, World, list[tuple[int, bytes]]]:
    """A closed log of several segments with producers, epochs and an aborted transaction: nothing of it in memory."""
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    for number in range(6):
        records = batch(b"%d" % number * 300, producer=(9, 0, number % 3), timestamp=NOW + number)
        if number < 3:
            log.stage(records, leader_epoch=number, now_ms=NOW)
            log.write_staged()
        else:
            append(log, b"%d" % number * 300, epoch=2, timestamp=NOW + number)
    log.stage(batch(b"t", producer=(8, 0, 0), transactional=True), leader_epoch=3, now_ms=NOW)
    log.write_staged()
    log.stage(marker(8, 0, aborts=True), leader_epoch=3, now_ms=NOW, origin=Origin.COORDINATOR)
    log.write_staged()
    append(log, b"last" * 100, epoch=3)
    held = read_all(log)
    world.close(log)
    return disk, world, held


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("call", CALLS)
def test_nothing_but_a_storage_fault_comes_out(call: str, operation: str) -> None:
    for number in (errno.EIO, errno.ENOSPC):
        for after in range(12):
            disk, world, held = _filled()
            log = world.open()
            disk.fail(operation, "*", number, after=after)
            fault = _fault_of(CALLS[call], log)
            if fault is None:
                break
            disk.stop_failing()
            if not fault.directory_failed:
                _goes_on(log, held, call)


def _fault_of(call: Callable[[Log], object], log: Log) -> StorageFault | None:
    try:
        call(log)
    except StorageFault as fault:
        return fault
    return None


def _goes_on(log: Log, held: list[tuple[int, bytes]], call: str) -> None:
    """A full disk has cost nothing, and the same works once there is room."""
    log.discard_staged()
    if call not in {"truncate", "expire"}:
        assert read_all(log) == held[log.start_offset - held[0][0] :] or call == "advance start"
    CALLS[call](log)
    log.discard_staged()


@pytest.mark.parametrize("pattern", ["*.snapshot", "*leader-epoch-checkpoint", "*.log", "*index"])
def test_a_batch_that_could_not_be_staged_is_no_repetition(pattern: str) -> None:
    disk, world, _ = _filled()
    log = world.open()
    records = batch(b"again", producer=(9, 0, 3))
    disk.fail("read", pattern, errno.EIO, times=1)
    for _ in range(3):
        try:
            appended = log.stage(records, leader_epoch=4, now_ms=NOW)
        except StorageFault:
            continue
        break
    assert not appended.duplicate
    log.write_staged()
    assert read_all(log)[-1] == (appended.first_offset, b"again")


def test_damage_met_while_staging_is_told_as_such() -> None:
    disk, world, _ = _filled()
    log = world.open()
    # The first batch's header, from which a segment's age is counted.
    disk.flip(log.active.path(), 16, 4)
    with pytest.raises(CorruptLog, match=f"{TP}.*is damaged") as damage:
        _stage(log)
    assert not damage.value.directory_failed
