"""Many partitions made and deleted at once: what blocks is done by workers, a batch and one sync at a time."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.storage.at_once import cut_to, lower, prepare_checkpoints, write_checkpoints
from tests.storage.directory_world import CONFIG, NOW, TOPIC_ID, TP, A, B, World, append, expected, flush, values

from ottla.model import TopicPartition
from ottla.ports.memory.disk import MemoryDisk
from ottla.steps import DiskSteps, at_once, done_at_once
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.errors import DirectoryOffline, InconsistentTopicId, PartitionOffline
from ottla.storage.directories.folder_batches import FOLDERS_A_BATCH
from ottla.storage.directories.placing import NewReplica
from ottla.storage.errors import StorageFault
from ottla.storage.formats import offset_checkpoint


class CountingDisk:
    """A disk that counts what it is asked for, and the syncs of each folder."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self.asked: Counter[str] = Counter()
        self.syncs: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._disk, name)
        if callable(found):
            self.asked[name] += 1
        return found

    def sync_directory(self, path: str) -> None:
        self.syncs[path] = self.syncs.get(path, 0) + 1
        self._disk.sync_directory(path)


@pytest.fixture
def world() -> World:
    return World()


def replicas(count: int, topic: str = "orders") -> list[NewReplica]:
    return [NewReplica(TopicPartition(topic, number), TOPIC_ID, CONFIG) for number in range(count)]


def names(count: int, topic: str = "orders") -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def with_the_disk_left_alone(world: World, steps: DiskSteps[Any], between: Callable[[], None] = lambda: None) -> Any:
    """Drives steps, and holds that only what is for workers changes the disk. `between` is called before each."""
    assert isinstance(world.disk, MemoryDisk)
    try:
        work = next(steps)
        while True:
            if work is not None:
                between()
                try:
                    work()
                except Exception as fault:
                    work = steps.throw(fault)
                    continue
            before = world.disk.operations
            work = next(steps)
            assert world.disk.operations == before
    except StopIteration as end:
        return end.value


def create(directories: LogDirectories, count: int) -> dict[TopicPartition, Exception]:
    return dict(done_at_once(directories.create_many(replicas(count), now_ms=NOW)))


def test_a_directory_is_synced_once_for_a_batch_of_new_partitions(world):
    disk = world.disk = CountingDisk(world.disk)
    directories = world.open()
    disk.syncs.clear()
    assert create(directories, FOLDERS_A_BATCH + 100) == {}
    assert disk.syncs == {A: 2, B: 2}
    assert len(directories.logs) == FOLDERS_A_BATCH + 100


def test_a_new_partition_costs_a_folder_and_two_files(world):
    disk = world.disk = CountingDisk(world.disk)
    directories = world.open()
    disk.asked.clear()
    assert create(directories, 100) == {}
    assert disk.asked == {"make_directory": 100, "open": 200}


def test_a_folder_that_is_there_is_looked_through(world):
    directories = world.open()
    for home in (A, B):
        world.disk.make_directory(f"{home}/orders-0/00000000000000000000.log")  # a log could not be written to it
    assert create(directories, 1) == {}
    append(directories.get(TP), 1)
    assert values(directories.get(TP)) == expected(0, 1)


def put_back(world: World, directories: LogDirectories, *, damage: int = 0) -> str:
    """A partition with five records is deleted, and somebody puts its folder back from a copy of the files. Returns the
    folder, of which so many bytes are missing at the end of the records."""
    create(directories, 1)
    append(directories.get(TP), 5)
    flush(directories.get(TP))
    folder = directories.get(TP).directory
    files = {name: world.disk.read_file(f"{folder}/{name}") for name in world.disk.names(folder)}
    for removal in directories.delete(TP):
        removal.run()
    world.disk.make_directory(folder)
    for name, data in files.items():
        file = world.disk.open(f"{folder}/{name}", create=True)
        file.append([data[: len(data) - damage] if name.endswith(".log") else data])
        file.close()
    return folder


def test_a_folder_that_somebody_put_back_is_read_like_one_after_a_crash(world):
    directories = world.open()
    put_back(world, directories, damage=3)
    assert create(directories, 1) == {}
    log = directories.get(TP)
    assert values(log) == expected(0, 4)
    append(log, 1)
    assert values(log) == expected(0, 5)


