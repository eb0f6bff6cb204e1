"""Files in a partition's folder that bear a segment's name and are none of this log's; and offsets at their end."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.storage.at_once import expire, first_at_or_after, of_largest_timestamp
from tests.storage.log_world import NOW, SMALL, World, batch, put, read_all

from ottla.config.log import LogConfig
from ottla.model import ErrorCode
from ottla.ports.real.disk import RealDisk
from ottla.records.batch import OFFSET_MAX
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import AppendResult, Origin
from ottla.storage.log.log import Log

COMPACTED = LogConfig(segment_bytes=2000, index_interval_bytes=200, cleanup_policy=frozenset({"compact"}))
LAST = 2**63 - 1


def add(log: Log, *values: bytes) -> AppendResult:
    return put(log, batch(*values, key=b"k"))


def filled(count: int = 30, config: LogConfig = SMALL) -> World:
    world = World(config=config)
    world.config = SMALL
    log = world.open()
    for number in range(count):
        add(log, b"%d" % number * 100)
    world.close(log)
    world.config = config
    return world


def name(base: int, kind: str = ".log") -> str:
    return f"{base:020d}{kind}"


def put_file(world: World, target: str, data: bytes = b"") -> None:
    file = world.disk.open(world.path(target), create=True)
    file.truncate(0)
    file.append([data])
    file.close()


def bases(world: World) -> list[int]:
    return [int(each[:20]) for each in world.disk.names(world.folder) if each.endswith(".log")]


def goes_on(world: World, before: list[tuple[int, bytes]], *, clean: bool, warned: bool = True) -> None:
    """The log is as it was, takes records where it ended, and says what it has met; the next start says nothing."""
    log = world.open(clean=clean)
    assert read_all(log) == before
    assert (log.end_offset, bool(world.warnings)) == (before[-1][0] + 1, warned)
    assert add(log, b"next").first_offset == before[-1][0] + 1
    world.close(log)
    again = world.open(clean=clean)
    assert read_all(again) == [*before, (before[-1][0] + 1, b"next")]
    assert world.warnings == []
    again.abandon()


@pytest.mark.parametrize("known", [True, False], ids=["with checkpoint", "without"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("config", [SMALL, COMPACTED], ids=["deleted", "compacted"])
def test_an_empty_segment_in_which_no_record_could_be(config: LogConfig, clean: bool, known: bool) -> None:
    world = filled(config=config)
    before = read_all(world.open())
    if not known:
        world.recovery_point = 0
    put_file(world, name(LAST))
    goes_on(world, before, clean=clean)
    assert name(LAST, ".log.foreign") in world.disk.names(world.folder)


@pytest.mark.parametrize("base", [31, 1000, 2**31, 2**63 - 2])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_an_empty_segment_behind_the_end(clean: bool, base: int) -> None:
    world = filled()
    before = read_all(world.open())
    put_file(world, name(base))
    goes_on(world, before, clean=clean, warned=clean)


def test_segments_behind_the_end_after_a_clean_stop() -> None:
    for config in (SMALL, COMPACTED):
        for data in (b"", bytes(batch(b"other", base_offset=500, leader_epoch=0)), b"garbage" * 50):
            world = filled(config=config)
            before = read_all(world.open())
            put_file(world, name(500), data)
            put_file(world, name(500, ".index"), b"12345678")
            put_file(world, name(777), data)
            goes_on(world, before, clean=True)
            assert world.disk.read_file(world.path(name(500, ".log.foreign"))) == data
            assert name(500, ".index.foreign") in world.disk.names(world.folder)


@pytest.mark.parametrize("config", [SMALL, COMPACTED], ids=["deleted", "compacted"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_an_empty_segment_in_the_middle(clean: bool, config: LogConfig) -> None:
    for number in (0, -1):
        world = filled(config=config)
        before = read_all(world.open())
        put_file(world, name(bases(world)[number] + 1))
        goes_on(world, before, clean=clean)


def test_a_segment_that_does_not_follow_where_no_checkpoint_tells() -> None:
    world = filled()
    before = read_all(world.open())
    world.recovery_point = 0
    put_file(world, name(500), bytes(batch(b"other", base_offset=500, leader_epoch=0)))
    goes_on(world, before, clean=True)


def test_the_empty_segment_of_an_idle_log_stays() -> None:
    world = filled()
    log = world.open()
    log.roll(NOW)
    world.close(log)
    for point in (world.recovery_point, 0):
        world.recovery_point = point
        for clean in (True, False):
            log = world.open(clean=clean)
            assert (log.active.base_offset, log.active.size, world.warnings) == (30, 0, [])
            log.abandon()


def test_a_name_that_is_taken_gets_a_number() -> None:
    world = filled()
    for _ in range(3):
        put_file(world, name(LAST))
        world.open().abandon()
    kept = [each for each in world.disk.names(world.folder) if each.endswith(".foreign")]
    assert kept == [name(LAST, end) for end in (".log.2.foreign", ".log.3.foreign", ".log.foreign")]


def test_names_that_are_no_segments_are_left_alone() -> None:
    world = filled()
    before = read_all(world.open())
    others = [
        *("-0000000000000000001.log", "0000000000000000031.log", "000000000000000000031.log", "abc.log", ".log"),
        *(
            "99999999999999999999.log",
            "09223372036854775808.log",
            "0000000000000000003x.log",
            "00000000000000000031.LOG",
        ),
        *("\u0660" * 20 + ".log", "00000000000000000031.log.swap.cleaned", "00000000000000000031.log.foreign"),
    ]
    for other in others:
        put_file(world, other, b"anything")
    for clean in (True, False):
        goes_on(world, before, clean=clean, warned=False)
        before = read_all(world.open())
    assert set(others) <= set(world.disk.names(world.folder))


# What is no file


def _socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        # Its address may have a hundred bytes.
        folder, _, file_name = path.rpartition("/")
        here = os.getcwd()
        os.chdir(folder)
        listener.bind(file_name)
        os.chdir(here)


def _full_folder(path: str) -> None:
    os.mkdir(path)
    Path(path, "something").write_bytes(b"in it")


NO_FILES: dict[str, Callable[[str], None]] = {
    "folder": os.mkdir,
    "full folder": _full_folder,
    "pipe": os.mkfifo,
    "socket": _socket,
    "link to a device": lambda path: os.symlink("/dev/zero", path),
    "dangling link": lambda path: os.symlink(path + ".nowhere", path),
    "link to itself": lambda path: os.symlink(path, path),
}


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_bears_a_segments_name_and_is_no_file(kind: str, clean: bool, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    world = World(RealDisk(), folder=str(folder))
    log = world.open()
    for number in range(30):
        add(log, b"%d" % number * 100)
    before = read_all(log)
    world.close(log)
    for strange in (name(5), name(30), name(1000), name(0, ".log.swap"), name(3, ".index"), name(7, ".snapshot")):
        NO_FILES[kind](world.path(strange))
    log = world.open(clean=clean)
    assert read_all(log) == before
    assert len([warning for warning in world.warnings if "is no file" in warning]) == 6
    # The next segment may have the name that was taken.
    log.roll(NOW)
    assert add(log, b"next").first_offset == 30
    world.close(log)
    assert (folder / name(30, ".log")).is_file()
    assert len([each for each in os.listdir(folder) if each.endswith(".foreign")]) == 6


# Offsets at the end of all offsets


def log_at(end: int, config: LogConfig = SMALL) -> World:
    world = World(config=config)
    world.start_offset = end
    return world


def test_offsets_end_before_64_bits_do() -> None:
    world = log_at(OFFSET_MAX - 1)
    log = world.open()
    assert add(log, b"last but one").first_offset == OFFSET_MAX - 1
    with pytest.raises(AppendRefused) as refused:
        add(log, b"two", b"more")
    assert refused.value.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert add(log, b"last").first_offset == OFFSET_MAX
    assert log.end_offset == LAST
    for origin in (Origin.CLIENT, Origin.COORDINATOR):
        for records in (batch(b"v"), batch(b"v", producer=(5, 0, 0))):
            with pytest.raises(AppendRefused) as refused:
                put(log, records, origin=origin)
            assert refused.value.error is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(AppendRefused):
        log.stage_replica(batch(b"v", base_offset=LAST, leader_epoch=0))
    assert len(log.producers) == 0
    expected = [(OFFSET_MAX - 1, b"last but one"), (OFFSET_MAX, b"last")]
    assert read_all(log) == expected
    log.roll(NOW)
    world.close(log)
    for clean in (True, False):
        log = world.open(clean=clean)
        assert read_all(log) == expected
        with pytest.raises(AppendRefused):
            add(log, b"v")
        world.close(log)


def test_a_segment_whose_offsets_would_pass_the_end() -> None:
    world = filled()
    before = read_all(world.open())
    raw = bytearray(batch(b"a", b"b", base_offset=0, leader_epoch=0))
    raw[:8] = OFFSET_MAX.to_bytes(8, "big")
    put_file(world, name(OFFSET_MAX), bytes(raw))
    goes_on(world, before, clean=True)


def test_a_batch_that_passes_the_end_ends_the_log_before_it() -> None:
    world = log_at(OFFSET_MAX)
    world.open().abandon()
    raw = bytearray(batch(b"a", b"b", leader_epoch=0))
    raw[:8] = OFFSET_MAX.to_bytes(8, "big")
    put_file(world, name(OFFSET_MAX), bytes(raw))
    for clean in (True, False):
        log = world.open(clean=clean)
        assert log.end_offset == OFFSET_MAX
        log.abandon()


def test_numbers_at_their_bounds_pass_through_everything_that_stores_them() -> None:
    """Producer ids, epochs, sequences, timestamps and offsets in snapshots, indexes and checkpoints."""
    config = LogConfig(
        segment_bytes=2000, index_interval_bytes=1, retention_ms=-1, message_timestamp_after_max_ms=2**63 - 1
    )
    world = World(config=config)
    world.start_offset = OFFSET_MAX - 2**32
    log = world.open()
    for number in range(30):
        records = batch(
            b"v" * 50,
            producer=(2**63 - 1 - number, 2**15 - 1, 2**31 - 1),
            timestamp=2**63 - 1,
            transactional=True,
        )
        log.stage(records, leader_epoch=2**31 - 1, now_ms=NOW)
        log.write_staged()
    assert len(log.segments) > 1
    before = read_all(log)
    world.flush(log)
    assert first_at_or_after(log, 2**63 - 1, log.end_offset) == (2**63 - 1, OFFSET_MAX - 2**32, 2**31 - 1)
    assert of_largest_timestamp(log) == (2**63 - 1, OFFSET_MAX - 2**32, 2**31 - 1)
    world.close(log)
    for clean in (True, False):
        log = world.open(clean=clean)
        assert read_all(log) == before
        assert len(log.describe_producers()) == 30
        assert log.epochs.latest == 2**31 - 1
        log.roll_due(NOW)
        expire(log, NOW, log.end_offset)
        world.close(log)
