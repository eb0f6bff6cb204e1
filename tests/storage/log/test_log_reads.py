"""Reads: whole first batches, limits, positions remembered, and files that close behind one's back."""

from __future__ import annotations

from random import Random

import pytest
from tests.storage.at_once import begin_anew_at, cut_to, expire
from tests.storage.log_world import FOLDER, NOW, SMALL, TP, World, append, memory_disk, read_all

from ottla.config.log import LogConfig
from ottla.storage.errors import CorruptLog, OffsetOutsideLog, StorageFault
from ottla.storage.log.cursor import Cursor
from ottla.storage.log.log import Log
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.opening.open_log import open_log
from ottla.storage.log.places import SPOTS_MAX
from ottla.storage.log.recent_batches import KEPT


def test_the_first_batch_is_whole_however_large() -> None:
    log = World().open()
    append(log, b"x" * 1000)
    append(log, b"y")
    whole = log.read(0, 10, 2)
    assert whole.size == len(whole.read()) > 1000
    assert log.read(0, 10, 2, whole_first_batch=False).size == 0
    assert log.read(1, 10, 2, whole_first_batch=True).size > 10


def test_the_last_batch_may_be_cut() -> None:
    log = World().open()
    append(log, b"a")
    first = log.size
    append(log, b"b")
    assert log.read(0, first + 10, 2).size == first + 10
    assert log.read(0, 1 << 20, 2).size == log.size


def test_nothing_at_or_above_the_limit() -> None:
    log = World().open()
    sizes = []
    for _ in range(6):
        append(log, b"a", b"b")
        sizes.append(log.size)
    for limit in range(13):
        whole = limit // 2
        taken = log.read(0, 1 << 20, limit)
        assert taken.size == (sizes[whole - 1] if whole else 0)
    assert log.read(4, 100, 4).size == 0
    assert log.read(5, 100, 4).size == 0


def test_offsets_outside_of_the_log() -> None:
    log = World().open()
    assert log.read(0, 100, 0).size == 0
    append(log, b"a", b"b", b"c")
    for offset in (-1, 4):
        with pytest.raises(OffsetOutsideLog):
            log.read(offset, 100, 3)
    assert log.read(3, 100, 3).size == 0
    log.advance_start(2)
    with pytest.raises(OffsetOutsideLog):
        log.read(1, 100, 3)
    # The batch that holds the start is given whole: readers skip what they did not ask for.
    assert log.read(2, 100, 3).position == 0
    with pytest.raises(OffsetOutsideLog):
        log.advance_start(4)
    with pytest.raises(OffsetOutsideLog):
        log.advance_start(3, high_watermark=2)
    log.advance_start(1)
    assert log.start_offset == 2


def test_a_read_stays_within_its_segment() -> None:
    log = World().open()
    while len(log.segments) < 3:
        append(log, b"x" * 100)
    for segment in log.segments:
        taken = log.read(segment.base_offset, 1 << 20, log.end_offset)
        assert (taken.position, taken.size) == (0, segment.size)


def test_a_cut_makes_remembered_places_worthless() -> None:
    log = World().open()
    for number in range(6):
        append(log, b"%d" % number)
    small = log.read(3, 1, 6).size
    assert log.read(0, 1 << 20, 5).size == 5 * small
    cut_to(log, 3)
    append(log, b"x" * 300)
    append(log, b"y" * 300)
    append(log, b"z" * 300)
    assert 300 < log.read(3, 1, 6).size < 600
    assert log.read(0, 1 << 20, 5).size == log.size - log.read(5, 1, 6).size
    begin_anew_at(log, 3)
    append(log, b"0")
    append(log, b"1")
    taken = log.read(3, 1, 4)
    assert (taken.position, taken.size) == (0, small)


def test_places_are_remembered_without_bounds_being_passed() -> None:
    world = World(config=LogConfig(segment_bytes=1 << 20))
    log = world.open()
    for number in range(3 * KEPT):
        append(log, b"%d" % number)
    for offset in range(log.end_offset):
        assert log.read(offset, 1, log.end_offset).size > 60
    assert len(log.places._spots) <= SPOTS_MAX
    assert log.places.recent is not None
    assert len(log.places.recent.ends) <= 2 * KEPT
    assert read_all(log) == [(number, b"%d" % number) for number in range(3 * KEPT)]


def test_a_reader_that_goes_on_needs_no_index() -> None:
    disk = memory_disk()
    log = World(disk).open()
    for number in range(300):
        append(log, b"%d" % number * 10)
    log.read(0, 1, log.end_offset)
    for offset in range(1, log.active.base_offset):
        if offset in log.places.bases:
            # A new file: that is looked up.
            log.read(offset, 1, log.end_offset)
            continue
        assert log.places._spots[offset][1] > 0
        log.read(offset, 1, log.end_offset)