def test_a_folder_of_another_topic_that_somebody_put_there_is_refused_alone(world):
    directories = world.open()
    folder = put_back(world, directories)
    before = {name: world.disk.read_file(f"{folder}/{name}") for name in world.disk.names(folder)}
    others = [replica._replace(topic_id=bytes(range(1, 17))) for replica in replicas(4)]
    refused = done_at_once(directories.create_many(others, now_ms=NOW))
    assert {tp: type(reason) for tp, reason in refused.items()} == {TP: InconsistentTopicId}
    assert sorted(tp.partition for tp in directories.logs) == [1, 2, 3]
    assert {name: world.disk.read_file(f"{folder}/{name}") for name in world.disk.names(folder)} == before
    assert directories.online_paths == [A, B]


@pytest.mark.parametrize("fault", ["open", "sync_directory"])
def test_a_folder_that_somebody_put_back_stays_when_it_cannot_be_used(world, fault):
    directories = world.open()
    folder = put_back(world, directories)
    home = folder.rpartition("/")[0]
    world.disk.fail(fault, home if fault == "sync_directory" else f"{folder}/*.log", errno.ENOSPC, times=1)
    assert list(create(directories, 1)) == [TP]
    assert create(directories, 1) == {}
    assert values(directories.get(TP)) == expected(0, 5)


def test_a_directory_is_synced_once_for_a_batch_of_deleted_partitions(world):
    disk = world.disk = CountingDisk(world.disk)
    directories = world.open()
    create(directories, 300)
    disk.syncs.clear()
    deletion = done_at_once(directories.delete_many(names(300)))
    assert disk.syncs == {A: 1, B: 1}
    assert (len(deletion.removals), deletion.refused) == (300, {})
    assert not directories.logs


def test_the_loop_leaves_the_disk_alone(world):
    directories = world.open()
    assert with_the_disk_left_alone(world, directories.create_many(replicas(20), now_ms=NOW)) == {}
    append(directories.get(TP), 3)
    write_checkpoints(directories, {TP: 3})
    move = with_the_disk_left_alone(world, directories.starting_move(TP, B, CONFIG, now_ms=NOW))
    assert move is directories.future(TP)
    deletion = with_the_disk_left_alone(world, directories.delete_many(names(20)))
    assert len(deletion.removals) == 21
    assert with_the_disk_left_alone(world, directories.create_many(replicas(20), now_ms=NOW)) == {}


def test_new_partitions_are_spread_while_none_of_them_is_there_yet(world):
    directories = world.open()
    create(directories, 101)
    counts = [sum(directories.directory_of(tp) == path for tp in directories.logs) for path in (A, B)]
    assert counts == [51, 50]


def test_a_partition_that_is_being_made_is_in_no_table(world):
    directories = world.open()

    def look() -> None:
        assert directories.get(TP) is None
        [write, _] = prepare_checkpoints(directories, {})
        assert all(TP not in table for table in write.tables.values())
        assert all(not status.replicas for status in directories.describe())

    with_the_disk_left_alone(world, directories.create_many(replicas(1), now_ms=NOW), look)
    assert directories.get(TP) is not None


def test_a_disk_that_fills_in_the_middle_keeps_what_was_made(world):
    directories = world.open()
    world.disk.fail("*", f"{A}/orders-6*", errno.ENOSPC, times=1)
    refused = create(directories, 12)
    # Every second one goes to A; those behind the first that failed there were not tried.
    assert sorted(tp.partition for tp in refused) == [6, 8, 10]
    assert all(isinstance(reason, StorageFault) and not reason.directory_failed for reason in refused.values())
    assert directories.online_paths == [A, B]
    world.disk = world.disk.successor()
    world.topic_ids["orders"] = TOPIC_ID
    again = world.open()
    assert sorted(tp.partition for tp in again.logs) == [0, 1, 2, 3, 4, 5, 7, 9, 11]
    assert create(again, 12) == {}


def test_a_disk_that_fails_in_the_middle_costs_its_own_partitions_only(world):
    directories = world.open()
    world.disk.fail("*", f"{A}/orders-6*", errno.EIO)
    refused = create(directories, 12)
    assert sorted(tp.partition for tp in refused) == [0, 2, 4, 6, 8, 10]
    assert all(isinstance(reason, DirectoryOffline) for reason in refused.values())
    assert directories.online_paths == [B]
    assert sorted(tp.partition for tp in directories.logs) == [1, 3, 5, 7, 9, 11]


