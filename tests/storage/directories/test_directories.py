"""Opening, creating, deleting and closing, without crashes."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from tests.storage.at_once import finish_move, prepare_checkpoints, start_move, write_checkpoints
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
from ottla.ports.real.disk import RealDisk
from ottla.steps import done_at_once
from ottla.storage.directories.errors import (
    DirectoryLocked,
    DirectoryOffline,
    InconsistentTopicId,
    NoUsableDirectory,
    PartitionOffline,
    WrongIdentity,
)
from ottla.storage.directories.events import Severity
from ottla.storage.errors import StorageFault
from ottla.storage.formats import offset_checkpoint
from ottla.storage.formats.names import FolderKind, parse_folder
from ottla.storage.formats.offset_checkpoint import HIGH_WATERMARKS

OTHER = TopicPartition("payments", 3)
#: Of the next topic that has the name.
LATER_ID = bytes([9] * 16)


def create(directories, partition=TP, topic_id=TOPIC_ID, **options):
    return directories.create(partition, topic_id, CONFIG, now_ms=NOW, **options)


@pytest.fixture
def world():
    return World()


# Start


def test_missing_directories_are_made_and_claimed(world):
    directories = world.open()
    assert world.disk.names(A) == [".lock", "meta.properties"]
    assert len(set(directories.directory_ids.values())) == 2
    assert world.events == []


def test_partitions_of_a_directory_may_lie_apart(world, monkeypatch):
    told = []
    monkeypatch.setattr(type(world.disk), "spread_folders", lambda _, path: told.append(path))
    world.open()
    assert told == [A, B]


def test_a_second_broker_is_told_that_the_directory_is_taken(world):
    world.open()
    with pytest.raises(DirectoryLocked, match=rf"lock on {A}/\.lock: another broker"):
        world.open()


def test_a_refused_start_gives_the_locks_back(world):
    world.open().close({})
    world.identity = (2, "cluster-x")
    with pytest.raises(WrongIdentity):
        world.open()
    world.identity = (1, "cluster-x")
    world.open()


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ((2, "cluster-x"), "Invalid broker.id in .*expected 2, but read 1"),
        ((1, "cluster-y"), "Invalid cluster.id in .*expected cluster-y, but read cluster-x"),
    ],
)
def test_the_directory_of_another_is_refused_in_one_line(world, identity, words):
    world.open().close({})
    world.identity = identity
    with pytest.raises(WrongIdentity, match=words) as refused:
        world.open()
    assert "\n" not in str(refused.value)


def test_a_copied_directory_is_refused(world):
    world.open().close({})
    data = world.disk.read_file(f"{A}/meta.properties")
    file = world.disk.open(f"{B}/meta.properties")
    file.truncate(0)
    file.append([data])
    with pytest.raises(WrongIdentity, match=r"same directory\.id"):
        world.open()


def test_a_directory_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match="stands twice"):
        World(paths=(A, A + "/")).open()


def test_an_unwritable_directory_goes_offline_and_the_other_goes_on(world):
    world.disk.fail("*", f"{A}*", errno.EROFS)
    directories = world.open()
    assert directories.online_paths == [B]
    assert "Read-only" in world.said(Severity.ERROR)[0]
    create(directories)
    assert directories.directory_of(TP) == B


def test_without_a_usable_directory_the_start_fails(world):
    world.disk.fail("*", "/data*", errno.EACCES)
    with pytest.raises(NoUsableDirectory, match=r"/data/a: .*Permission denied.*; /data/b: "):
        world.open()


def test_a_damaged_identity_takes_the_directory_offline(world):
    world.open().close({})
    world.disk.open(f"{A}/meta.properties").truncate(5)
    world.disk.open(f"{A}/meta.properties").write(b"version=9", 0)
    assert world.open().online_paths == [B]
    assert "nobody can tell whose directory it is" in world.said(Severity.ERROR)[0]


# A clean stop and the next start


def test_records_survive_a_clean_stop_and_nothing_is_said(world):
    directories = world.open()
    append(create(directories), 50)
    directories.close({TP: 50})
    assert world.disk.exists(f"{A}/.kafka_cleanshutdown")
    again = world.open()
    assert world.events == []
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")
    log = again.get(TP)
    assert values(log) == expected(0, 50)
    assert log.topic_id == TOPIC_ID
    assert log.recovery_point == 50
    assert again.high_watermark(TP) == 50


def test_a_start_offset_survives(world):
    directories = world.open()
    log = create(directories)
    append(log, 20)
    log.advance_start(7, 20)
    directories.close({TP: 20})
    assert values(world.open().get(TP)) == expected(7, 20)


def test_what_was_not_flushed_is_there_after_a_kill(world):
    directories = world.open()
    append(create(directories), 30)
    world.kill()
    assert values(world.open().get(TP)) == expected(0, 30)


def test_unchanged_checkpoints_are_not_written_again(world):
    directories = world.open()
    append(create(directories), 3)
    write_checkpoints(directories, {TP: 3})
    before = world.disk.operations
    write_checkpoints(directories, {TP: 3})
    assert world.disk.operations == before


def test_an_overtaken_write_changes_nothing(world):
    directories = world.open()
    append(create(directories), 3)
    old = prepare_checkpoints(directories, {TP: 1})
    write_checkpoints(directories, {TP: 3})
    for write in old:
        write.run()
    assert offset_checkpoint.read(world.disk, f"{A}/replication-offset-checkpoint") == {TP: 3}


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_damaged_checkpoint_is_a_warning_and_no_loss(world, name):
    directories = world.open()
    append(create(directories), 30)
    directories.close({TP: 30})
    file = world.disk.open(f"{A}/{name}", create=True)
    file.truncate(0)
    file.append([b"0\n7\n\xff"])
    again = world.open()
    assert values(again.get(TP)) == expected(0, 30)
    assert [message.split()[0] for message in world.said(Severity.WARNING)] == [name]
    again.close({TP: 30})
    assert world.open().get(TP).end_offset == 30
    assert world.events == []


def test_a_directory_whose_flush_fails_is_not_left_clean(world):
    directories = world.open()
    append(create(directories), 5)
    world.disk.fail("sync", f"{A}/orders*", errno.EIO)
    directories.close({TP: 5})
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")
    assert world.disk.exists(f"{B}/.kafka_cleanshutdown")
    assert "not left clean" in world.said(Severity.ERROR)[0]


# Creating


def test_the_emptiest_directory_gets_the_next_replica(world):
    directories = world.open()
    for number in range(6):
        create(directories, TopicPartition("t", number))
    homes = [directories.directory_of(TopicPartition("t", number)) for number in range(6)]
    assert homes == [A, B, A, B, A, B]


def test_a_cordoned_directory_gets_none(world):
    directories = world.open(cordoned=frozenset({A}))
    create(directories)
    assert directories.directory_of(TP) == B
    assert [status.is_cordoned for status in directories.describe()] == [True, False]


def test_a_preference_decides(world):
    directories = world.open()
    directories.prefer(TP, B)
    create(directories)
    assert directories.directory_of(TP) == B


def test_creating_again_gives_the_same_log(world):
    directories = world.open()
    assert create(directories) is create(directories)


def test_the_folder_of_an_earlier_topic_is_not_reused(world):
    directories = world.open()
    create(directories)
    with pytest.raises(InconsistentTopicId, match="earlier topic"):
        create(directories, topic_id=bytes([9] * 16))


def test_a_folder_without_a_topic_id_gets_it(world):
    directories = world.open()
    create(directories, topic_id=bytes(16))
    directories.close({})
    again = world.open()
    assert not any(again.get(TP).topic_id)
    create(again)
    again.close({})
    assert world.open().get(TP).topic_id == TOPIC_ID


def test_a_start_that_knows_the_topic_s_id_writes_it_into_a_folder_that_lacks_it(world):
    directories = world.open()
    append(create(directories, topic_id=bytes(16)), 3)
    directories.close({TP: 3})
    world.topic_ids["orders"] = TOPIC_ID
    world.open().close({TP: 3})
    world.topic_ids.clear()
    assert world.open().get(TP).topic_id == TOPIC_ID


def test_a_damaged_topic_id_is_written_again(world):
    directories = world.open()
    append(create(directories), 3)
    directories.close({TP: 3})
    world.disk.open(f"{A}/orders-0/partition.metadata").truncate(20)
    world.topic_ids["orders"] = TOPIC_ID
    again = world.open()
    assert values(again.get(TP)) == expected(0, 3)
    assert "partition.metadata" in world.said(Severity.WARNING)[0]
    again.close({TP: 3})
    world.open()
    assert world.events == []


def test_a_folder_of_an_earlier_topic_is_not_served_as_the_new_one(world):
    directories = world.open()
    append(create(directories), 3)
    directories.close({TP: 3})
    world.topic_ids["orders"] = bytes([9] * 16)
    again = world.open()
    assert again.get(TP) is None
    assert "earlier topic" in world.said(Severity.WARNING)[0]
    assert create(again, topic_id=bytes([9] * 16)).end_offset == 0
    assert sum("-stray" in name for name in world.disk.names(A)) == 1


def test_last_flushes_may_run_elsewhere(world):
    directories = world.open()
    for partition in (TP, OTHER):
        append(create(directories, partition), 3)
    last = directories.prepare_close()
    assert len(last) == 2
    for each in last:
        each.run()
        each.settle()
    assert [log.recovery_point for log in directories.logs.values()] == [3, 3]
    directories.close({})
    assert world.disk.exists(f"{A}/.kafka_cleanshutdown")


def test_a_last_flush_that_failed_elsewhere_leaves_no_marker(world):
    directories = world.open()
    append(create(directories), 3)
    world.disk.fail("sync", f"{A}/orders*", errno.EIO, times=1)
    [last] = directories.prepare_close()
    with pytest.raises(OSError, match="Input/output"):
        last.run()
    last.settle()
    directories.close({})
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")


def test_an_index_that_the_last_flush_had_no_room_for_leaves_no_marker(world):
    directories = world.open()
    append(create(directories), 3)
    world.disk.fail("create", f"{A}/orders*.index", errno.ENOSPC)
    [last] = directories.prepare_close()
    with pytest.raises(StorageFault, match="No space left"):
        last.run()
    last.settle()
    directories.close({})
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")


def test_a_flush_that_is_still_under_way_leaves_no_marker(world):
    directories = world.open()
    append(create(directories), 3)
    assert directories.get(TP).prepare_flush() is not None
    directories.close({})
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")
    assert "still being flushed" in world.said(Severity.ERROR)[0]


def test_a_replica_that_may_be_in_an_offline_directory_is_not_made_anew(world):
    directories = world.open()
    directories.fail_directory(A, "pulled out")
    with pytest.raises(DirectoryOffline, match=A):
        create(directories, is_new=False)
    create(directories)


def test_a_full_disk_refuses_a_replica_and_fails_no_directory(world):
    directories = world.open()
    world.disk.fail("append", "*", errno.ENOSPC, times=1)
    with pytest.raises(StorageFault) as refused:
        create(directories)
    assert not refused.value.directory_failed
    assert directories.online_paths == [A, B]
    create(directories)


def test_a_failing_disk_takes_its_directory_offline(world):
    directories = world.open()
    world.disk.fail("*", f"{A}/*", errno.EIO)
    with pytest.raises(DirectoryOffline):
        create(directories)
    assert directories.online_paths == [B]
    create(directories)
    assert directories.directory_of(TP) == B


# Deleting


def test_a_deleted_partition_is_renamed_and_then_removed(world):
    directories = world.open()
    append(create(directories), 3)
    [removal] = directories.delete(TP)
    assert directories.get(TP) is None
    assert directories.directory_of(TP) is None
    assert parse_folder(removal.path.rpartition("/")[2]).kind is FolderKind.DELETE
    removal.run()
    removal.run()
    assert not world.disk.exists(removal.path)


def test_a_deletion_is_finished_by_the_next_start(world):
    directories = world.open()
    create(directories)
    [removal] = directories.delete(TP)
    directories.close({})
    again = world.open()
    assert again.get(TP) is None
    assert [each.path for each in again.removals] == [removal.path]


def test_deleting_what_is_not_here_is_nothing(world):
    assert world.open().delete(TP) == []


def test_a_partition_made_again_does_not_inherit_offsets(world):
    directories = world.open()
    log = create(directories)
    append(log, 30)
    log.advance_start(10, 30)
    write_checkpoints(directories, {TP: 30})
    directories.delete(TP)
    create(directories, topic_id=bytes([7] * 16))
    append(directories.get(TP), 2, word="new")
    world.kill()
    again = world.open()
    assert values(again.get(TP)) == ["new0", "new1"]
    assert world.said(Severity.WARNING) == []


# Faults of one partition


def damaged(world):
    """A world whose partition TP has lost its first segment's head below the recovery point; OTHER is sound."""
    directories = world.open()
    for partition in (TP, OTHER):
        append(create(directories, partition), 60)
    home = directories.directory_of(TP)
    directories.close({})
    world.disk.remove(f"{home}/.kafka_cleanshutdown")
    file = world.disk.open(f"{home}/orders-0/{'0' * 20}.log")
    file.write(b"\xff" * 20, 100)
    # The checkpoint says that all of it had been on the medium.
    return home


