"""Nothing of a log of an earlier life is in memory: where offsets and times lie is read by workers, page by page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.storage.at_once import begin_anew_at
from tests.storage.cold_disk import ColdDisk
from tests.storage.log_world import FOLDER, NOW, World, batch, marker, put

from ottla.config.log import LogConfig
from ottla.storage.errors import StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.cold_reads import MissingRead, missing_aborted, missing_place, missing_producers
from ottla.storage.log.indexes.time_lookup import FromDisk, Lookup, LookupPause, TimestampOffset
from ottla.storage.log.log import Log

BATCHES = 60
#: No index entry leads into the middle of a segment, so that it is walked through.
UNINDEXED = LogConfig(segment_bytes=1 << 17, index_interval_bytes=1 << 20, retention_ms=-1)
#: Entries that are further from each other than the headers of one read.
SPARSE = LogConfig(segment_bytes=1 << 17, index_interval_bytes=1 << 14, retention_ms=-1)


def reopened(config: LogConfig, fill: Callable[[Log], None]) -> tuple[World, Log, ColdDisk]:
    world = World(config=config)
    log = world.open()
    fill(log)
    world.close(log)
    disk = world.disk = ColdDisk(world.disk)  # type: ignore[assignment]
    log = world.open()
    log.staging.roll_apart()
    return world, log, disk  # type: ignore[return-value]


def batches(log: Log) -> None:
    for number in range(BATCHES):
        put(log, batch(b"v" * 3000, timestamp=NOW + number))


def driven(disk: ColdDisk, lookup: Lookup) -> TimestampOffset | None:
    """As a broker does it, with a worker for what it is asked to read."""
    try:
        step = next(lookup)
        while True:
            if isinstance(step, FromDisk):
                with disk.worker():
                    step.work()
                step = lookup.send(None)
            else:
                step = lookup.send(None if isinstance(step, LookupPause) else step.work(*step.arguments()))
    except StopIteration as end:
        found: TimestampOffset | None = end.value
        return found


def read(disk: ColdDisk, missing: MissingRead | None) -> None:
    if missing is not None:
        with disk.worker():
            missing.run()
        missing.take()
        assert missing.fault is None


@pytest.mark.parametrize("config", [UNINDEXED, SPARSE])
@pytest.mark.parametrize("wanted", [0, 17, 41, BATCHES - 1])
def test_a_look_up_by_time_walks_through_what_workers_have_read(config: LogConfig, wanted: int) -> None:
    _, log, disk = reopened(config, batches)
    with disk.loop():
        found = driven(disk, log.look_up(NOW + wanted, log.end_offset))
    assert found is not None
    assert found.offset == wanted
    assert disk.waited == []


@pytest.mark.parametrize("config", [UNINDEXED, SPARSE])
@pytest.mark.parametrize("start", [0, 30])
def test_so_does_the_look_up_of_the_largest_timestamp(config: LogConfig, start: int) -> None:
    def fill(log: Log) -> None:
        for number in range(BATCHES):
            put(log, batch(b"v" * 3000, timestamp=NOW + (0 if number > 35 else number)))
        log.advance_start(start, log.end_offset)

    _, log, disk = reopened(config, fill)
    with disk.loop():
        found = driven(disk, log.look_up_largest())
    assert found is not None
    assert found.offset == 35
    assert disk.waited == []


@pytest.mark.parametrize("config", [UNINDEXED, SPARSE])
def test_each_offset_is_found_where_workers_have_read(config: LogConfig) -> None:
    for offset in range(0, BATCHES, 7):
        _, log, disk = reopened(config, batches)
        with disk.loop():
            read(disk, missing_place(log, offset, log.end_offset))
            piece = log.read(offset, 10_000, log.end_offset)
        assert piece.size > 3000
        assert disk.waited == []


def test_an_offset_in_the_hole_that_compaction_left_is_looked_for_in_the_next_segment_by_a_worker() -> None:
    def fill(log: Log) -> None:
        for base in (0, 1, 90, 91):
            if base == 90:
                log.roll(NOW)
            log.stage_replica(batch(b"v" * 3000, base_offset=base, leader_epoch=0))
            log.write_staged()

    _, log, disk = reopened(
        LogConfig(segment_bytes=1 << 17, retention_ms=-1, cleanup_policy=frozenset({"compact"})), fill
    )
    with disk.loop():
        tries = 0
        while (missing := missing_place(log, 50, log.end_offset)) is not None:
            read(disk, missing)
            tries += 1
            assert tries < 4
        assert log.read(50, 10_000, log.end_offset).position == 0
    assert disk.waited == []


def with_aborted() -> tuple[World, Log, ColdDisk]:
    def fill(log: Log) -> None:
        for producer in range(3):
            put(log, batch(b"t", producer=(producer, 0, 0), transactional=True))
            put(log, marker(producer, 0, aborts=True), origin=Origin.COORDINATOR)

    return reopened(LogConfig(), fill)


def test_what_a_worker_could_not_read_is_said_by_whoever_wanted_it() -> None:
    world, log, disk = with_aborted()
    with disk.loop():
        first = missing_place(log, 0, log.end_offset)
        assert first is not None
        with disk.worker():
            world.disk.remove(f"{FOLDER}/{0:020}.log")
            first.run()
        first.take()
    assert isinstance(first.fault, StorageFault)
    assert disk.waited == []


@pytest.mark.parametrize("what", ["place", "producers", "aborted"])
def test_files_that_have_gone_with_their_segment_are_no_fault(what: str) -> None:
    """Retention takes a segment away while a worker is about to open it."""
    _, log, disk = with_aborted()
    end = log.end_offset
    missing: MissingRead | None
    if what == "place":
        missing = missing_place(log, 0, end)
    elif what == "producers":
        missing = missing_producers(log)
    else:
        read(disk, missing_place(log, 0, end))
        missing = missing_aborted(log, 0, log.read(0, 10_000, end), end)
    assert missing is not None
    begin_anew_at(log, end)
    missing.run()
    missing.take()
    assert missing.fault is None
    assert (log.start_offset, log.end_offset) == (end, end)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_log_that_is_given_up_meanwhile_has_nothing_to_read_any_more(is_read: bool) -> None:
    """Whoever asks again and again until nothing is missing would never end."""
    _, log, _ = with_aborted()
    for missing in (missing_place(log, 0, log.end_offset), missing_producers(log)):
        assert missing is not None
        if is_read:
            missing.run()
        log.abandon()
        if not is_read:
            missing.run()
        missing.take()
        assert missing.fault is not None
