"""What workers read and write for a log, so that whoever asks it does not wait for a disk."""

from __future__ import annotations

import struct
import threading
from collections import Counter

import pytest
from tests.server.watched_disk import watched
from tests.storage.at_once import cut_to, first_at_or_after
from tests.storage.log_world import FOLDER, NOW, World, append, batch, marker, put, read_all

from ottla.config.log import LogConfig
from ottla.storage.errors import StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.cold_reads import MissingRead, missing_aborted, missing_place, missing_producers
from ottla.storage.log.indexes.time_lookup import FromDisk, Lookup, TimestampOffset
from ottla.storage.log.log import Log

#: Some forty batches in the first segment, and an index entry for each sixth: to go through all takes twenty reads.
LONG = LogConfig(segment_bytes=1 << 17, index_interval_bytes=1 << 14, retention_ms=-1)
#: One that asks where a batch lies, and one that reads it.
READS_OF_TWO_LOOK_UPS = 8
#: What waits for the medium, or for a folder.
WAITING = {"open", "create", "read_file", "write", "rename", "remove", "truncate", "sync", "sync_directory"}


def abort(log: Log, producer: int) -> None:
    put(log, batch(b"t", producer=(producer, 0, 0), transactional=True))
    put(log, marker(producer, 0, aborts=True), origin=Origin.COORDINATOR)


def done(missing: MissingRead | None, threads: list[int]) -> None:
    """By a worker, as far as the disk that is watched knows."""
    assert missing is not None
    before = list(threads)
    threads.clear()
    missing.run()
    threads[:] = before
    missing.take()


def worked_out(lookup: Lookup, threads: list[int]) -> TimestampOffset | None:
    """Its steps for the disk are a worker's, as far as the disk that is watched knows."""
    try:
        while isinstance(step := next(lookup), FromDisk):
            before = list(threads)
            threads.clear()
            step.work()
            threads[:] = before
    except StopIteration as end:
        found: TimestampOffset | None = end.value
        return found
    raise AssertionError(f"nothing else is expected here: {step}")


def waited(asked: Counter[tuple[str, str]]) -> set[str]:
    return {operation for operation, _ in asked} & WAITING


def with_aborted(count: int = 3) -> tuple[World, Log, Counter[tuple[str, str]], list[int]]:
    """A log of an earlier life, of which nothing is in memory."""
    world = World()
    log = world.open()
    for producer in range(count):
        abort(log, producer)
    append(log, b"last")
    world.close(log)
    disk, asked, threads = watched(world.disk)
    world.disk = disk
    log = world.open()
    log.staging.roll_apart()
    threads.append(threading.get_ident())
    return world, log, asked, threads


def test_a_marker_leaves_the_index_of_aborted_transactions_to_the_flush() -> None:
    world = World()
    disk, asked, threads = watched(world.disk)
    world.disk = disk
    log = world.open()
    append(log, b"first")
    threads.append(threading.get_ident())
    abort(log, 1)
    abort(log, 2)
    assert waited(asked) == set()
    assert log.aborted_transactions(0, log.end_offset) == [(1, 1), (2, 3)]
    threads.clear()
    world.flush(log)
    assert log.aborted_transactions(0, log.end_offset) == [(1, 1), (2, 3)]
    again = world.open(clean=False)
    assert again.aborted_transactions(0, again.end_offset) == [(1, 1), (2, 3)]


def test_a_reader_finds_its_place_without_waiting_for_the_disk() -> None:
    _, log, asked, threads = with_aborted()
    end = log.end_offset
    done(missing_place(log, 2, end), threads)
    done(missing_producers(log), threads)
    assert missing_place(log, 2, end) is None
    piece = log.read(2, 10_000, end)
    done(missing_aborted(log, 2, piece, end), threads)
    assert missing_aborted(log, 2, piece, end) is None
    assert log.aborted_in(2, piece, end) == [(1, 2), (2, 4)]
    assert log.first_unstable_offset is None
    assert waited(asked) == set()


def test_a_damaged_index_of_aborted_transactions_is_mended_by_a_worker() -> None:
    world, log, asked, threads = with_aborted()
    end, path = log.end_offset, f"{FOLDER}/{0:020}.txnindex"
    threads.clear()
    file = world.disk.open(path)
    file.write(b"\xff" * 40, 0)
    file.close()
    threads.append(threading.get_ident())
    asked.clear()
    done(missing_place(log, 0, end), threads)
    done(missing_producers(log), threads)
    piece = log.read(0, 10_000, end)
    done(missing_aborted(log, 0, piece, end), threads)
    assert log.aborted_in(0, piece, end) == [(0, 0), (1, 2), (2, 4)]
    assert waited(asked) == set()
    threads.clear()
    again = world.open()
    assert again.aborted_transactions(0, end) == [(0, 0), (1, 2), (2, 4)]
    assert world.warnings == []


def test_what_a_worker_has_read_of_a_log_that_was_cut_meanwhile_is_not_believed() -> None:
    _, log, _, threads = with_aborted()
    threads.clear()
    end = log.end_offset
    missing = missing_place(log, 4, end)
    assert missing is not None
    missing.run()
    cut_to(log, 4)
    append(log, b"x" * 300, timestamp=NOW)
    missing.take()
    assert read_all(log)[-1] == (4, b"x" * 300)


def long_log() -> tuple[World, Log, Counter[tuple[str, str]], list[int]]:
    """Two segments, of which the first is sealed; the loop's thread is watched."""
    world = World(config=LONG)
    disk, asked, threads = watched(world.disk)
    world.disk = disk
    log = world.open()
    for number in range(60):
        append(log, b"v" * 3000, timestamp=NOW + number)
    log.staging.roll_apart()
    threads.append(threading.get_ident())
    return world, log, asked, threads


