"""What every disk does: the real one, its portable twin, and the one in memory."""

from __future__ import annotations

import os
from random import Random

import pytest
from tests.ports.world import World


def test_append_goes_behind_the_end_and_read_finds_it(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    assert file.append([b"one"]) == 3
    assert file.append([b"two", bytearray(b"three"), memoryview(b"four")]) == 12
    assert file.size() == 15
    assert file.read(100, 0) == b"onetwothreefour"
    assert file.read(3, 3) == b"two"
    assert file.read(10, 15) == b""
    file.close()


def test_append_of_nothing_writes_nothing(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    assert file.append([]) == 0
    assert file.append([b""]) == 0
    assert file.append([b"", b"x", b""]) == 1
    assert file.read(9, 0) == b"x"
    file.close()


def test_append_of_more_buffers_than_one_call_takes(world: World) -> None:
    pieces = [b"%06d" % number for number in range(5000)]
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.append([b"head"])
    assert file.append(pieces) == 30_000
    assert file.read(40_000, 0) == b"head" + b"".join(pieces)
    assert file.append([b"tail"]) == 4
    assert file.size() == 30_008
    file.close()


def test_reopened_file_goes_on_at_its_end(world: World) -> None:
    disk, path = world.ports.disk, world.folder + "/log"
    file = disk.open(path, create=True)
    file.append([b"abc"])
    file.close()
    file = disk.open(path)
    assert file.size() == 3
    file.append([b"def"])
    file.close()
    assert disk.read_file(path) == b"abcdef"
    assert disk.size(path) == 6


def test_read_into_fills_what_there_is(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.append([b"0123456789"])
    target = bytearray(b"......")
    assert file.read_into(memoryview(target), 2) == 6
    assert target == b"234567"
    assert file.read_into(memoryview(target), 7) == 3
    assert target == b"789567"
    assert file.read_into(memoryview(target), 10) == 0
    assert file.read_into(memoryview(bytearray()), 0) == 0
    file.close()


def test_what_was_just_written_is_not_cold(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/warm", create=True)
    file.append([b"x" * 10_000])
    assert not file.is_cold(10_000, 0)
    assert not file.is_cold(1, 9_999)
    file.close()


def test_write_overwrites_and_extends_with_zeros(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/index", create=True)
    file.write(b"abcdef", 0)
    file.write(b"XY", 2)
    assert file.read(9, 0) == b"abXYef"
    file.write(b"end", 10)
    assert file.size() == 13
    assert file.read(20, 0) == b"abXYef\0\0\0\0end"
    file.append([b"!"])
    assert file.read(20, 10) == b"end!"
    file.close()


def test_truncate_cuts_and_next_append_goes_there(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.append([b"0123456789"])
    file.truncate(4)
    assert file.size() == 4
    file.append([b"ab"])
    assert file.read(20, 0) == b"0123ab"
    file.truncate(8)
    assert file.read(20, 0) == b"0123ab\0\0"
    file.close()


def test_allocate_grows_with_zeros_and_never_shrinks(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/index", create=True)
    file.append([b"ab"])
    file.allocate(200_000)
    assert file.size() == 200_000
    assert file.read(4, 0) == b"ab\0\0"
    assert file.read(9, 199_998) == b"\0\0"
    file.allocate(10)
    assert file.size() == 200_000
    assert world.ports.disk.size(world.folder + "/index") == 200_000
    file.close()


def test_missing_file_is_not_found(world: World) -> None:
    disk, missing = world.ports.disk, world.folder + "/missing"
    for call in (disk.open, disk.open_read_only, disk.read_file, disk.size, disk.modified_ms, disk.remove, disk.names):
        with pytest.raises(FileNotFoundError):
            call(missing)
    for call in (disk.remove_tree, disk.sync_directory):
        with pytest.raises(FileNotFoundError):
            call(missing)
    with pytest.raises(FileNotFoundError):
        disk.rename(missing, world.folder + "/other")
    with pytest.raises(FileNotFoundError):
        disk.open(missing + "/deeper", create=True)
    assert not disk.exists(missing)
    assert not disk.is_directory(missing)


def test_folder_is_not_a_file(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/topic-0")
    assert disk.is_directory(world.folder + "/topic-0")
    for call in (disk.open, disk.open_read_only, disk.read_file):
        with pytest.raises(IsADirectoryError):
            call(world.folder + "/topic-0")
    disk.open(world.folder + "/file", create=True).close()
    with pytest.raises(NotADirectoryError):
        disk.names(world.folder + "/file")
    with pytest.raises(NotADirectoryError):
        disk.open(world.folder + "/file/inner", create=True)
    with pytest.raises(FileExistsError):
        disk.make_directory(world.folder + "/file")
    assert not disk.is_directory(world.folder + "/file")


def test_make_directory_makes_parents_and_may_be_repeated(world: World) -> None:
    disk = world.ports.disk
    assert disk.make_directory(world.folder + "/a/b/c")
    assert not disk.make_directory(world.folder + "/a/b/c")
    assert not disk.make_directory(world.folder + "/a/b")
    assert disk.make_directory(world.folder + "/a/b/d")
    assert disk.names(world.folder + "/a") == ["b"]
    assert disk.is_directory(world.folder + "/a/b/c")


def test_names_are_sorted(world: World) -> None:
    for name in ("b", "a", "c", "B"):
        world.ports.disk.open(f"{world.folder}/{name}", create=True).close()
    assert world.ports.disk.names(world.folder) == ["B", "a", "b", "c"]


def test_rename_replaces_and_open_file_follows(world: World) -> None:
    disk, old, new = world.ports.disk, world.folder + "/old", world.folder + "/new"
    replaced = disk.open(new, create=True)
    replaced.append([b"replaced"])
    file = disk.open(old, create=True)
    file.append([b"first"])
    disk.rename(old, new)
    file.append([b" second"])
    assert not disk.exists(old)
    assert disk.read_file(new) == b"first second"
    assert replaced.read(20, 0) == b"replaced"
    replaced.close()
    file.close()


def test_rename_of_a_folder_takes_its_files(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/t-0")
    file = disk.open(world.folder + "/t-0/log", create=True)
    disk.rename(world.folder + "/t-0", world.folder + "/t-0-delete")
    file.append([b"x"])
    assert disk.read_file(world.folder + "/t-0-delete/log") == b"x"
    file.close()
    disk.make_directory(world.folder + "/t-0")
    disk.open(world.folder + "/t-0/log", create=True).close()
    with pytest.raises(OSError, match="not empty"):
        disk.rename(world.folder + "/t-0-delete", world.folder + "/t-0")


def test_removed_file_is_read_by_who_has_it_open(world: World) -> None:
    disk, path = world.ports.disk, world.folder + "/log"
    file = disk.open(path, create=True)
    file.append([b"still here"])
    disk.remove(path)
    assert not disk.exists(path)
    assert file.read(5, 0) == b"still"
    file.close()


def test_remove_tree_takes_everything_below(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/t/inner")
    disk.open(world.folder + "/t/inner/a", create=True).close()
    disk.open(world.folder + "/t/b", create=True).close()
    disk.remove_tree(world.folder + "/t")
    assert disk.names(world.folder) == []


def test_remove_files_leaves_the_folder_and_those_in_it(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/t/inner")
    for name in ("t/a", "t/b", "t/inner/a"):
        disk.open(f"{world.folder}/{name}", create=True).close()
    disk.remove_files(world.folder + "/t")
    assert disk.names(world.folder + "/t") == ["inner"]
    assert disk.names(world.folder + "/t/inner") == ["a"]
    with pytest.raises(FileNotFoundError):
        disk.remove_files(world.folder + "/gone")


def test_lease_outlives_close(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.append([b"abc"])
    before = world.ports.disk.lingering
    file.lease()
    file.lease()
    assert world.ports.disk.lingering == before
    file.close()
    file.close()
    assert world.ports.disk.lingering == before + 1
    file.release()
    assert file.read(3, 0) == b"abc"
    assert world.ports.disk.lingering == before + 1
    file.release()
    assert world.ports.disk.lingering == before
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.read(3, 0)


def test_closed_file_refuses_everything(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    file.close()
    for call in (lambda: file.append([b"x"]), lambda: file.truncate(0), file.sync, file.size, lambda: file.read(1, 0)):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call()


def test_read_only_file_refuses_writing_and_sees_growth(world: World) -> None:
    disk, path = world.ports.disk, world.folder + "/log"
    writer = disk.open(path, create=True)
    writer.append([b"abc"])
    reader = disk.open_read_only(path)
    for call in (lambda: reader.append([b"x"]), lambda: reader.write(b"x", 0), lambda: reader.truncate(0)):
        with pytest.raises(OSError, match=r"reading only|Bad file"):
            call()
    with pytest.raises(OSError, match=r"reading only|Bad file"):
        reader.allocate(10)
    writer.append([b"def"])
    assert reader.size() == 6
    assert reader.read(9, 0) == b"abcdef"
    reader.close()
    writer.close()


def test_lock_is_taken_once(world: World) -> None:
    disk, path = world.ports.disk, world.folder + "/.lock"
    lock = disk.lock(path)
    with pytest.raises(BlockingIOError):
        disk.lock(path)
    other = disk.lock(world.folder + "/.other")
    lock.release()
    lock.release()
    disk.lock(path).release()
    other.release()


def test_sync_and_sync_directory_succeed(world: World) -> None:
    disk = world.ports.disk
    file = disk.open(world.folder + "/log", create=True)
    file.append([b"x"])
    file.sync()
    disk.sync_directory(world.folder)
    file.close()


def test_space_and_times_are_told(world: World) -> None:
    disk, clock = world.ports.disk, world.ports.clock
    assert 0 < disk.free_bytes(world.folder) <= disk.total_bytes(world.folder)
    disk.open(world.folder + "/log", create=True).close()
    assert abs(disk.modified_ms(world.folder + "/log") - clock.wall_ms()) < 60_000


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_agree_with_a_bytearray(world: World, seed: int) -> None:
    random = Random(seed)
    file = world.ports.disk.open(world.folder + "/log", create=True)
    model = bytearray()
    for _ in range(300):
        match random.randrange(6):
            case 0 | 1:
                buffers = [random.randbytes(random.choice((0, 1, 100, 5000))) for _ in range(random.randrange(4))]
                assert file.append(buffers) == sum(map(len, buffers))
                model += b"".join(buffers)
            case 2:
                data, position = random.randbytes(random.randrange(9000)), random.randrange(len(model) + 1)
                file.write(data, position)
                model[position : position + len(data)] = data
            case 3:
                size, position = random.randrange(20_000), random.randrange(len(model) + 100)
                assert file.read(size, position) == model[position : position + size]
            case 4:
                size = random.randrange(len(model) + 1)
                if random.random() < 0.3:
                    file.truncate(size)
                    del model[size:]
            case 5:
                file.sync()
        assert file.size() == len(model)
    assert world.ports.disk.read_file(world.folder + "/log") == model
    file.close()


def test_descriptor_for_sendfile(world: World) -> None:
    file = world.ports.disk.open(world.folder + "/log", create=True)
    if world.kind == "memory":
        assert file.fileno() == -1
    else:
        assert os.fstat(file.fileno()).st_size == 0
    file.close()
    assert file.path == world.folder + "/log"


def test_entries_tell_files_from_folders(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/b")
    for name in ("c", "a"):
        disk.open(f"{world.folder}/{name}", create=True).close()
    assert disk.entries(world.folder) == [("a", True), ("b", False), ("c", True)]
    with pytest.raises(FileNotFoundError):
        disk.entries(world.folder + "/missing")


def test_spread_folders_are_folders_like_others(world: World) -> None:
    disk = world.ports.disk
    disk.make_directory(world.folder + "/logs")
    disk.spread_folders(world.folder + "/logs")
    disk.spread_folders(world.folder + "/logs")
    assert disk.make_directory(world.folder + "/logs/orders-0")
    assert disk.names(world.folder + "/logs") == ["orders-0"]
    # It is no more than a hint.
    disk.spread_folders(world.folder + "/none")
