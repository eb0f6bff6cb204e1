"""Starting after a crash: torn tails are cut and kept aside, damage below the recovery point is never cut."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest
from tests.storage.at_once import cut_to, first_at_or_after, of_largest_timestamp
from tests.storage.log_world import NOW, SMALL, World, append, batch, marker, memory_disk, put, read_all

from ottla.config.log import LogConfig
from ottla.ports.disk import Disk
from ottla.storage.errors import CorruptLog, LostRecords, StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log


def filled(world: World, count: int = 8) -> Log:
    log = world.open()
    for number in range(count):
        append(log, b"%d" % number * 40, timestamp=NOW + number)
    return log


def size(world: World, base: int = 0) -> int:
    return world.disk.size(world.path(f"{base:020d}.log"))


def overwrite(world: World, name: str, position: int, data: bytes) -> None:
    file = world.disk.open(world.path(name))
    file.write(data, position)
    file.close()


def cut(world: World, name: str, length: int) -> None:
    file = world.disk.open(world.path(name))
    file.truncate(length)
    file.close()


def torn_files(world: World) -> list[str]:
    return [name for name in world.disk.names(world.folder) if name.endswith(".torn")]


def test_a_torn_tail_at_every_byte_of_the_last_batch() -> None:
    whole = World(config=LogConfig())
    log = filled(whole, 3)
    expected = read_all(log)
    start = log.segments[0].locate(2).position  # type: ignore[union-attr]
    log.abandon()
    for length in range(start, size(whole)):
        world = World(config=LogConfig())
        filled(world, 3).abandon()
        name = "00000000000000000000.log"
        original = world.disk.read_file(world.path(name))
        cut(world, name, length)
        log = world.open(clean=False)
        assert log.recovery is not None
        assert read_all(log) == expected[:2]
        assert log.recovery.truncated_bytes == length - start
        assert bool(world.warnings) == bool(length - start)
        if any(original[start:length]):
            assert torn_files(world) == [f"{name}.{start}.torn"]
            assert world.disk.read_file(log.recovery.kept_aside[0]) == original[start:length]
        append(log, b"next")
        world.close(log)
        assert read_all(world.open()) == [*expected[:2], (2, b"next")]


def test_a_flipped_bit_at_every_byte_of_the_last_batch() -> None:
    world = World(config=LogConfig())
    log = filled(world, 3)
    expected = read_all(log)
    start = log.segments[0].locate(2).position  # type: ignore[union-attr]
    log.abandon()
    name = "00000000000000000000.log"
    data = world.disk.read_file(world.path(name))
    for position in range(start, len(data)):
        # The epoch alone (12 to 15) is outside of the checksum and bears any value.
        if 12 <= position - start < 16:
            continue
        other = World(config=LogConfig())
        filled(other, 3).abandon()
        overwrite(other, name, position, bytes([data[position] ^ 0x40]))
        log = other.open(clean=False)
        # A base offset that is too high is a hole, as compaction leaves them.
        assert read_all(log)[:2] == expected[:2]
        if position - start >= 8:
            assert log.end_offset == 2


def test_zeros_behind_the_end_are_not_worth_keeping() -> None:
    world = World(config=LogConfig())
    log = filled(world, 3)
    log.abandon()
    overwrite(world, "00000000000000000000.log", log.size, bytes(100_000))
    log = world.open(clean=False)
    assert log.recovery is not None
    assert (log.end_offset, log.recovery.truncated_bytes, log.recovery.kept_aside) == (3, 100_000, [])
    assert torn_files(world) == []


def test_a_bad_batch_takes_all_behind_it_along() -> None:
    world = World()
    log = filled(world, 60)
    assert len(log.segments) > 3
    third = log.segments[2].base_offset
    position = log.segments[1].locate(third - 2).position  # type: ignore[union-attr]
    name = log.segments[1].path().rsplit("/", 1)[1]
    behind = [segment.base_offset for segment in log.segments[2:]]
    lost = log.size - log.segments[0].size - position
    log.abandon()
    world.recovery_point = third - 2
    overwrite(world, name, position + 70, b"\xff\xff")
    log = world.open(clean=False)
    assert log.end_offset == third - 2
    assert log.recovery is not None
    assert log.recovery.truncated_bytes == lost
    kept = [f"{name}.{position}.torn", *[f"{base:020d}.log.0.torn" for base in behind]]
    assert torn_files(world) == sorted(kept)
    assert [segment.base_offset for segment in log.segments][-1] < third
    append(log, b"next")
    log.abandon()
    assert read_all(world.open(clean=False))[-1] == (third - 2, b"next")


def test_damage_below_the_recovery_point_is_never_cut() -> None:
    world = World(config=LogConfig())
    log = filled(world, 8)
    log.abandon()
    world.recovery_point = 6
    position = log.segments[0].locate(5).position  # type: ignore[union-attr]
    log.abandon()
    name = "00000000000000000000.log"
    before = world.disk.read_file(world.path(name))
    overwrite(world, name, position + 70, b"\xff\xff")
    damaged = world.disk.read_file(world.path(name))
    assert damaged != before
    with pytest.raises(CorruptLog) as error:
        world.open(clean=False)
    assert f"{name} is damaged at byte {position}" in str(error.value)
    assert "Restore the file" in str(error.value)
    assert world.disk.read_file(world.path(name)) == damaged
    assert torn_files(world) == []


def test_a_batch_that_straddles_the_recovery_point_is_not_cut_either() -> None:
    world = World(config=LogConfig())
    log = world.open()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    log.abandon()
    world.recovery_point = 2
    cut(world, "00000000000000000000.log", log.size - 5)
    with pytest.raises(CorruptLog):
        world.open(clean=False)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_ends_below_its_recovery_point_is_not_opened(clean: bool) -> None:
    world = World(config=LogConfig())
    log = filled(world, 3)
    path, before = log.active.path(), world.disk.read_file(log.active.path())
    log.close()
    world.recovery_point = 4
    with pytest.raises(LostRecords, match="ends at offset 3, and its records up to 4 were safely on disk"):
        world.open(clean=clean)
    assert world.disk.read_file(path) == before
    # As the message says to go on with what is left.
    world.recovery_point = 3
    assert world.open(clean=clean).end_offset == 3


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_its_only_segment_is_not_begun_anew(clean: bool) -> None:
    world = World(config=LogConfig())
    log = filled(world, 3)
    world.close(log)
    world.disk.remove(log.active.path())
    with pytest.raises(LostRecords, match="ends at offset 0"):
        world.open(clean=clean)
    assert not world.disk.exists(log.active.path())
    # Nothing is lost where all of it had been deleted.
    world.start_offset = 3
    assert world.open(clean=clean).end_offset == 3


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_without_its_last_segment_is_not_opened(clean: bool) -> None:
    world = World()
    log = filled(world, 40)
    world.close(log)
    last = log.active
    assert last.base_offset > 0
    assert last.size
    world.disk.remove(last.path())
    with pytest.raises(LostRecords, match=f"ends at offset {last.base_offset}, and its records up to 40 "):
        world.open(clean=clean)


def without_its_middle(policy: str = "delete") -> World:
    """A log of five segments of four records each, of which the third is gone."""
    config = SMALL._replace(cleanup_policy=frozenset({policy}), segment_bytes=500)
    world = World(config=config)
    log = world.open()
    for number in range(20):
        put(log, batch(b"v" * 50, key=b"%d" % number))
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8, 12, 16]
    world.close(log)
    world.disk.remove(log.segments[2].path())
    return world


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_that_is_gone_from_the_middle_is_missed_by_who_reads_there(clean: bool) -> None:
    log = without_its_middle().open(clean=clean)
    assert all(log.read(offset, 1000, 20).size for offset in (*range(8), *range(12, 20)))
    for offset in range(8, 12):
        for _ in range(2):
            with pytest.raises(CorruptLog, match=f"there is nothing from offset {offset} to 12"):
                log.read(offset, 1000, 20)
            # Where a worker would look it is not taken for found either.
            assert log.places.far_segment(offset) is None
    # Nobody misses what compaction may have taken, whatever the policy is by then, or what was deleted.
    assert len(read_all(without_its_middle("compact").open(clean=clean))) == 16
    cleaned = without_its_middle()
    cleaned.cleaned_to = 0
    assert len(read_all(cleaned.open(clean=clean))) == 16
    deleted = without_its_middle()
    deleted.start_offset = 12
    assert len(read_all(deleted.open(clean=clean))) == 8


def test_only_what_is_above_the_recovery_point_is_read() -> None:
    world = World(config=LogConfig(index_interval_bytes=200, segment_bytes=1 << 20))
    log = filled(world, 200)
    world.close(log)
    indexes = {kind: world.disk.read_file(log.active.path(kind)) for kind in (".index", ".timeindex")}
    world.recovery_point = 190
    log = world.open(clean=False)
    assert log.recovery is not None
    assert 0 < log.recovery.checked_bytes < 3000
    assert 180 < log.recovery.from_offset <= 190
    assert read_all(log) == read_all(world.open())
    world.close(log)
    assert {kind: world.disk.read_file(log.active.path(kind)) for kind in indexes} == indexes


def test_epochs_that_were_cut_do_not_come_back() -> None:
    world = World(config=LogConfig())
    log = world.open()
    for epoch in range(4):
        append(log, b"v", epoch=epoch)
    world.flush(log)
    cut_to(log, 2)
    world.recovery_point = log.recovery_point
    assert log.epochs.latest == 1
    # The file beside the log still has all four.
    log.abandon()
    log = world.open(clean=False)
    assert log.epochs.entries() == [(0, 0), (1, 1)]


def test_segments_of_overlapping_offsets() -> None:
    world = World()
    filled(world, 6).abandon()
    data = world.disk.read_file(world.path("00000000000000000000.log"))
    file = world.disk.open(world.path("00000000000000000003.log"), create=True)
    file.append([data])
    file.close()
    log = world.open(clean=False)
    assert [segment.base_offset for segment in log.segments] == [0]
    assert log.end_offset == 6
    assert torn_files(world) == ["00000000000000000003.log.0.torn"]


def test_a_hole_between_segments_is_torn_unless_the_topic_is_compacted() -> None:
    for policy, segments_kept in (("delete", 2), ("compact", 4)):
        config = SMALL._replace(cleanup_policy=frozenset({policy}), segment_bytes=500)
        world = World(config=config)
        log = world.open()
        for number in range(20):
            put(log, batch(b"v" * 50, key=b"%d" % number))
        assert len(log.segments) == 5
        log.segments[2].remove()
        log.abandon()
        assert len(world.open(clean=False).segments) == segments_kept


DAMAGES: list[Callable[[Disk, str], None]] = [
    lambda disk, path: disk.remove(path),
    lambda disk, path: _resize(disk, path, 0),
    lambda disk, path: _resize(disk, path, disk.size(path) - 5),
    lambda disk, path: _write(disk, path, 0, b"\xff" * 8),
    lambda disk, path: _write(disk, path, 0, bytes(disk.size(path))),
    lambda disk, path: _write(disk, path, disk.size(path) - 12, b"\x00\x00\x01\x00" * 3),
    lambda disk, path: _write(disk, path, disk.size(path) // 24 * 12, b"\x7f" * 12),
    lambda disk, path: _write(disk, path, disk.size(path) // 24 * 8 + 7, b"\x03"),
]


def _resize(disk: Disk, path: str, length: int) -> None:
    file = disk.open(path)
    file.truncate(length)
    file.close()


def _write(disk: Disk, path: str, position: int, data: bytes) -> None:
    file = disk.open(path)
    file.write(data, position)
    file.close()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", range(len(DAMAGES)))
def test_damaged_indexes_do_no_harm(clean: bool, kind: str, damage: int) -> None:
    """Of a sealed segment and of the last one: every record is found, by offset and by time."""
    config = LogConfig(segment_bytes=5000, index_interval_bytes=200, retention_ms=-1)
    for which in (0, -1):
        world = World(config=config)
        log = filled(world, 80)
        expected = read_all(log)
        world.close(log)
        DAMAGES[damage](world.disk, log.segments[which].path(kind))
        log = world.open(clean=clean)
        for offset, value in expected:
            assert read_all(log, offset)[0] == (offset, value)
            found = first_at_or_after(log, NOW + offset, log.end_offset)
            assert found is not None
            assert found.offset == offset
        largest = of_largest_timestamp(log)
        assert largest is not None
        assert largest.offset == 79
        append(log, b"next")
        world.close(log)
        world.open().close()
        assert read_all(world.open()) == [*expected, (80, b"next")]


def test_a_damaged_epoch_file_is_rebuilt() -> None:
    for clean in (True, False):
        world = World()
        log = world.open()
        for number in range(30):
            append(log, b"v" * 40, epoch=number // 7)
        expected = log.epochs.entries()
        assert len(expected) == 5
        world.close(log)
        overwrite(world, "leader-epoch-checkpoint", 0, b"x")
        log = world.open(clean=clean)
        assert log.epochs.entries() == expected
        assert "leader-epoch-checkpoint is rebuilt" in world.warnings[0]
        append(log, b"v", epoch=9)
        world.close(log)
        assert world.open().epochs.entries() == [*expected, (9, 30)]
        assert world.warnings == []


def test_kafkas_preallocated_indexes_after_a_hard_stop() -> None:
    world = World(config=LogConfig(index_interval_bytes=200))
    log = filled(world, 40)
    world.close(log)
    for kind in (".index", ".timeindex"):
        path = log.segments[0].path(kind)
        _write(world.disk, path, world.disk.size(path), bytes(1_200_000 - world.disk.size(path)))
    for clean in (True, False):
        log = world.open(clean=clean)
        assert log.end_offset == 40
        assert read_all(log, 33)[0][0] == 33
        assert world.warnings == []
        log.abandon()


def test_a_batch_larger_than_a_read() -> None:
    world = World(config=LogConfig(max_message_bytes=1 << 24))
    log = world.open()
    append(log, b"a")
    put(log, batch(b"x" * 3_000_000))
    append(log, b"z")
    log.abandon()
    log = world.open(clean=False)
    assert log.end_offset == 3
    log.abandon()
    cut(world, "00000000000000000000.log", log.size - 1_000)
    log = world.open(clean=False)
    assert log.end_offset == 1


def test_a_start_beyond_the_end_begins_anew() -> None:
    world = World()
    filled(world, 5).abandon()
    world.start_offset = 100
    for clean in (True, False):
        log = world.open(clean=clean)
        assert (log.start_offset, log.end_offset, read_all(log)) == (100, 100, [])
        log.abandon()


@pytest.mark.parametrize("operation", ["create", "write"])
@pytest.mark.parametrize("rolled", [False, True])
def test_aborted_transactions_that_a_start_finds_no_room_for_are_known_and_written_later(
    operation: str, rolled: bool
) -> None:
    disk = memory_disk()
    world = World(disk)
    log = world.open()
    expected = []
    for number in range(3):
        first = put(log, batch(b"t", producer=(7, 0, number), transactional=True)).first_offset
        put(log, marker(7, 0, aborts=True), origin=Origin.COORDINATOR)
        expected.append((7, first))
        if rolled:
            log.roll(NOW)
    disk.fail(operation, "*.txnindex", errno.ENOSPC)
    log = world.open(clean=False)
    assert log.aborted_transactions(0, log.end_offset) == expected
    flush = log.prepare_flush()
    assert flush is not None
    with pytest.raises(StorageFault):
        flush.run()
    log.durability.refused(flush)
    assert log.recovery_point == 0, "a start relies on them"
    disk.stop_failing()
    world.flush(log)
    assert log.recovery_point == log.end_offset
    world.crash(Random(1))
    log = world.open(clean=False)
    assert log.aborted_transactions(0, log.end_offset) == expected
    world.close(log)
    assert world.open().aborted_transactions(0, log.end_offset) == expected
