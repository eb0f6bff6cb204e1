"""Rolling and retention: when segments end, and when they go."""

from __future__ import annotations

import errno
from random import Random

import pytest
from tests.storage.at_once import expire
from tests.storage.log_world import NOW, World, append, batch, memory_disk, put, read_all

from ottla.config.log import LogConfig
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Log
from ottla.storage.log.retention import EXPIRED_AT_ONCE, may_expire

MINUTE = 60_000
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100, retention_ms=-1, file_delete_delay_ms=5000)


def filled(world: World, count: int = 60) -> Log:
    """One record a minute, ending now."""
    log = world.open()
    for number in range(count):
        append(log, b"v" * 40, timestamp=NOW - (count - 1 - number) * MINUTE)
    world.flush(log)
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_rolled_by_size() -> None:
    log = filled(World(config=CONFIG))
    assert len(log.segments) > 5
    assert all(900 < segment.size <= 1000 for segment in log.segments[:-1])


def test_rolled_by_the_records_own_time() -> None:
    world = World(config=LogConfig(segment_ms=10 * MINUTE))
    log = filled(world)
    assert bases(log) == [0, 11, 22, 33, 44, 55]


def test_rolled_by_time_after_a_restart() -> None:
    world = World(config=LogConfig(segment_ms=10 * MINUTE))
    log = world.open()
    append(log, b"a", timestamp=NOW - 20 * MINUTE)
    world.close(log)
    log = world.open()
    append(log, b"b", timestamp=NOW - 10 * MINUTE)
    append(log, b"c", timestamp=NOW - 9 * MINUTE)
    assert bases(log) == [0, 2]


def test_jitter_rolls_earlier_and_the_same_each_time() -> None:
    world = World(config=LogConfig(segment_ms=10 * MINUTE, segment_jitter_ms=5 * MINUTE))
    first = bases(filled(world))
    second = bases(filled(World(config=world.config)))
    assert first == second
    assert len(first) > len(bases(filled(World(config=LogConfig(segment_ms=10 * MINUTE)))))


def test_rolled_when_an_index_is_full() -> None:
    # Five entries of eight bytes, four of twelve less the one that the end needs: three.
    config = LogConfig(segment_index_bytes=48, index_interval_bytes=0)
    log = filled(World(config=config), 12)
    assert bases(log) == [0, 4, 8]
    for segment in log.segments:
        assert len(segment.offsets) <= 6
        assert len(segment.times) <= 4


def test_an_old_segment_is_due_though_nobody_appends() -> None:
    world = World(config=CONFIG._replace(segment_ms=10 * MINUTE))
    log = world.open()
    assert not log.roll_due(NOW + 100 * MINUTE)
    append(log, b"a", timestamp=NOW)
    assert not log.roll_due(NOW + 10 * MINUTE)
    assert log.roll_due(NOW + 10 * MINUTE + 1)
    log.roll(NOW)
    assert bases(log) == [0, 1]
    log.roll(NOW)
    assert bases(log) == [0, 1]


def test_retention_by_time_takes_whole_old_segments() -> None:
    world = World(config=CONFIG)
    log = filled(world)
    before = bases(log)
    log.reconfigure(CONFIG._replace(retention_ms=30 * MINUTE))
    removals = expire(log, NOW, log.end_offset)
    # A segment goes when its newest record is too old; the one that holds the limit stays.
    newest_gone = NOW - (59 - (log.start_offset - 1)) * MINUTE
    assert newest_gone < NOW - 30 * MINUTE <= newest_gone + 8 * MINUTE
    assert len(removals) == len(before) - len(bases(log)) > 0
    assert log.start_offset == bases(log)[0]
    assert {removal.due_ms for removal in removals} == {NOW + 5000}
    assert log.size == sum(segment.size for segment in log.segments)
    names = world.disk.names(world.folder)
    assert [int(name[:20]) for name in names if name.endswith(".log.deleted")] == before[: len(removals)]
    for removal in removals:
        removal.run()
        removal.run()
    assert not [name for name in world.disk.names(world.folder) if name.endswith(".deleted")]
    assert expire(log, NOW, log.end_offset) == []
    assert read_all(log)[0][0] == log.start_offset


def test_retention_takes_the_active_segment_too_once_the_next_is_certain() -> None:
    world = World(config=CONFIG._replace(retention_ms=MINUTE))
    log = filled(world)
    expire(log, NOW + 1000 * MINUTE, log.end_offset)
    assert (log.active.size, log.active.base_offset) == (0, 60)
    world.flush(log)
    for removal in expire(log, NOW + 1000 * MINUTE, log.end_offset):
        removal.run()
    assert (bases(log), log.start_offset, log.end_offset, log.size) == ([60], 60, 60, 0)
    world.close(log)
    log = world.open()
    assert (log.start_offset, log.end_offset) == (60, 60)
    # An empty segment is not rolled again and again.
    assert expire(log, NOW + 2000 * MINUTE, log.end_offset) == []
    assert bases(log) == [60]


def test_nothing_goes_at_or_above_the_high_watermark() -> None:
    log = filled(World(config=CONFIG._replace(retention_ms=MINUTE)))
    second, third = bases(log)[1:3]
    expire(log, NOW + 1000 * MINUTE, third - 1)
    assert log.start_offset == second