def test_a_damaged_partition_goes_offline_alone(world):
    home = damaged(world)
    for name in world.disk.names(f"{home}/orders-0"):
        if name.endswith(("index", ".snapshot")):
            world.disk.remove(f"{home}/orders-0/{name}")
    directories = world.open()
    if directories.get(TP) is None:
        assert TP in directories.offline
        with pytest.raises(PartitionOffline):
            create(directories)
        assert "damaged" in world.said(Severity.ERROR)[0]
    assert values(directories.get(OTHER)) == expected(0, 60)


def test_a_partition_that_stands_twice_is_not_opened(world):
    directories = world.open()
    for partition in (TP, OTHER):
        append(create(directories, partition), 5)
    directories.close({})
    world.disk.make_directory(f"{B}/orders-0")
    again = world.open()
    assert again.get(TP) is None
    assert f"{A}/orders-0 and {B}/orders-0" in again.offline[TP]
    assert again.get(OTHER).end_offset == 5


@pytest.fixture(params=["clean", "killed"])
def filled(world, request):
    """10 records each in orders-0 (in A) and payments-3 (in B), checkpointed, and the broker is gone."""
    directories = world.open()
    for partition in (TP, OTHER):
        append(create(directories, partition), 10)
        flush(directories.get(partition))
    marks = {TP: 10, OTHER: 10}
    write_checkpoints(directories, marks)
    if request.param == "clean":
        directories.close(marks)
    else:
        world.kill()
    return world


