"""What a crash leaves in a partition's folder besides the log."""

from __future__ import annotations

from tests.storage.log_world import World, append, read_all

from ottla.config.log import LogConfig

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=100, retention_ms=-1)


def filled(count: int = 20) -> World:
    world = World(config=CONFIG)
    log = world.open()
    for number in range(count):
        append(log, b"%d" % number * 40)
    world.close(log)
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
    world = filled()
    before = read_all(world.open())
    first, second, third = bases(world)[:3]
    # The two first segments have become one, which kept only the second's records.
    copy(world, name(second), name(first) + ".swap")
    for clean in (True, False):
        log = world.open(clean=clean)
        assert [segment.base_offset for segment in log.segments][:2] == [first, third]
        assert read_all(log) == [pair for pair in before if pair[0] >= second]
        log.abandon()


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