def test_a_sync_that_fails_leaves_none_of_the_batch(world):
    directories = world.open()
    world.disk.fail("sync_directory", A, errno.EIO)
    refused = create(directories, 4)
    assert sorted(tp.partition for tp in refused) == [0, 2]
    assert sorted(tp.partition for tp in directories.logs) == [1, 3]


def test_a_sync_without_room_leaves_none_of_the_batch_and_no_folder(world):
    directories = world.open()
    world.disk.fail("sync_directory", A, errno.ENOSPC, times=1)
    refused = create(directories, 4)
    assert sorted(tp.partition for tp in refused) == [0, 2]
    assert directories.online_paths == [A, B]
    assert not [name for name in world.disk.names(A) if name.startswith("orders")]
    assert create(directories, 4) == {}


def test_a_directory_that_fails_while_a_worker_makes_folders_in_it(world):
    directories = world.open()
    steps = directories.create_many(replicas(4), now_ms=NOW)
    refused = with_the_disk_left_alone(world, steps, lambda: directories.fail_directory(A, "pulled out") and None)
    assert sorted(tp.partition for tp in refused) == [0, 2]
    assert all(isinstance(reason, DirectoryOffline) for reason in refused.values())
    assert sorted(tp.partition for tp in directories.logs) == [1, 3]


def test_a_directory_that_fails_while_a_worker_renames_folders_in_it(world):
    directories = world.open()
    create(directories, 4)
    world.disk.fail("rename", f"{A}/orders-2*", errno.EIO)
    deletion = with_the_disk_left_alone(world, directories.delete_many(names(4)))
    # What was renamed before the fault is gone for certain.
    assert sorted(removal.partition.partition for removal in deletion.removals) == [0, 1, 3]
    assert list(deletion.refused) == [TopicPartition("orders", 2)]
    assert directories.online_paths == [B]


def test_a_directory_that_fails_while_a_copy_is_made_in_it(world):
    directories = world.open()
    create(directories, 1)
    steps = directories.starting_move(TP, B, CONFIG, now_ms=NOW)
    with pytest.raises(PartitionOffline):
        with_the_disk_left_alone(world, steps, lambda: directories.fail_directory(B, "pulled out") and None)
    assert directories.moves == {}
    assert directories.get(TP) is not None


def test_partitions_made_again_at_once_do_not_inherit_from_a_checkpoint_that_comes_late(world):
    directories = world.open()
    create(directories, 2)
    append(directories.get(TP), 30)
    flush(directories.get(TP))
    late = prepare_checkpoints(directories, {TP: 30})
    done_at_once(directories.delete_many(names(2)))
    create(directories, 2)
    for write in late:
        write.run()
    append(directories.get(TP), 2, word="new")
    world.topic_ids["orders"] = TOPIC_ID
    world.kill()
    again = world.open()
    assert again.offline == {}
    assert values(again.get(TP)) == expected(0, 2, "new")


def test_a_checkpoint_in_steps_loses_to_what_is_lowered_meanwhile(world):
    directories = world.open()
    create(directories, 1)
    log = directories.get(TP)
    append(log, 30)
    flush(log)
    write_checkpoints(directories, {TP: 30})
    steps = directories.checkpointing({TP: 30})
    next(steps)
    lower(directories, TP, 10)
    cut_to(log, 10)
    for write in at_once(steps):
        write.run()
    append(log, 5, word="new")
    world.kill()
    assert values(world.open().get(TP)) == expected(0, 10) + expected(10, 15, "new")


@pytest.fixture
def deleted_far(world):
    """30 records, of which the first 20 were deleted, and the checkpoint says so."""
    directories = world.open()
    create(directories, 1)
    log = directories.get(TP)
    append(log, 30)
    log.advance_start(20, 30)
    write_checkpoints(directories, {TP: 30})
    return directories


def begin_again(directories: LogDirectories, offset: int) -> None:
    """As a follower whose leader, which was elected though it lacked records, ends there."""
    log = directories.get(TP)
    done_at_once(log.beginning_anew_at(offset, partial(directories.lowering, TP)))
    append(log, 5, word="new")
    flush(log)


def test_a_log_that_begins_anew_below_its_start_keeps_what_it_then_gets(world, deleted_far):
    begin_again(deleted_far, 10)
    world.kill()
    assert values(world.open().get(TP)) == expected(10, 15, "new")


