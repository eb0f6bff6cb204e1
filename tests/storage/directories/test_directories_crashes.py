"""A power cut at every single operation on the disk: what was finished stays finished, what was not leaves no trouble.

Each scenario runs once to count its operations, and then once for each of them with the power cut there; the disk loses
any subset of what was not synced. A failure names the operation and the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from tests.storage.at_once import cancel_move, cut_to, finish_move, lower, start_move, write_checkpoints
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
from ottla.ports.memory.faults import SimulatedCrash
from ottla.steps import done_at_once
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.placing import NewReplica
from ottla.storage.formats import partition_metadata
from ottla.storage.formats.names import FolderKind, parse_folder

SEEDS = range(3)

Prepare = Callable[[World], LogDirectories]
Act = Callable[[LogDirectories], None]
#: Looks at the next life; the flag says whether the act had come back before the power went.
Check = Callable[[World, LogDirectories, bool], None]


def at_every_operation(prepare: Prepare, act: Act, check: Check, topic_id: bytes | None = TOPIC_ID) -> None:
    total = None
    for seed in SEEDS:
        step = 0
        while total is None or step < total + 1:
            step += 1
            world = World(seed=seed)
            if topic_id is not None:
                world.topic_ids["orders"] = topic_id
            directories = prepare(world)
            before = world.disk.operations
            world.disk.crash_at(step)
            finished = True
            try:
                act(directories)
            except SimulatedCrash:
                finished = False
            if finished and total is None:
                total = world.disk.operations - before
            world.crash(Random(seed * 1000 + step))
            try:
                again = world.open()
                assert again.online_paths == [A, B]
                assert again.offline == {}
                check(world, again, finished)
            except BaseException as failure:
                failure.add_note(f"power cut at operation {step} with seed {seed}")
                raise
    assert total is not None
    assert total > 3


def current_folders(world: World) -> list[str]:
    found = []
    for path in (A, B):
        names = [name for name in world.disk.names(path) if name.startswith("orders-0")]
        found += [f"{path}/{name}" for name in names if parse_folder(name).kind is FolderKind.CURRENT]
    return found


def create(directories: LogDirectories, topic_id: bytes = TOPIC_ID):
    return directories.create(TP, topic_id, CONFIG, now_ms=NOW)


def with_records(world: World) -> LogDirectories:
    """40 records on the medium, checkpointed."""
    directories = world.open()
    append(create(directories), 40)
    flush(directories.get(TP))
    write_checkpoints(directories, {TP: 40})
    return directories


def test_opening_for_the_first_time():
    def check(world, again, finished):
        append(create(again), 3)
        again.close({TP: 3})
        assert values(world.open().get(TP)) == expected(0, 3)

    def act(world):
        world.open()

    at_every_operation(lambda world: world, act, check)


def test_opening_after_a_clean_stop():
    def prepare(world):
        with_records(world).close({TP: 40})
        return world

    def act(world):
        append(world.open().get(TP), 5, word="late")

    def check(world, again, finished):
        assert values(again.get(TP))[:40] == expected(0, 40)

    at_every_operation(prepare, act, check)


def test_creating():
    def check(world, again, finished):
        log = again.get(TP)
        if finished:
            assert log is not None
            assert log.topic_id == TOPIC_ID
        if log is not None:
            assert log.end_offset == 0
        append(create(again), 2)
        flush(again.get(TP))
        assert again.get(TP).topic_id == TOPIC_ID
        again.close({})
        assert values(world.open().get(TP)) == expected(0, 2)

    at_every_operation(lambda world: world.open(), create, check)


def test_creating_and_flushing():
    def act(directories):
        append(create(directories), 10)
        flush(directories.get(TP))

    def check(world, again, finished):
        if finished:
            assert values(again.get(TP)) == expected(0, 10)

    at_every_operation(lambda world: world.open(), act, check)


def test_deleting():
    def act(directories):
        removals = directories.delete(TP)
        write_checkpoints(directories, {})
        for removal in removals:
            removal.run()

    def check(world, again, finished):
        log = again.get(TP)
        if finished:
            assert log is None
        if log is not None:
            assert values(log) == expected(0, 40)
        for removal in again.removals:
            removal.run()
        assert len(current_folders(world)) == (log is not None)

    at_every_operation(with_records, act, check)


def test_deleting_and_creating_again():
    def act(directories):
        directories.delete(TP)
        append(create(directories, bytes([9] * 16)), 5, word="new")

    def check(world, again, finished):
        log = again.get(TP)
        if log is not None and (finished or values(log) != expected(0, 40)):
            assert values(log) == expected(0, log.end_offset, "new")

    at_every_operation(with_records, act, check, topic_id=None)


def many(topic_id: bytes) -> list[NewReplica]:
    return [NewReplica(TopicPartition("orders", number), topic_id, CONFIG) for number in range(5)]


def test_creating_many():
    def act(directories):
        assert done_at_once(directories.create_many(many(TOPIC_ID), now_ms=NOW)) == {}

    def check(world, again, finished):
        if finished:
            assert len(again.logs) == 5
            assert all(log.topic_id == TOPIC_ID for log in again.logs.values())
        act(again)
        append(again.get(TP), 2)
        again.close({})
        last = world.open()
        assert len(last.logs) == 5
        assert values(last.get(TP)) == expected(0, 2)

    at_every_operation(lambda world: world.open(), act, check)


def test_deleting_many_and_creating_them_again():
    def prepare(world):
        directories = with_records(world)
        done_at_once(directories.create_many(many(TOPIC_ID), now_ms=NOW))
        return directories

    def act(directories):
        deletion = done_at_once(directories.delete_many([replica.partition for replica in many(TOPIC_ID)]))
        assert len(deletion.removals) == 5
        assert done_at_once(directories.create_many(many(bytes([9] * 16)), now_ms=NOW)) == {}
        append(directories.get(TP), 5, word="new")

    def check(world, again, finished):
        if finished:
            assert len(again.logs) == 5
        log = again.get(TP)
        if log is not None and (finished or values(log) != expected(0, 40)):
            assert values(log) == expected(0, log.end_offset, "new")
        for removal in again.removals:
            removal.run()

    at_every_operation(prepare, act, check, topic_id=None)


def test_moving():
    def act(directories):
        start_move(directories, TP, B, CONFIG, now_ms=NOW)
        copy_all(directories)
        finish_move(directories, TP, CONFIG, now_ms=NOW)

    def check(world, again, finished):
        assert values(again.get(TP)) == expected(0, 40)
        assert len(current_folders(world)) == 1
        assert again.get(TP).topic_id == TOPIC_ID
        if finished:
            assert again.directory_of(TP) == B
        append(again.get(TP), 5)
        again.close({TP: 45})
        last = world.open()
        assert values(last.get(TP)) == expected(0, 45)
        assert not any(name.endswith(".ottla-moved") for path in (A, B) for name in world.disk.names(path))

    at_every_operation(with_records, act, check)


def test_moving_with_deleted_records():
    def prepare(world):
        directories = with_records(world)
        directories.get(TP).advance_start(15, 40)
        write_checkpoints(directories, {TP: 40})
        return directories

    def act(directories):
        start_move(directories, TP, B, CONFIG, now_ms=NOW)
        copy_all(directories)
        finish_move(directories, TP, CONFIG, now_ms=NOW)

    def check(world, again, finished):
        assert values(again.get(TP)) == expected(15, 40)

    at_every_operation(prepare, act, check)


def test_moving_while_records_are_deleted():
    def prepare(world):
        directories = with_records(world)
        start_move(directories, TP, B, CONFIG, now_ms=NOW)
        copy_all(directories)
        directories.get(TP).advance_start(15, 40)
        write_checkpoints(directories, {TP: 40})
        return directories

    def act(directories):
        copy_step = directories.future(TP).copy_step
        assert copy_step(1) == 0
        finish_move(directories, TP, CONFIG, now_ms=NOW)

    def check(world, again, finished):
        assert values(again.get(TP)) == expected(15, 40)
        assert again.high_watermark(TP) == 40

    at_every_operation(prepare, act, check)


def test_cancelling_a_move():
    def prepare(world):
        directories = with_records(world)
        start_move(directories, TP, B, CONFIG, now_ms=NOW)
        copy_all(directories)
        return directories

    def act(directories):
        cancel_move(directories, TP).run()

    def check(world, again, finished):
        assert values(again.get(TP)) == expected(0, 40)
        assert again.directory_of(TP) == A
        if finished:
            assert again.moves == {}

    at_every_operation(prepare, act, check)


def test_writing_checkpoints():
    def act(directories):
        log = directories.get(TP)
        append(log, 20)
        flush(log)
        log.advance_start(10, 60)
        write_checkpoints(directories, {TP: 60})

    def check(world, again, finished):
        log = again.get(TP)
        found = values(log)
        assert found == expected(log.start_offset, log.end_offset)
        assert log.end_offset >= 40
        assert again.high_watermark(TP) in {40, 60}
        if finished:
            assert (log.start_offset, log.end_offset) == (10, 60)
            assert again.high_watermark(TP) == 60

    at_every_operation(with_records, act, check)


def test_cutting_back_and_writing_again():
    def act(directories):
        log = directories.get(TP)
        lower(directories, TP, 10)
        cut_to(log, 10)
        append(log, 15, word="new")

    def check(world, again, finished):
        found = values(again.get(TP))
        kept = next((number for number, word in enumerate(found) if word != f"r{number}"), len(found))
        assert kept >= 10
        assert found[kept:] == expected(kept, len(found), "new")
        assert kept == 10 or len(found) == kept

    at_every_operation(with_records, act, check)


@pytest.mark.parametrize("count", [0, 30])
def test_stopping(count):
    def prepare(world):
        directories = with_records(world)
        append(directories.get(TP), count)
        return directories

    def act(directories):
        directories.close({TP: 40 + count})

    def check(world, again, finished):
        log = again.get(TP)
        assert log.end_offset >= 40
        assert values(log) == expected(0, log.end_offset)
        if finished:
            assert log.end_offset == 40 + count
            assert log.recovery_point == 40 + count

    at_every_operation(prepare, act, check)


def test_a_marker_is_only_ever_found_with_everything_there():
    def prepare(world):
        directories = with_records(world)
        append(directories.get(TP), 30)
        return directories

    steps = 0
    for seed in SEEDS:
        for step in range(1, 60):
            world = World(seed=seed)
            directories = prepare(world)
            world.disk.crash_at(step)
            with suppress(SimulatedCrash):
                directories.close({TP: 70})
            world.crash(Random(seed * 1000 + step))
            if world.disk.exists(f"{A}/.kafka_cleanshutdown"):
                steps += 1
                assert values(world.open().get(TP)) == expected(0, 70)
    assert steps


def test_the_topics_id_is_whole_once_records_are_certain():
    """Torn, it would be written anew with the id that is known by then: perhaps that of a later topic of this name."""
    for seed in range(40):
        world = World(seed=seed)
        directories = world.open()
        log = directories.create(TP, TOPIC_ID, CONFIG, now_ms=NOW)
        append(log, 3)
        flush(log)
        home = directories.directory_of(TP)
        world.crash(Random(seed))
        assert partition_metadata.read(world.disk, f"{home}/orders-0/partition.metadata") == TOPIC_ID


def test_a_stop_flushes_no_log_that_never_had_a_record():
    directories = World().open()
    log = directories.create(TP, TOPIC_ID, CONFIG, now_ms=NOW)
    assert log.prepare_close() is None
