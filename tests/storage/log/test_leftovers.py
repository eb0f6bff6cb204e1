"""What a crash leaves in a partition's folder besides the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.storage.log_world import World, append, batch, read_all

from ottla.config.log import LogConfig
from ottla.storage.errors import CorruptLog

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=-1)


COMPACTED = LogConfig(segment_bytes=500, index_interval_bytes=100, cleanup_policy=frozenset({"compact"}))


def filled(count: int = 20, config: LogConfig = CONFIG) -> World:
    world = World(config=CONFIG)
    world.config = CONFIG
    log = world.open()
    for number in range(count):
        append(log, b"%d" % number * 40)
    world.close(log)
    world.config = config
    return world


def rename(world: World, source: str, target: str) -> None:
    world.disk.rename(world.path(source), world.path(target))


def copy(world: World, source: str, target: str) -> None:
    file = world.disk.open(world.path(target), create=True)
    file.append([world.disk.read_file(world.path(source))])
    file.close()


def bases(world: World) -> list[int]:
    return [int(name[:20]) for name in world.disk.names(world.folder) if name.endswith(".log")]


def name(base: int, kind: str = ".log") -> str:
    return f"{base:020d}{kind}"


def test_deleted_files_are_removed() -> None:
    world = filled()
    first = bases(world)[0]
    for kind in (".log", ".index", ".timeindex"):
        rename(world, name(first, kind), name(first, kind) + ".deleted")
    log = world.open(clean=False)
    assert not [each for each in world.disk.names(world.folder) if each.endswith(".deleted")]
    assert log.start_offset == bases(world)[0] > first


def test_segments_before_a_deleted_one_are_gone_as_well() -> None:
    world = filled()
    second = bases(world)[1]
    rename(world, name(second), name(second) + ".deleted")
    log = world.open(clean=False)
    assert log.segments[0].base_offset > second
    assert read_all(log)[0][0] == log.start_offset


def test_an_unfinished_cleaning_is_undone() -> None:
    world = filled()
    before = read_all(world.open())
    first, second = bases(world)[:2]
    copy(world, name(second), name(first) + ".cleaned")
    copy(world, name(second), name(second) + ".swap")
    assert read_all(world.open(clean=False)) == before
    left = world.disk.names(world.folder)
    assert not [each for each in left if each.endswith((".cleaned", ".swap"))]


def test_a_finished_cleaning_is_completed() -> None:
    world = filled(config=COMPACTED)
    before = read_all(world.open())
    first, second, third = bases(world)[:3]
    # The two first segments have become one, which kept only the second's records.
    copy(world, name(second), name(first) + ".swap")
    rename(world, name(first), name(first, ".log.deleted"))
    for clean in (True, False):
        log = world.open(clean=clean)
        assert [segment.base_offset for segment in log.segments][:2] == [first, third]
        assert read_all(log) == [pair for pair in before if pair[0] >= second]
        log.abandon()


def contents(world: World, *endings: str) -> dict[str, bytes]:
    return {
        each: world.disk.read_file(world.path(each))
        for each in world.disk.names(world.folder)
        if each.endswith(endings)
    }


def batch_file(world: World, target: str, *batches: memoryview) -> None:
    file = world.disk.open(world.path(target), create=True)
    file.append(batches)
    file.close()


FOREIGN_SWAPS: dict[str, Callable[[World], None]] = {
    "empty": lambda world: batch_file(world, name(0, ".log.swap")),
    "of another log": lambda world: batch_file(
        world, name(0, ".log.swap"), batch(b"other", base_offset=0, leader_epoch=7), batch(b"o", base_offset=19)
    ),
    "of another log in the middle": lambda world: batch_file(
        world, name(bases(world)[2] + 1, ".log.swap"), batch(b"other", base_offset=bases(world)[2] + 1, leader_epoch=7)
    ),
    "damaged": lambda world: batch_file(world, name(0, ".log.swap"), memoryview(b"garbage" * 30)),
    "a later segment": lambda world: copy(world, name(bases(world)[3]), name(0, ".log.swap")),
    "with indexes": lambda world: (
        copy(world, name(bases(world)[1], ".index"), name(0, ".index.swap")),
        batch_file(world, name(0, ".log.swap"), batch(b"other", base_offset=0, leader_epoch=7)),
        batch_file(world, name(0, ".txnindex.swap"), memoryview(b"x" * 34)),
    )[0],
}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("config", [CONFIG, COMPACTED], ids=["deleted", "compacted"])
@pytest.mark.parametrize("kind", FOREIGN_SWAPS)
def test_a_foreign_swap_replaces_nothing(kind: str, config: LogConfig, clean: bool) -> None:
    world = filled(config=config)
    before, log_files = read_all(world.open()), contents(world, ".log")
    FOREIGN_SWAPS[kind](world)
    log = world.open(clean=clean)
    assert read_all(log) == before
    assert contents(world, ".log") == log_files
    assert not [each for each in world.disk.names(world.folder) if each.endswith(".swap")]
    if kind not in {"a later segment", "empty"}:  # those may be the cleaner's
        assert any("was not made from this log" in warning for warning in world.warnings)
        assert [each for each in world.disk.names(world.folder) if each.endswith(".swap.foreign")]
    log.abandon()
    world.open(clean=clean)
    assert world.warnings == []


def test_a_finished_cleaning_that_has_replaced_nothing_yet_is_undone() -> None:
    world = filled(config=COMPACTED)
    before = read_all(world.open())
    first, second = bases(world)[:2]
    copy(world, name(second), name(first) + ".swap")
    assert read_all(world.open(clean=False)) == before
    assert not [each for each in world.disk.names(world.folder) if each.endswith(".swap")]


def test_a_finished_cleaning_of_which_nothing_else_is_left_is_completed() -> None:
    world = filled(config=COMPACTED)
    before = read_all(world.open())
    first, second = bases(world)[:2]
    rename(world, name(first), name(first, ".log.swap"))
    rename(world, name(second), name(second, ".log.swap"))
    assert read_all(world.open(clean=False)) == before


def test_a_damaged_swap_whose_origins_are_gone_takes_its_partition_offline() -> None:
    world = filled(config=COMPACTED)
    first, second = bases(world)[:2]
    rename(world, name(first), name(first, ".log.deleted"))
    rename(world, name(second), name(second, ".log.deleted"))
    batch_file(world, name(first, ".log.swap"), memoryview(b"garbage" * 30))
    before = contents(world, ".log", ".deleted", ".swap")
    for clean in (True, False):
        with pytest.raises(CorruptLog, match=r"log\.swap is damaged"):
            world.open(clean=clean)
        assert contents(world, ".log", ".deleted", ".swap") == before


def test_a_foreign_cleaned_file_does_not_undo_a_finished_cleaning() -> None:
    world = filled(config=COMPACTED)
    before = read_all(world.open())
    first, second, third = bases(world)[:3]
    copy(world, name(second), name(first, ".log.swap"))
    rename(world, name(first), name(first, ".log.deleted"))
    rename(world, name(second), name(second, ".log.deleted"))
    batch_file(world, name(0, ".log.cleaned"))
    log = world.open(clean=False)
    assert [segment.base_offset for segment in log.segments][:2] == [first, third]
    assert read_all(log) == [pair for pair in before if pair[0] >= second]


def test_an_index_swap_takes_nobody_elses_place() -> None:
    world = filled()
    first, second = bases(world)[:2]
    before = contents(world, ".index")
    copy(world, name(second, ".index"), name(first, ".index.swap"))
    copy(world, name(second, ".index"), name(second + 1, ".index.swap"))
    world.open()
    assert contents(world, ".index") == before
    assert world.warnings == []
    rename(world, name(first, ".index"), name(first, ".index.swap"))
    world.open()
    assert contents(world, ".index", ".swap") == before


def test_a_foreign_deleted_file_takes_no_segment_with_it() -> None:
    world = filled()
    before = read_all(world.open())
    second, third = bases(world)[1:3]
    for foreign in (second + 1, third, 2**62):
        batch_file(world, name(foreign, ".log.deleted"))
        log = world.open(clean=False)
        assert read_all(log) == before
        log.abandon()
        assert not [each for each in world.disk.names(world.folder) if each.endswith(".deleted")]


def test_a_snapshot_beyond_the_end_is_removed() -> None:
    world = filled()
    copy(world, "leader-epoch-checkpoint", name(2**63 - 1, ".snapshot"))
    log = world.open()
    assert log.first_unstable_offset is None
    assert name(2**63 - 1, ".snapshot") not in world.disk.names(world.folder)


def test_an_index_without_its_log_is_removed() -> None:
    world = filled()
    copy(world, name(0, ".index"), name(1, ".index"))
    copy(world, name(0, ".index"), name(7777, ".txnindex"))
    world.open()
    assert not {name(1, ".index"), name(7777, ".txnindex")} & set(world.disk.names(world.folder))


def test_other_files_are_left_alone() -> None:
    world = filled()
    before = read_all(world.open())
    others = ["partition.metadata", "notes.txt", "123.log", name(0) + ".0.torn", name(0) + ".bak"]
    for other in others:
        copy(world, name(0), other)
    for clean in (True, False):
        log = world.open(clean=clean)
        assert read_all(log) == before
        log.abandon()
    assert set(others) <= set(world.disk.names(world.folder))


def test_a_folder_without_a_log_begins_at_its_start() -> None:
    world = World(config=CONFIG)
    world.start_offset = 42
    log = world.open()
    assert (log.start_offset, log.end_offset) == (42, 42)
    assert append(log, b"v").first_offset == 42
    assert bases(world) == [42]
