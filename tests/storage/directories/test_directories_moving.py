"""Moving a replica from one log directory to another."""

from __future__ import annotations

import errno
from functools import partial

import pytest
from tests.storage.at_once import begin_anew_at, cancel_move, cut_to, finish_move, lower, start_move, write_checkpoints
from tests.storage.directory_world import (
    CONFIG,
    NOW,
    TOPIC_ID,
    TP,
    A,
    B,
    World,
    append,
    copy_all,
    expected,
    flush,
    values,
)

from ottla.model import TopicPartition
from ottla.records.record import Record, encode_batch
from ottla.steps import done_at_once
from ottla.storage.directories.errors import (
    DirectoryNotFound,
    DirectoryOffline,
    MoveRefused,
    PartitionOffline,
)
from ottla.storage.directories.events import Severity
from ottla.storage.errors import StorageFault
from ottla.storage.formats import move_marker

MARKER = f"{B}/orders-0.ottla-moved"
OTHER = TopicPartition("payments", 3)


@pytest.fixture
def world():
    return World()


@pytest.fixture
def directories(world):
    """With 100 records of TP in A, over several segments."""
    opened = world.open()
    append(opened.create(TP, TOPIC_ID, CONFIG, now_ms=NOW), 100)
    return opened


def start(directories, path=B):
    return start_move(directories, TP, path, CONFIG, now_ms=NOW)


def finish(directories):
    return finish_move(directories, TP, CONFIG, now_ms=NOW)


def test_a_moved_replica_has_the_same_records(world, directories):
    start(directories)
    copy_all(directories)
    log, removal = finish(directories)
    assert directories.get(TP) is log
    assert directories.directory_of(TP) == B
    assert directories.moves == {}
    assert values(log) == expected(0, 100)
    assert log.topic_id == TOPIC_ID
    assert removal.path.startswith(f"{A}/orders-0.")
    removal.run()
    assert [name for name in world.disk.names(A) if "orders" in name] == []
    append(log, 5)
    directories.close({TP: 105})
    assert values(world.open().get(TP)) == expected(0, 105)
    assert world.events == []


def test_records_that_come_during_the_copy_are_copied_too(directories):
    move = start(directories)
    for _ in range(5):
        assert move.copy_step(300) > 0
        append(directories.get(TP), 3)
    assert move.lag > 0
    with pytest.raises(MoveRefused, match="not level"):
        finish(directories)
    copy_all(directories)
    assert move.copy_step(300) == 0
    assert values(finish(directories)[0]) == expected(0, 115)


def test_a_start_offset_moves_along(world, directories):
    directories.get(TP).advance_start(40, 100)
    start(directories)
    copy_all(directories)
    finish(directories)
    world.kill()
    assert values(world.open().get(TP)) == expected(40, 100)


def test_a_start_offset_in_the_middle_of_a_batch_moves_along(world, directories):
    log = directories.get(TP)
    batch = encode_batch([Record(100 + n, 1, None, b"in") for n in range(5)], base_offset=100, leader_epoch=0)
    log.stage_replica(memoryview(bytearray(batch)))
    log.write_staged()
    log.advance_start(103, 105)
    start(directories)
    copy_all(directories)
    finish(directories)
    world.kill()
    assert values(world.open().get(TP)) == ["in", "in"]


def test_a_start_offset_that_changes_during_the_copy_is_followed(directories):
    move = start(directories)
    move.copy_step(300)
    directories.get(TP).advance_start(70, 100)
    copy_all(directories)
    assert values(finish(directories)[0]) == expected(70, 100)


def test_an_empty_replica_can_be_moved(directories):
    begin_anew_at(directories.get(TP), 500)
    start(directories)
    copy_all(directories)
    log, _ = finish(directories)
    assert (log.start_offset, log.end_offset) == (500, 500)


def test_a_source_that_was_cut_back_makes_the_copy_begin_again(directories):
    start(directories)
    copy_all(directories)
    lower(directories, TP, 50)
    cut_to(directories.get(TP), 50)
    append(directories.get(TP), 10, word="x")
    copy_all(directories)
    assert values(finish(directories)[0]) == expected(0, 50) + expected(50, 60, "x")


def test_describing_tells_how_far_the_copy_is(directories):
    move = start(directories)
    move.copy_step(300)
    status = directories.describe()[1]
    assert status.replicas == [(TP, move.log.size, 100 - move.log.end_offset, True)]