def test_a_checkpoint_under_way_does_not_raise_the_start_of_a_log_that_begins_anew(world, deleted_far):
    log = deleted_far.get(TP)
    steps = log.beginning_anew_at(10, partial(deleted_far.lowering, TP))
    lowering = next(steps)
    # Looked at while the log has its old start yet, and behind the request to lower it.
    writes = prepare_checkpoints(deleted_far, {TP: 20})
    lowering()
    for write in writes:
        write.run()
    done_at_once(steps)
    append(log, 5, word="new")
    flush(log)
    world.kill()
    assert values(world.open().get(TP)) == expected(10, 15, "new")


@pytest.fixture
def two_logs() -> tuple[World, LogDirectories]:
    """TP and another partition in one directory, 30 records each; what is checkpointed of both are the first 20."""
    world = World(paths=(A,))
    directories = world.open()
    create(directories, 2)
    for marks in (20, 30):
        for log in directories.logs.values():
            append(log, marks - log.end_offset)
            flush(log)
        if marks == 20:
            write_checkpoints(directories, dict.fromkeys(directories.logs, marks))
    return world, directories


def checkpointed(world: World) -> dict[TopicPartition, int]:
    return dict(offset_checkpoint.read(world.disk, f"{A}/{offset_checkpoint.RECOVERY_POINTS}"))


def test_what_is_lowered_brings_nothing_back_that_was_deleted(two_logs):
    world, directories = two_logs
    gone, left = sorted(directories.logs)
    directories.delete(gone)
    [write] = prepare_checkpoints(directories, {})
    # A cut of the other one comes in between: it is no reason to leave the folder's name in the file.
    lower(directories, left, 10)
    write.run()
    assert checkpointed(world) == {left: 10}


def test_a_write_under_way_does_not_raise_what_is_lowered(two_logs):
    world, directories = two_logs
    [write] = prepare_checkpoints(directories, {})
    # The file has 20, and the write will have 30.
    lower(directories, TP, 25)
    write.run()
    assert checkpointed(world)[TP] == 25


def test_what_was_lowered_may_rise_again(two_logs):
    world, directories = two_logs
    lower(directories, TP, 10)
    assert checkpointed(world)[TP] == 10
    write_checkpoints(directories, {})
    assert checkpointed(world)[TP] == 30


def topic_again(directories: LogDirectories) -> list[str]:
    """What a topic has that is made anew with the name of one that was deleted."""
    replica = NewReplica(TP, bytes(range(16, 32)), CONFIG)
    refused = done_at_once(directories.create_many([replica], now_ms=NOW))
    assert refused == {}
    return values(directories.get(TP))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize(("operation", "path"), [("rename", f"{A}/orders-0*"), ("sync_directory", A)])
def test_a_deletion_that_was_refused_is_done_when_it_is_asked_for_again(world, operation, path, number):
    directories = world.open()
    create(directories, 1)
    append(directories.get(TP), 3)
    world.disk.fail(operation, path, number, times=1)
    assert list(done_at_once(directories.delete_many([TP])).refused) == [TP]
    deletion = done_at_once(directories.delete_many([TP]))
    assert deletion.refused == {}
    for removal in deletion.removals:
        removal.run()
    assert not [name for name in world.disk.names(A) if name.startswith("orders")]
    assert directories.online_paths == [A, B]
    assert topic_again(directories) == []


@pytest.mark.parametrize(("operation", "path"), [("rename", f"{A}/orders-0*"), ("sync_directory", A)])
def test_a_topic_of_the_same_name_has_nothing_of_one_whose_deletion_was_refused(world, operation, path):
    directories = world.open()
    create(directories, 1)
    append(directories.get(TP), 3)
    world.disk.fail(operation, path, errno.ENOSPC, times=1)
    assert list(done_at_once(directories.delete_many([TP])).refused) == [TP]
    assert topic_again(directories) == []
    world.kill()
    world.topic_ids["orders"] = bytes(range(16, 32))
    assert values(world.open().get(TP)) == []


def test_a_folder_that_could_not_be_set_aside_is_so_with_the_next_try(world):
    directories = world.open()
    create(directories, 1)
    append(directories.get(TP), 3)
    world.topic_ids["orders"] = bytes(range(16, 32))
    world.kill()
    directories = world.open()
    assert directories.get(TP) is None
    world.disk.fail("sync_directory", A, errno.EMFILE, times=1)
    refused = done_at_once(directories.create_many([NewReplica(TP, bytes(range(16, 32)), CONFIG)], now_ms=NOW))
    assert list(refused) == [TP]
    assert topic_again(directories) == []
    assert directories.online_paths == [A, B]