def missed(world, directories, reason):
    """The partition is offline, its neighbour is not, and this stays so over further starts until it is dealt with."""
    for _ in range(2):
        assert directories.get(TP) is None
        assert reason in directories.offline[TP]
        assert [reason in each for each in world.said(Severity.ERROR)] == [True]
        assert values(directories.get(OTHER)) == expected(0, 10)
        with pytest.raises(PartitionOffline):
            create(directories, is_new=False)
        write_checkpoints(directories, {OTHER: 10})
        directories.close({OTHER: 10})
        directories = world.open()
    directories.close({OTHER: 10})


def test_a_folder_that_is_gone_is_missed(filled):
    filled.disk.rename(f"{A}/orders-0", "/data/kept")
    missed(filled, filled.open(), f"{A}/orders-0 is gone, and had records up to offset 10")
    filled.disk.rename("/data/kept", f"{A}/orders-0")
    assert values(filled.open().get(TP)) == expected(0, 10)


def test_a_folder_whose_segment_is_gone_is_missed(filled):
    filled.disk.rename(f"{A}/orders-0/{'0' * 20}.log", "/data/kept")
    missed(filled, filled.open(), f"{A}/orders-0 ends at offset 0, and its records up to 10 were safely on disk")
    filled.disk.rename("/data/kept", f"{A}/orders-0/{'0' * 20}.log")
    assert values(filled.open().get(TP)) == expected(0, 10)