def test_a_cancelled_copy_is_removed(world, directories):
    start(directories)
    copy_all(directories)
    removal = cancel_move(directories, TP)
    assert removal.path.startswith(B)
    removal.run()
    assert directories.future(TP) is None
    assert [name for name in world.disk.names(B) if "orders" in name] == []
    assert cancel_move(directories, TP) is None
    assert directories.directory_of(TP) == A


def test_moving_to_where_it_is_cancels(directories):
    start(directories)
    assert start(directories, A) is None
    assert directories.moves == {}
    assert len(directories.removals) == 1


def test_moving_again_to_the_same_place_goes_on(directories):
    assert start(directories) is start(directories)


def test_a_deleted_partition_takes_its_copy_along(world, directories):
    start(directories)
    assert len(directories.delete(TP)) == 2
    world.kill()
    again = world.open()
    assert again.get(TP) is None
    assert again.moves == {}
    assert len(again.removals) == 2


def test_a_copy_goes_on_after_a_restart(world, directories):
    start(directories).copy_step(2000)
    directories.close({TP: 100})
    again = world.open()
    assert 0 < again.future(TP).log.end_offset < 100
    assert again.future(TP).target_path == B
    copy_all(again)
    assert values(finish(again)[0]) == expected(0, 100)


def test_a_copy_that_is_longer_than_its_original_begins_again(world, directories):
    flush(directories.get(TP))
    start(directories)
    append(directories.get(TP), 20)
    copy_all(directories)
    flush(directories.future(TP).log)
    world.kill()
    log = f"{A}/orders-0"
    last = [name for name in world.disk.names(log) if name.endswith(".log")][-1]
    file = world.disk.open(f"{log}/{last}")
    file.truncate(file.size() - 200)
    again = world.open()
    assert again.get(TP).end_offset < 120
    assert again.future(TP).log.end_offset == 0
    append(again.get(TP), 10, word="x")
    copy_all(again)
    moved = values(again.get(TP))
    assert values(finish(again)[0]) == moved


@pytest.mark.parametrize("ends", ["stopped", "killed", "target away"])
def test_a_copy_of_what_its_original_has_no_more_begins_again(world, directories, ends):
    """The original was cut to what a new leader has, and has gone on beyond the copy's end."""
    source = directories.get(TP)
    start(directories)
    copy_all(directories)
    flush(directories.future(TP).log)
    if ends == "target away":
        world.kill()
        world.disk.fail("*", f"{B}*", errno.EIO)
        directories = world.open()
        source = directories.get(TP)
    done_at_once(source.cutting_to(50, partial(directories.lowering, TP)))
    append(source, 100, word="x", leader_epoch=1)
    flush(source)
    if ends == "stopped":
        directories.close({TP: 150})
    else:
        world.kill()
    world.disk.stop_failing()
    again = world.open()
    assert again.future(TP).log.end_offset == 0
    copy_all(again)
    assert values(finish(again)[0]) == expected(0, 50) + expected(50, 150, "x")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("path", ["*-checkpoint.tmp", "*-future/*0.log"])
def test_a_copy_that_cannot_begin_again_at_a_start_takes_nothing_else_along(world, directories, path, number):
    """But for a disk that fails, with which all in it goes offline."""
    flush(directories.get(TP))
    directories.prefer(OTHER, B)
    append(directories.create(OTHER, TOPIC_ID, CONFIG, now_ms=NOW), 3)
    start(directories)
    append(directories.get(TP), 20)
    copy_all(directories)
    flush(directories.future(TP).log)
    write_checkpoints(directories, {TP: 100})
    world.kill()
    active = max(name for name in world.disk.names(f"{A}/orders-0") if name.endswith(".log"))
    file = world.disk.open(f"{A}/orders-0/{active}")
    file.truncate(file.size() - 200)
    world.disk.fail("create", f"{B}/{path}", number)
    again = world.open()
    assert again.moves == {}
    assert again.online_paths == ([A, B] if number == errno.ENOSPC else [A])
    assert (again.get(OTHER) is None) == (number == errno.EIO)
    world.kill()
    world.disk.stop_failing()
    again = world.open()
    copy_all(again)
    moved = values(again.get(TP))
    assert values(finish(again)[0]) == moved


def test_a_move_that_is_refused_leaves_no_copy_for_the_next_start(world, directories):
    world.disk.fail("sync_directory", B, errno.EMFILE, times=1)
    with pytest.raises(StorageFault):
        start(directories)
    world.kill()
    assert world.open().moves == {}