def test_nothing_goes_before_what_stays_is_on_the_medium() -> None:
    world = World(config=CONFIG._replace(retention_ms=MINUTE))
    log = world.open()
    for _ in range(60):
        append(log, b"v" * 40, timestamp=NOW - 100 * MINUTE)
    assert expire(log, NOW, log.end_offset) == []
    world.flush(log)
    assert expire(log, NOW, log.end_offset)


def test_retention_by_size_keeps_at_least_that_much() -> None:
    world = World(config=CONFIG)
    log = filled(world)
    log.reconfigure(CONFIG._replace(retention_bytes=3000))
    expire(log, NOW, log.end_offset)
    assert 3000 <= log.size < 4000
    log.reconfigure(CONFIG._replace(retention_bytes=0))
    expire(log, NOW, log.end_offset)
    world.flush(log)
    expire(log, NOW, log.end_offset)
    assert log.size == 0


def test_a_compacted_topic_only_loses_what_was_deleted() -> None:
    world = World(config=CONFIG._replace(cleanup_policy=frozenset({"compact"}), retention_ms=1, retention_bytes=1))
    log = world.open()
    for number in range(40):
        put(log, batch(b"v" * 40, key=b"%d" % number, timestamp=NOW - 1000))
    world.flush(log)
    assert expire(log, NOW, log.end_offset) == []
    log.advance_start(bases(log)[2])
    assert len(expire(log, NOW, log.end_offset)) == 2


def test_deleted_records_take_their_segments_along() -> None:
    world = World(config=CONFIG)
    log = filled(world)
    second, third = bases(log)[1:3]
    log.advance_start(third - 1)
    removals = expire(log, NOW, log.end_offset)
    assert (len(removals), bases(log)[0], log.start_offset) == (1, second, third - 1)
    # All records deleted: the active segment stays.
    log.advance_start(log.end_offset)
    expire(log, NOW, log.end_offset)
    assert (len(log.segments), log.start_offset) == (1, 60)
    assert append(log, b"next").first_offset == 60


def test_records_without_times_live_as_long_as_their_file() -> None:
    world = World(config=CONFIG._replace(retention_ms=MINUTE))
    log = world.open()
    for _ in range(30):
        append(log, b"v" * 40, timestamp=-1)
    world.flush(log)
    modified = world.disk.modified_ms(log.segments[0].path())
    assert expire(log, modified + MINUTE, log.end_offset) == []
    assert expire(log, modified + MINUTE + 1, log.end_offset)


def test_many_segments_go_in_several_calls() -> None:
    world = World(config=LogConfig(segment_bytes=200, retention_ms=1000, file_delete_delay_ms=0))
    log = world.open()
    for number in range(3 * EXPIRED_AT_ONCE):
        append(log, b"x" * 100, timestamp=NOW - 100_000 + number)
    world.flush(log)
    assert len(log.segments) == 3 * EXPIRED_AT_ONCE
    taken = []
    for _ in range(3):
        taken.append(len(expire(log, NOW, log.end_offset)))
        world.flush(log)
    # The last one goes once the empty segment behind it is certain.
    assert taken == [EXPIRED_AT_ONCE, EXPIRED_AT_ONCE, EXPIRED_AT_ONCE - 1]
    assert len(expire(log, NOW, log.end_offset)) == 1
    assert [segment.base_offset for segment in log.segments] == [log.end_offset]
    assert expire(log, NOW, log.end_offset) == []


def test_segments_whose_names_a_fault_left_are_removed_once_they_are_aside() -> None:
    disk = memory_disk()
    world = World(disk, CONFIG)
    log = filled(world)
    log.reconfigure(CONFIG._replace(retention_ms=30 * MINUTE))
    disk.fail("rename", "*.log", errno.ENOSPC, times=1)
    with pytest.raises(StorageFault) as fault:
        expire(log, NOW, log.end_offset)
    assert not fault.value.directory_failed
    assert may_expire(log, NOW, log.end_offset)
    removals = expire(log, NOW, log.end_offset)
    assert removals
    for removal in removals:
        removal.run()
    assert not [name for name in disk.names(world.folder) if name.endswith(".deleted")]


def test_a_log_that_nobody_writes_to_behind_a_stop_expires_as_a_whole() -> None:
    """Its snapshot stands where it ends, and so the roll has nothing for a flush to do but the new segment's name."""
    world = World(config=LogConfig(retention_ms=MINUTE))
    log = world.open()
    put(log, batch(b"v", producer=(1, 0, 0)))
    world.close(log)
    log = world.open()
    for _ in range(2):
        expire(log, NOW + 10 * MINUTE, log.end_offset)
        if log.flush_due(NOW + 10 * MINUTE):
            world.flush(log)
    assert (bases(log), log.start_offset) == ([1], 1)
    assert not log.flush_due(NOW + 10 * MINUTE)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_goes_while_a_flush_makes_the_next_segment_certain(seed: int) -> None:
    world = World(config=LogConfig(retention_ms=MINUTE))
    log = world.open()
    put(log, batch(b"v", producer=(1, 0, 0)))
    world.flush(log)
    expire(log, NOW + 10 * MINUTE, log.end_offset)
    flush = log.prepare_flush()
    assert flush is not None
    expire(log, NOW + 10 * MINUTE, log.end_offset)
    world.crash(Random(seed))
    log = world.open(clean=False)
    assert log.end_offset == 1