def test_a_log_that_lost_its_end_is_missed(filled):
    path = f"{A}/orders-0/{'0' * 20}.log"
    file = filled.disk.open(path)
    whole = file.read(file.size(), 0)
    file.truncate(len(whole) // 10 * 6)
    missed(filled, filled.open(), "ends at offset 6, and its records up to 10 were safely on disk")
    file.append([whole[len(whole) // 10 * 6 :]])
    assert values(filled.open().get(TP)) == expected(0, 10)


def test_an_empty_folder_in_its_place_gives_the_records_up(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    filled.open().close({})
    filled.disk.make_directory(f"{A}/orders-0")
    again = filled.open()
    assert again.offline == {}
    assert "it begins anew, without its records up to 10" in filled.said(Severity.WARNING)[0]
    append(again.get(TP), 3, word="new")
    filled.kill()
    # The old recovery point is gone, so that these are taken for what they are.
    again = filled.open()
    assert values(again.get(TP)) == expected(0, 3, "new")
    assert again.offline == {}


def test_what_was_deleted_is_not_missed(filled):
    directories = filled.open()
    removals = directories.delete(TP)
    filled.kill()
    # Its new name says that it was given up, also where the checkpoints have not heard of it.
    directories = filled.open()
    assert directories.offline == {}
    assert [each.path for each in directories.removals] == [each.path for each in removals]
    write_checkpoints(directories, {})
    for removal in directories.removals:
        removal.run()
    filled.kill()
    directories = filled.open()
    assert directories.offline == {}
    assert create(directories, is_new=False).end_offset == 0


def test_what_was_moved_is_not_missed_where_it_was(filled):
    directories = filled.open()
    start_move(directories, TP, B, CONFIG, now_ms=NOW)
    copy_all(directories)
    finish_move(directories, TP, CONFIG, now_ms=NOW)
    filled.kill()
    directories = filled.open()
    assert directories.offline == {}
    assert values(directories.get(TP)) == expected(0, 10)


def test_a_directory_that_was_exchanged_for_an_empty_one_misses_nothing(filled):
    filled.disk.remove_tree(A)
    directories = filled.open()
    assert directories.offline == {}
    assert create(directories, is_new=False).end_offset == 0


def test_a_folder_of_an_unknown_topic_is_not_missed(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    filled.topics = {"payments"}
    assert filled.open().offline == {}


def test_what_is_missed_is_of_one_topic(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    filled.topic_ids["orders"] = TOPIC_ID
    directories = filled.open()
    with pytest.raises(PartitionOffline):
        create(directories)
    # Nothing of a later topic with the name was ever here.
    log = create(directories, topic_id=LATER_ID, is_new=False)
    assert directories.offline == {}
    assert "of an earlier topic" in filled.said(Severity.WARNING)[0]
    append(log, 2, word="new")
    filled.topic_ids["orders"] = LATER_ID
    filled.kill()
    directories = filled.open()
    assert directories.offline == {}
    assert values(directories.get(TP)) == expected(0, 2, "new")


def test_a_partition_that_is_to_be_elsewhere_is_not_missed(filled):
    """Where the topic of that name was made anew while the broker was away, it may not have such a partition yet."""
    filled.disk.remove_tree(f"{A}/orders-0")
    filled.topic_ids["orders"] = LATER_ID
    directories = filled.open(holds=lambda tp: tp != TP)
    assert directories.offline == {}
    append(create(directories, topic_id=LATER_ID), 2, word="new")
    filled.kill()
    assert values(filled.open().get(TP)) == expected(0, 2, "new")


def test_what_is_damaged_is_of_one_topic(filled):
    filled.disk.remove(f"{A}/orders-0/{'0' * 20}.log")
    filled.topic_ids["orders"] = TOPIC_ID
    directories = filled.open()
    with pytest.raises(PartitionOffline):
        create(directories)
    assert create(directories, topic_id=LATER_ID).end_offset == 0
    assert directories.offline == {}
    assert sum("-stray" in name for name in filled.disk.names(A)) == 1


def test_a_topic_without_an_id_is_taken_for_the_one_that_is_missed(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    filled.topic_ids["orders"] = TOPIC_ID
    directories = filled.open()
    with pytest.raises(PartitionOffline):
        create(directories, topic_id=bytes(16))


def test_a_damaged_partition_can_be_set_aside_and_made_anew(filled):
    filled.disk.rename(f"{A}/orders-0/{'0' * 20}.log", "/data/kept")
    directories = filled.open()
    [path] = directories.set_aside(TP)
    assert parse_folder(path.rpartition("/")[2]).kind is FolderKind.STRAY
    assert create(directories).end_offset == 0
    directories.close({})
    filled.open()
    assert any("set aside earlier" in each for each in filled.said(Severity.WARNING))


def test_a_damaged_partition_can_be_deleted_and_made_anew(filled):
    filled.disk.rename(f"{A}/orders-0/{'0' * 20}.log", "/data/kept")
    directories = filled.open()
    assert len(directories.delete(TP)) == 1
    assert directories.offline == {}
    assert create(directories).end_offset == 0


def test_a_folder_that_is_missed_can_be_deleted_and_made_anew(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    directories = filled.open()
    assert directories.delete(TP) == []
    assert directories.offline == {}
    append(create(directories), 2, word="new")
    filled.kill()
    assert values(filled.open().get(TP)) == expected(0, 2, "new")


def test_a_replica_that_is_missed_may_be_filled_from_its_leader(filled):
    filled.disk.remove_tree(f"{A}/orders-0")
    directories = filled.open()
    directories.give_up_lost(TP)
    assert create(directories, is_new=False).end_offset == 0
    assert "copied from its leader" in filled.said(Severity.WARNING)[0]
    directories.close({})
    assert filled.open().offline == {}


def test_a_replica_that_is_damaged_is_set_aside_and_may_be_filled_from_its_leader(world):
    directories = world.open()
    append(create(directories), 10)
    flush(directories.get(TP))
    write_checkpoints(directories, {TP: 10})
    world.kill()
    log = f"{A}/orders-0/00000000000000000000.log"
    world.disk.flip(log, 100)
    damaged = world.disk.read_file(log)
    directories = world.open()
    assert list(directories.offline) == [TP]
    directories.give_up_lost(TP)
    assert create(directories, is_new=False).end_offset == 0
    assert "copied from its leader" in world.said(Severity.WARNING)[0]
    (aside,) = [name for name in world.disk.names(A) if name.endswith("-stray")]
    assert world.disk.read_file(f"{A}/{aside}/00000000000000000000.log") == damaged
    # It is as any other new one: a start misses nothing.
    append(directories.get(TP), 3, word="new")
    world.kill()
    directories = world.open()
    assert directories.offline == {}
    assert values(directories.get(TP)) == expected(0, 3, "new")


def test_folders_of_unknown_topics_are_reported_and_left(world):
    directories = world.open()
    append(create(directories), 5)
    directories.close({TP: 5})
    world.topics = {"payments"}
    again = world.open()
    assert again.get(TP) is None
    assert TP not in again.offline
    assert "1 folders are of no known topic and are left in place: orders-0" in world.said(Severity.WARNING)[0]
    again.close({})
    world.topics = None
    assert values(world.open().get(TP)) == expected(0, 5)


def test_a_topic_made_anew_sets_an_unknown_folder_aside(world):
    directories = world.open()
    append(create(directories), 5)
    directories.close({TP: 5})
    world.topics = set()
    again = world.open()
    assert create(again, topic_id=bytes([5] * 16)).end_offset == 0
    assert sum("-stray" in name for name in world.disk.names(A)) == 1


def test_other_things_in_the_directory_are_left_alone(world):
    world.open().close({})
    world.disk.make_directory(f"{A}/lost+found")
    world.disk.make_directory(f"{A}/not-a-partition")
    world.disk.open(f"{A}/notes-1", create=True).close()
    world.open()
    assert [message.split(" ")[0] for message in world.said(Severity.WARNING)] == ["the"]
    assert "notes-1 is not a folder" in world.said(Severity.ERROR)[0]


# Faults of a directory


def test_a_failed_directory_takes_its_partitions_offline(world):
    directories = world.open()
    for partition in (TP, OTHER):
        create(directories, partition)
    assert directories.fail_directory(A, "a sync failed") == [TP]
    assert directories.fail_directory(A, "again") == []
    assert directories.get(TP) is None
    assert directories.get(OTHER) is not None
    with pytest.raises(PartitionOffline, match="a sync failed"):
        create(directories)
    statuses = directories.describe()
    assert [status.failure for status in statuses] == ["a sync failed", None]
    assert statuses[0].replicas == []
    directories.close({})
    assert not world.disk.exists(f"{A}/.kafka_cleanshutdown")


def test_a_later_topic_is_made_beside_a_directory_that_failed(world):
    directories = world.open()
    create(directories)
    directories.fail_directory(A, "a sync failed")
    assert directories.delete(TP) == []
    with pytest.raises(PartitionOffline, match="a sync failed"):
        create(directories)
    create(directories, topic_id=LATER_ID)
    assert directories.directory_of(TP) == B
    assert directories.offline == {}


def test_a_checkpoint_that_cannot_be_written_fails_its_directory(world):
    directories = world.open()
    append(create(directories), 5)
    world.disk.fail("sync", f"{A}/*.tmp", errno.EIO)
    write_checkpoints(directories, {TP: 5})
    assert directories.online_paths == [B]


def test_a_full_disk_does_not_fail_a_checkpoint_s_directory(world):
    directories = world.open()
    append(create(directories), 5)
    world.disk.fail("append", f"{A}/*.tmp", errno.ENOSPC, times=1)
    write_checkpoints(directories, {TP: 5})
    assert directories.online_paths == [A, B]
    write_checkpoints(directories, {TP: 5})
    assert offset_checkpoint.read(world.disk, f"{A}/replication-offset-checkpoint") == {TP: 5}


@pytest.mark.parametrize("fault", ["create", "sync_directory"])
def test_a_checkpoint_that_was_written_in_part_is_lowered_with_its_log(world, fault):
    """A start must not take the log's cut end for lost records."""
    directories = world.open()
    log = create(directories)
    home = directories.directory_of(TP)
    append(log, 20)
    write_checkpoints(directories, {TP: 0})
    flush(log)
    path = f"{home}/{HIGH_WATERMARKS}.tmp" if fault == "create" else home
    world.disk.fail(fault, path, errno.ENOSPC, times=1)
    write_checkpoints(directories, {TP: 10})
    done_at_once(log.cutting_to(12, partial(directories.lowering, TP)))
    world.kill()
    directories = world.open()
    assert not directories.offline
    assert values(directories.get(TP)) == expected(0, 12)


def test_a_checkpoint_that_was_written_in_part_is_forgotten_with_its_partition(world):
    directories = world.open()
    log = create(directories)
    append(log, 20)
    flush(log)
    world.disk.fail("create", f"*/{HIGH_WATERMARKS}.tmp", errno.ENOSPC, times=1)
    write_checkpoints(directories, {TP: 20})
    home = directories.directory_of(TP)
    directories.delete(TP)
    directories.prefer(TP, home)
    append(create(directories, topic_id=LATER_ID), 3)
    world.kill()
    directories = world.open()
    assert not directories.offline
    assert values(directories.get(TP)) == expected(0, 3)


def test_describing_tells_sizes(world):
    directories = world.open()
    log = create(directories)
    append(log, 5)
    [status, _] = directories.describe({TP: 5})
    assert status.replicas == [(TP, log.size, 0, False)]
    assert log.size > 0
    assert 0 < status.usable_bytes <= status.total_bytes


def test_logs_may_be_opened_in_threads(tmp_path):
    def run(jobs):
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda job: job(), jobs))

    world = World(RealDisk(), (str(tmp_path / "a"), str(tmp_path / "b")))
    directories = world.open()
    partitions = [TopicPartition("t", number) for number in range(40)]
    for partition in partitions:
        append(create(directories, partition), 5)
    for path in world.paths:  # the process ends here: its locks go, its writes stay
        directories._by_path[path].release()
    again = world.open(run=run)
    assert {partition: values(log) for partition, log in again.logs.items()} == dict.fromkeys(
        partitions, expected(0, 5)
    )
    assert world.events == []
