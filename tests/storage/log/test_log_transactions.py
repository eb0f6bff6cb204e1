"""What a log keeps of transactions: what is open, what was aborted, and who may still write."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.storage.at_once import cut_to
from tests.storage.log_world import NOW, World, batch, marker, put

from ottla.config import LogConfig
from ottla.model import ErrorCode
from ottla.ports.memory.disk import MemoryDisk
from ottla.steps import done_at_once
from ottla.storage.errors import AppendRefused, BadBatch, StorageFault
from ottla.storage.log.append import AppendResult, Origin
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes.txn_file import ENTRIES_A_PIECE
from ottla.storage.log.log import Log


def write(log: Log, producer: int, sequence: int, *, epoch: int = 0, transactional: bool = True) -> AppendResult:
    return put(log, batch(b"v", producer=(producer, epoch, sequence), transactional=transactional))


def end(log: Log, producer: int, *, aborts: bool, epoch: int = 0, coordinator_epoch: int = 0) -> AppendResult:
    return put(
        log,
        marker(producer, epoch, aborts=aborts, coordinator_epoch=coordinator_epoch),
        origin=Origin.COORDINATOR,
    )


def unstable(log: Log) -> int | None:
    return log.first_unstable_offset


def refusal(log: Log, producer: int, **options: int) -> ErrorCode:
    with pytest.raises(AppendRefused) as error:
        end(log, producer, aborts=True, **options)
    return error.value.error


def test_the_first_unstable_offset_is_the_oldest_open_transactions() -> None:
    log = World().open()
    assert unstable(log) is None
    write(log, 1, 0)
    write(log, 2, 0)
    write(log, 1, 1)
    assert unstable(log) == 0
    end(log, 1, aborts=False)
    assert unstable(log) == 1
    end(log, 2, aborts=True)
    assert unstable(log) is None
    assert log.aborted_transactions(0, 10) == [(2, 1)]


def test_an_ended_transaction_is_unstable_until_its_marker_is_committed() -> None:
    log = World().open()
    write(log, 1, 0)
    marked = end(log, 1, aborts=False).first_offset
    write(log, 2, 0)
    assert log.first_unstable(marked) == 0
    assert log.first_unstable(marked + 1) == 2
    # Once passed it stays passed.
    assert log.first_unstable(marked) == 2


def test_a_marker_that_is_taken_back_ends_nothing() -> None:
    log = World().open()
    write(log, 1, 0)
    for _ in range(2):
        log.stage(marker(1, 0, aborts=True), leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
        log.discard_staged()
        assert unstable(log) == 0
        assert log.first_unstable(10) == 0
    end(log, 1, aborts=True)
    assert log.first_unstable(10) is None
    assert log.aborted_transactions(0, 10) == [(1, 0)]


def test_a_transaction_that_is_taken_back_whole_was_never_there() -> None:
    log = World().open()
    log.stage(batch(b"v", producer=(1, 0, 0), transactional=True), leader_epoch=0, now_ms=NOW)
    log.stage(marker(1, 0, aborts=True), leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    log.discard_staged()
    put(log, batch(b"plain"))
    assert log.first_unstable(0) is None
    assert log.aborted_transactions(0, 10) == []
    assert log.describe_producers() == []


def test_a_marker_without_a_transaction_changes_nothing() -> None:
    log = World().open()
    end(log, 1, aborts=True)
    assert log.aborted_transactions(0, 10) == []
    assert not [name for name in World(log.places.around.disk).disk.names(log.directory) if name.endswith(".txnindex")]


def test_a_non_transactional_record_within_a_transaction() -> None:
    log = World().open()
    write(log, 1, 0)
    with pytest.raises(AppendRefused) as error:
        write(log, 1, 1, transactional=False)
    assert error.value.error == ErrorCode.INVALID_TXN_STATE
    assert write(log, 1, 1).first_offset == 1


def test_a_marker_of_an_older_producer_epoch_or_coordinator() -> None:
    log = World().open()
    write(log, 1, 0, epoch=3)
    assert refusal(log, 1, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 1, aborts=False, epoch=4, coordinator_epoch=5)
    assert refusal(log, 1, epoch=4, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(AppendRefused):
        write(log, 1, 1, epoch=3)


def test_aborted_transactions_over_many_segments() -> None:
    world = World()
    log = world.open()
    expected: list[tuple[int, int, int]] = []
    for number in range(60):
        first = write(log, 1, number).first_offset
        last = end(log, 1, aborts=number % 3 == 0).first_offset
        if number % 3 == 0:
            expected.append((1, first, last))
    assert len(log.segments) > 3

    def overlapping(first: int, end_offset: int) -> list[tuple[int, int]]:
        return [(each[0], each[1]) for each in expected if each[2] >= first and each[1] < end_offset]

    for reopened in (False, True):
        if reopened:
            world.close(log)
            log = world.open()
        for first in range(0, log.end_offset, 7):
            for length in (1, 5, 50):
                assert log.aborted_transactions(first, first + length) == overlapping(first, first + length)
    # A damaged index is read from the log again.
    segment = log.segments[1]
    log.close()
    file = world.disk.open(segment.path(".txnindex"))
    file.truncate(file.size() - 3)
    file.close()
    log = world.open()
    assert log.aborted_transactions(0, log.end_offset) == overlapping(0, log.end_offset)
    assert world.warnings


@pytest.mark.parametrize("is_damaged", [False, True])
def test_many_aborted_transactions_are_found(is_damaged: bool) -> None:
    """For the cleaner, which goes by all of a log's; a damaged index is read again from the log."""
    world = World(config=LogConfig())
    log = world.open()
    count = 3 * ENTRIES_A_PIECE
    for number in range(count):
        write(log, 1, number)
        end(log, 1, aborts=True)
    log.close()
    if is_damaged:
        file = world.disk.open(log.segments[0].path(".txnindex"))
        file.truncate(file.size() - 3)
        file.close()
    log = world.open()
    assert len(log.aborted_transactions(0, log.end_offset)) == count