def test_few_files_are_open_at_a_time() -> None:
    files = OpenFiles(limit=4)
    disk = memory_disk()
    world = World(disk)
    log = open_log(disk, FOLDER, TP, SMALL, now_ms=NOW, clean=True, files=files)
    for number in range(300):
        append(log, b"%d" % number * 10)
        if number % 20 == 0:
            world.flush(log)
    world.flush(log)
    assert len(log.segments) > 12
    expected = read_all(log)
    for _ in range(2):
        assert read_all(log) == expected
        assert sum(segment.is_open for segment in log.segments) <= 5
    # One that is written to and not synced stays open.
    append(log, b"more")
    read_all(log)
    assert log.active.is_open


def test_a_lease_outlives_the_segment() -> None:
    world = World()
    log = world.open()
    while len(log.segments) < 3:
        append(log, b"x" * 100, timestamp=NOW - 1000)
    world.flush(log)
    taken = log.read(0, 1 << 20, log.end_offset)
    assert taken.file is not None
    taken.file.lease()
    before = taken.read()
    log.reconfigure(SMALL._replace(retention_ms=1))
    for removal in expire(log, NOW + 10_000, log.end_offset):
        removal.run()
    assert log.start_offset > 0
    assert taken.read() == before
    taken.file.release()


def test_damage_met_by_a_reader_is_named() -> None:
    world = World(config=LogConfig())
    log = world.open()
    for number in range(3):
        append(log, b"%d" % number)
    world.close(log)
    log = world.open()
    file = world.disk.open(world.path("00000000000000000000.log"))
    file.write(b"\xff" * 8, 0)
    file.write(b"\0" * 4, 8)
    file.close()
    with pytest.raises(CorruptLog):
        log.read(1, 100, 3)


def test_a_disk_that_cannot_be_read() -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    append(log, b"a")
    world.close(log)
    log = world.open()
    disk.fail("*", "*.log", 5)
    with pytest.raises((StorageFault, OSError)):
        log.read(0, 100, 1).read()


def read_on(cursor: Cursor, offset: int, log: Log, max_bytes: int = 10) -> tuple[int, int, int]:
    """As a fetch does it: the segment, the position and the size that were found."""
    size = cursor.find(offset, max_bytes, log.end_offset)
    data = bytearray(7) + bytearray(cursor.segment.file.read(size + 61, cursor.position))
    cursor.has_read(data, 7, len(data) - 7)
    return cursor.segment.base_offset, cursor.position, size


def test_a_sequential_reader_is_told_its_next_place_by_what_it_has_read() -> None:
    log = World().open()
    for number in range(40):
        append(log, b"%d" % number * 100)
    seen = [read_on(Cursor(log), offset, log) for offset in range(40)]
    log.places.forget()
    cursor = Cursor(log)
    assert [read_on(cursor, offset, log) for offset in range(40)] == seen
    log.places.forget()
    expected = [(log.read(offset, 10, 40).position, log.read(offset, 10, 40).size) for offset in range(40)]
    assert [(position, size) for _, position, size in seen] == expected


def test_a_cursor_gives_what_the_log_gives() -> None:
    """At random places, limits and sizes, while the log grows, rolls, is cut, and loses its oldest segments."""
    for seed in range(40):
        rng = Random(seed)
        world = World(config=SMALL._replace(segment_bytes=rng.choice([400, 2000, 1 << 20])))
        log = world.open()
        cursors = [Cursor(log) for _ in range(3)]
        following = 0
        for _ in range(120):
            what = rng.random()
            if what < 0.4:
                append(log, b"x" * rng.choice([1, 50, 300]))
            elif what < 0.42 and log.end_offset - log.start_offset > 3:
                cut_to(log, rng.randint(log.start_offset + 1, log.end_offset))
            elif what < 0.44 and log.end_offset > log.start_offset:
                log.advance_start(rng.randint(log.start_offset, log.end_offset))
            if log.end_offset == log.start_offset:
                continue
            offset = following if rng.random() < 0.7 else rng.randrange(log.start_offset, log.end_offset)
            if not log.start_offset <= offset < log.end_offset:
                offset = log.start_offset
            max_bytes = rng.choice([1, 100, 200, 5000])
            limit = log.end_offset if rng.random() < 0.8 else rng.randint(offset, log.end_offset)
            cursor = rng.choice(cursors)
            size = cursor.find(offset, max_bytes, limit)
            expected = log.read(offset, max_bytes, limit)
            assert size == expected.size, (seed, offset)
            following = offset + 1
            if size:
                assert (cursor.segment.file, cursor.position) == (expected.file, expected.position), (seed, offset)
                data = bytearray(cursor.segment.file.read(size + 61, cursor.position))
                cursor.has_read(data, 0, len(data))


def test_what_is_no_header_tells_no_place() -> None:
    log = World().open()
    for number in range(3):
        append(log, b"%d" % number * 100)
    cursor = Cursor(log)
    size = cursor.find(0, 10, 3)
    position = cursor.position
    cursor.has_read(bytearray(b"\xff" * 4096), 0, 4096)
    assert cursor.find(1, 10, 3) == size
    assert cursor.position == position + size