def test_a_copy_without_an_original_is_removed(world, directories):
    start(directories)
    directories.close({})
    for name in world.disk.names(A):
        if name == "orders-0":
            world.disk.remove_tree(f"{A}/{name}")
        else:
            world.disk.remove(f"{A}/{name}")
    again = world.open()
    assert again.moves == {}
    assert len(again.removals) == 1
    assert again.offline == {}


def test_a_copy_whose_original_is_missed_stays(world, directories):
    start(directories)
    directories.close({})
    world.disk.remove_tree(f"{A}/orders-0")
    again = world.open()
    assert (again.moves, again.removals) == ({}, [])
    assert f"{A}/orders-0 is gone" in again.offline[TP]
    assert sum("-future" in name for name in world.disk.names(B)) == 1


def test_a_copy_whose_original_is_away_waits(world, directories):
    start(directories)
    directories.close({})
    world.disk.fail("*", f"{A}*", errno.EIO)
    again = world.open()
    assert again.moves == {}
    assert again.removals == []
    assert sum("-future" in name for name in world.disk.names(B)) == 1


def test_a_damaged_copy_is_dropped(world, directories):
    start(directories)
    copy_all(directories)
    flush(directories.future(TP).log)
    write_checkpoints(directories, {TP: 100})
    world.kill()
    [folder] = [name for name in world.disk.names(B) if "-future" in name]
    for name in world.disk.names(f"{B}/{folder}"):
        if name.endswith((".index", ".log")):
            file = world.disk.open(f"{B}/{folder}/{name}")
            file.write(b"\xff" * file.size(), 0)
    again = world.open()
    assert values(again.get(TP)) == expected(0, 100)
    assert again.moves == {} or again.future(TP).log.end_offset == 0


@pytest.mark.parametrize(("path", "error"), [("/elsewhere", DirectoryNotFound), (B, DirectoryOffline)])
def test_only_a_working_log_directory_can_be_the_target(directories, path, error):
    directories.fail_directory(B, "pulled out")
    with pytest.raises(error):
        start(directories, path)


def test_a_partition_that_is_not_here_cannot_be_moved(directories):
    with pytest.raises(PartitionOffline, match="not on this broker"):
        start_move(directories, TopicPartition("nobody", 0), B, CONFIG, now_ms=NOW)


def test_a_topic_with_a_very_long_name_cannot_be_moved(directories):
    partition = TopicPartition("t" * 240, 0)
    directories.prefer(partition, A)
    directories.create(partition, TOPIC_ID, CONFIG, now_ms=NOW)
    with pytest.raises(MoveRefused, match="255"):
        start_move(directories, partition, B, CONFIG, now_ms=NOW)
    assert len(directories.delete(partition)) == 1


def test_losing_the_target_leaves_the_original(directories):
    start(directories)
    directories.fail_directory(B, "pulled out")
    assert directories.moves == {}
    assert values(directories.get(TP)) == expected(0, 100)


def test_losing_the_origin_keeps_the_copy_s_folder(world, directories):
    start(directories)
    directories.fail_directory(A, "pulled out")
    assert directories.moves == {}
    assert directories.describe()[1].replicas == []
    assert sum("-future" in name for name in world.disk.names(B)) == 1


def test_a_target_that_fails_at_the_change_over_leaves_the_original(world, directories):
    start(directories)
    copy_all(directories)
    world.disk.fail("rename", f"{B}/*-future", errno.EIO)
    with pytest.raises(DirectoryOffline):
        finish(directories)
    assert directories.online_paths == [A]
    assert directories.directory_of(TP) == A
    assert values(directories.get(TP)) == expected(0, 100)


def test_an_origin_that_fails_at_the_change_over_leaves_the_copy(world, directories):
    start(directories)
    copy_all(directories)
    world.disk.fail("rename", f"{A}/orders-0", errno.EIO)
    with pytest.raises(DirectoryOffline):
        finish(directories)
    assert directories.online_paths == [B]
    assert directories.directory_of(TP) == B
    assert values(directories.get(TP)) == expected(0, 100)
    assert TP not in directories.offline


@pytest.fixture
def left_behind(world, directories):
    """TP is in B, and its folder in A could not be given up, for want of room."""
    start(directories)
    copy_all(directories)
    world.disk.fail("rename", f"{A}/orders-0*", errno.ENOSPC, times=1)
    with pytest.raises(StorageFault):
        finish(directories)
    assert directories.directory_of(TP) == B
    return directories