def test_a_cut_reopens_the_transactions_that_it_uncovers() -> None:
    log = World().open()
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 1, aborts=True)
    end(log, 2, aborts=True)
    cut_to(log, 3)
    assert unstable(log) == 1
    assert log.aborted_transactions(0, 10) == [(1, 0)]
    cut_to(log, 1)
    assert unstable(log) == 0
    assert log.aborted_transactions(0, 10) == []


@pytest.mark.parametrize("is_read", [True, False], ids=["read before", "not read"])
def test_what_a_cut_uncovers_is_open_before_its_files_have_followed(*, is_read: bool) -> None:
    """A reader comes while a worker shortens them: the markers are gone, and so is the snapshot that had them."""
    world = World()
    log = world.open()
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 1, aborts=False)
    end(log, 2, aborts=True)
    log.close()
    log = world.open()
    if is_read:
        assert unstable(log) is None
    seen: list[int | None] = []
    done_at_once(log.cutting_to(3, ends=lambda: seen.append(log.first_unstable(3))))
    assert seen == [1]
    assert log.first_unstable(3) == 1


def test_a_reader_is_told_of_the_transactions_in_what_it_reads_and_of_few_others() -> None:
    log = World().open()
    for number in range(300):
        write(log, number % 7 + 1, number // 7)
        end(log, number % 7 + 1, aborts=number % 3 != 0)
    limit = log.end_offset
    everything = log.aborted_transactions(0, limit)
    for first in range(0, limit, 7):
        piece = log.read(first, 200, limit)
        assert piece.file is not None
        last = first
        with suppress(BadBatch):  # the last batch is cut
            for _, header in walk(piece.file, piece.position, piece.position + piece.size):
                last = header.last_offset
        told = log.aborted_in(first, piece, limit)
        needed = log.aborted_transactions(first, last + 1)
        assert told[: len(needed)] == needed
        assert len(told) < len(needed) + 20 < len(everything)
    assert log.aborted_in(limit, log.read(limit, 200, limit), limit) == []
    assert log.aborted_in(0, log.read(0, 200, limit), 2) == log.aborted_transactions(0, 2)


def _flush_without_room(log: Log) -> None:
    flush = log.prepare_flush()
    assert flush is not None
    with pytest.raises(StorageFault):
        flush.run()
    log.durability.refused(flush)


def _roll_without_room(log: Log) -> None:
    with pytest.raises(StorageFault):
        log.roll(NOW)


@pytest.mark.parametrize(
    ("refused", "operation", "path"),
    [
        (_flush_without_room, "create", "*leader-epoch-checkpoint.tmp"),
        (_flush_without_room, "write", "*.txnindex"),
        (_roll_without_room, "create", "*.log"),
        (_roll_without_room, "write", "*.txnindex"),
    ],
)
def test_what_a_refused_write_left_of_aborted_transactions_is_cut_with_the_log(
    refused: Callable[[Log], None], operation: str, path: str
) -> None:
    """None is shown that the log has no more, and none is missing for it."""
    world = World(config=LogConfig(retention_ms=-1))
    assert isinstance(world.disk, MemoryDisk)
    log = world.open()
    write(log, 9, 0, transactional=False)
    world.flush(log)
    for sequence in range(3):
        write(log, 1, sequence)
        end(log, 1, aborts=True)
    log.begin_leader_epoch(1)
    log.stage(batch(b"v"), leader_epoch=1, now_ms=NOW)
    log.write_staged()
    world.disk.fail(operation, path, errno.ENOSPC)
    refused(log)
    world.disk.stop_failing()
    cut_to(log, 1)
    write(log, 1, 0)
    write(log, 2, 0)
    end(log, 2, aborts=True)
    end(log, 1, aborts=False)
    write(log, 1, 1)
    world.close(log)
    log = world.open()
    assert log.aborted_transactions(0, log.end_offset) == [(2, 2)]


def test_a_stop_that_has_no_descriptor_at_first_writes_all_the_next_time() -> None:
    world = World(config=LogConfig(retention_ms=-1))
    assert isinstance(world.disk, MemoryDisk)
    log = world.open()
    write(log, 9, 0, transactional=False)
    log.roll(NOW)
    log = world.open(clean=False)
    write(log, 1, 0)
    end(log, 1, aborts=True)
    world.disk.fail("descriptor", log.segments[0].path(), errno.EMFILE)
    with pytest.raises(StorageFault):
        log.prepare_close()
    world.disk.stop_failing()
    world.close(log)
    assert world.open().aborted_transactions(0, 10) == [(1, 1)]