def reads(asked: Counter[tuple[str, str]]) -> int:
    return sum(count for (operation, _), count in asked.items() if operation == "read")


@pytest.mark.parametrize("damaged", [*range(14, 22)])
def test_no_reader_goes_through_a_segment_for_the_index_of_a_damaged_batch_again_and_again(damaged: int) -> None:
    world, log, asked, threads = long_log()
    end, segment = log.end_offset, log.segments[0]
    threads.clear()
    position = segment.locate(damaged)
    assert position is not None
    file = world.disk.open(segment.path())
    file.write(b"\xff" * 61, position.position)
    file.close()
    log.places.forget()
    threads.append(threading.get_ident())
    for _ in range(5):
        asked.clear()
        missing = missing_place(log, damaged, end)
        if missing is not None:
            done(missing, threads)
        if missing is None or missing.fault is None:
            with pytest.raises(StorageFault):
                log.read(damaged, 10_000, end)
        assert reads(asked) <= READS_OF_TWO_LOOK_UPS
    assert len(world.warnings) <= 1
    # What is in memory is true of all other batches still.
    found = first_at_or_after(log, NOW, end)
    assert found is not None
    assert found.offset == 0


def test_a_wrong_entry_of_an_index_is_mended_by_a_worker() -> None:
    world, log, asked, threads = long_log()
    end, segment = log.end_offset, log.segments[0]
    wanted, wrong = segment.offsets.offsets[2], segment.offsets.positions[2] + 100
    threads.clear()
    path = f"{FOLDER}/{0:020}.index"
    world.close(log)
    file = world.disk.open(path)
    file.write(struct.pack(">i", wrong), 2 * 8 + 4)
    file.close()
    log = world.open()
    log.staging.roll_apart()
    done(missing_place(log, 0, end), threads)
    threads.append(threading.get_ident())
    asked.clear()
    done(missing_place(log, wanted, end), threads)
    assert missing_place(log, wanted, end) is None
    assert log.read(wanted, 10_000, end).size > 3000
    assert reads(asked) <= READS_OF_TWO_LOOK_UPS
    assert waited(asked) == set()
    assert len(world.warnings) == 1


def active_log(wrong: int) -> tuple[World, Log, Counter[tuple[str, str]], list[int], int]:
    """One segment, which is written to, with its index read from a file of which an entry is wrong by so many bytes;
    the offset that this entry is for."""
    world = World(config=LONG._replace(segment_bytes=1 << 20))
    log = world.open()
    for number in range(60):
        append(log, b"v" * 3000, timestamp=NOW + number)
    wanted, position = log.active.offsets.offsets[2], log.active.offsets.positions[2]
    world.close(log)
    file = world.disk.open(f"{FOLDER}/{0:020}.index")
    file.write(struct.pack(">i", position + wrong), 2 * 8 + 4)
    file.close()
    disk, asked, threads = watched(world.disk)
    world.disk = disk
    log = world.open()
    log.staging.roll_apart()
    done(missing_place(log, 0, log.end_offset), threads)
    threads.append(threading.get_ident())
    asked.clear()
    return world, log, asked, threads, wanted


def test_a_wrong_entry_of_the_active_segments_index_is_mended_by_a_worker_while_others_write() -> None:
    world, log, asked, threads, wanted = active_log(wrong=100)
    end = log.end_offset
    missing, second = missing_place(log, wanted, end), missing_place(log, wanted, end)
    assert missing is not None
    assert second is not None
    threads.clear()
    missing.run()
    for number in range(60, 80):
        append(log, b"v" * 3000, timestamp=NOW + number)
    threads.append(threading.get_ident())
    missing.take()
    done(second, threads)  # finds what the first has made
    assert missing_place(log, wanted, end) is None
    assert log.read(wanted, 10_000, end).size > 3000
    assert reads(asked) <= READS_OF_TWO_LOOK_UPS
    assert len(world.warnings) == 1
    threads.clear()
    # It is as if it had never been wrong, and so is the file that a flush brings up to date.
    kept = log.active.offsets, log.active.times
    world.close(log)
    again = world.open()
    fresh = again.active
    assert fresh.offsets.positions == kept[0].positions
    assert fresh.offsets.offsets == kept[0].offsets
    assert fresh.times.timestamps == kept[1].timestamps
    assert [again.read(offset, 1, again.end_offset).size > 3000 for offset in range(80)] == [True] * 80


def test_a_look_up_by_time_leaves_a_wrong_entry_to_a_worker() -> None:
    world, log, asked, threads, wanted = active_log(wrong=100)
    found = worked_out(log.look_up(NOW + wanted, log.end_offset), threads)
    assert found is not None
    assert found.offset == wanted
    assert reads(asked) <= READS_OF_TWO_LOOK_UPS
    assert len(world.warnings) == 1


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_damaged_batch_of_the_active_segment_is_gone_to_once_by_a_worker(is_sealed: bool) -> None:
    world, log, asked, threads = long_log()
    threads.clear()
    segment = log.segments[0] if is_sealed else log.active
    offset = segment.base_offset + segment.offsets.offsets[1]
    position = segment.locate(offset)
    assert position is not None
    file = world.disk.open(segment.path())
    file.write(struct.pack(">q", 1 << 40), position.position)  # an offset that cannot be there
    file.close()
    log.places.forget()
    threads.append(threading.get_ident())
    for _ in range(3):
        asked.clear()
        missing = missing_place(log, offset, log.end_offset)
        if missing is not None:
            done(missing, threads)
            append(log, b"more")
        if missing is None or missing.fault is None:
            with pytest.raises(StorageFault):
                log.read(offset, 10_000, log.end_offset)
        assert reads(asked) <= READS_OF_TWO_LOOK_UPS
    assert len(world.warnings) == 1