def test_a_folder_that_a_move_could_not_give_up_goes_with_its_partition(world, left_behind):
    for removal in left_behind.delete(TP):
        removal.run()
    assert [name for path in (A, B) for name in world.disk.names(path) if name.startswith("orders-0.")] == [
        "orders-0.ottla-moved"
    ]
    assert values(left_behind.create(TP, bytes(range(16, 32)), CONFIG, now_ms=NOW)) == []


def test_a_replica_moves_back_to_where_its_folder_could_not_be_given_up(left_behind):
    append(left_behind.get(TP), 5)
    start(left_behind, A)
    copy_all(left_behind)
    log, removal = finish(left_behind)
    removal.run()
    assert left_behind.online_paths == [A, B]
    assert values(log) == expected(0, 105)


def test_a_folder_that_could_not_be_given_up_is_lost_without_its_partition(left_behind):
    left_behind.fail_directory(A, "pulled out")
    assert values(left_behind.get(TP)) == expected(0, 100)
    assert TP not in left_behind.offline


@pytest.mark.parametrize("at", ["*.tmp", "*.ottla-moved.tmp"])
def test_a_full_disk_at_the_change_over_drops_the_copy_only(world, directories, at):
    start(directories)
    copy_all(directories)
    append(directories.get(TP), 1)
    copy_all(directories)
    world.disk.fail("append", f"{B}/{at}", errno.ENOSPC)
    with pytest.raises(MoveRefused, match="no room"):
        finish(directories)
    assert directories.online_paths == [A, B]
    assert directories.moves == {}
    assert values(directories.get(TP)) == expected(0, 101)
    assert len(directories.removals) == 1
    world.disk.stop_failing()
    start(directories)
    copy_all(directories)
    assert values(finish(directories)[0]) == expected(0, 101)
    assert not world.disk.exists(MARKER)


# A crash came between the two renames


def both_there(world, directories, *, end_offset=100):
    """Two folders with the partition's name and the marker, as a crash in the middle of a change-over leaves them."""
    start(directories)
    copy_all(directories)
    directories.close({TP: 100})
    [folder] = [name for name in world.disk.names(B) if "-future" in name]
    world.disk.rename(f"{B}/{folder}", f"{B}/orders-0")
    file = world.disk.open(MARKER, create=True)
    file.append([move_marker.encode(end_offset)])


def test_the_marked_copy_wins(world, directories):
    both_there(world, directories)
    again = world.open()
    assert again.directory_of(TP) == B
    assert values(again.get(TP)) == expected(0, 100)
    assert len(again.removals) == 1
    assert not world.disk.exists(f"{A}/orders-0")
    assert not world.disk.exists(MARKER)


def test_an_original_that_has_grown_since_wins(world, directories):
    both_there(world, directories)
    away = f"{B}/orders-0.{'a' * 32}-stray"
    world.disk.rename(f"{B}/orders-0", away)
    world.disk.rename(MARKER, away + "/marker")
    lone = world.open()
    append(lone.get(TP), 5)
    lone.close({TP: 105})
    world.disk.rename(away + "/marker", MARKER)
    world.disk.rename(away, f"{B}/orders-0")
    again = world.open()
    assert again.directory_of(TP) == A
    assert values(again.get(TP)) == expected(0, 105)
    assert not world.disk.exists(f"{B}/orders-0")
    assert not world.disk.exists(MARKER)


def test_two_folders_that_were_both_used_since_are_left_to_the_operator(world, directories):
    both_there(world, directories, end_offset=99)
    again = world.open()
    assert again.get(TP) is None
    assert "stands twice" in again.offline[TP]
    assert world.disk.exists(MARKER)
    assert len(world.said(Severity.ERROR)) == 2


def test_a_damaged_marker_decides_nothing(world, directories):
    both_there(world, directories)
    world.disk.open(MARKER).truncate(3)
    assert "stands twice" in world.open().offline[TP]


def test_a_marker_stays_while_a_directory_is_away(world, directories):
    both_there(world, directories)
    world.disk.fail("*", f"{A}*", errno.EIO, times=1)
    again = world.open()
    assert again.directory_of(TP) == B
    assert world.disk.exists(MARKER)
    again.close({TP: 100})
    last = world.open()
    assert last.directory_of(TP) == B
    assert not world.disk.exists(MARKER)


def test_a_marker_without_a_second_folder_is_cleared_away(world, directories):
    directories.close({TP: 100})
    world.disk.open(MARKER, create=True).append([move_marker.encode(1)])
    again = world.open()
    assert again.directory_of(TP) == A
    assert not world.disk.exists(MARKER)
