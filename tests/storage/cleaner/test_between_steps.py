"""What happens to a log while a pass is under way: between two of its steps the loop may do anything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from tests.storage.at_once import begin_anew_at, cut_to, done, expire, first_at_or_after, of_largest_timestamp
from tests.storage.cleaner.cleaning import (
    COMPACTED,
    Cleaner,
    batches_of,
    compacted_world,
    fetched,
    newest,
    put_keyed,
    records_of,
)
from tests.storage.cold_disk import ColdDisk
from tests.storage.log_world import NOW, World, marker, put

from ottla.ports.memory.disk import MemoryDisk
from ottla.records.record import decode_batch
from ottla.storage.cleaner.dirt import Dirt
from ottla.storage.cleaner.faults import PassInterrupted
from ottla.storage.cleaner.rounds import InTurns, Step, Steps, clean_log
from ottla.storage.cleaner.swap import Stage
from ottla.storage.errors import OffsetOutsideLog
from ottla.storage.log.append import Origin
from ottla.storage.log.cold_reads import MissingAborted, missing_place
from ottla.storage.log.indexes.time_lookup import FromDisk
from ottla.storage.log.log import Log
from ottla.storage.log.opening.open_log import open_log

CONFIG = COMPACTED._replace(segment_bytes=500)
Disturb = Callable[[World, Log], None]


def filled(config: object = CONFIG) -> tuple[World, Log]:
    world = compacted_world(config=config)  # type: ignore[arg-type]
    log = world.open()
    for number in range(40):
        put_keyed(log, (b"k%d" % (number % 7), b"v%d" % number))
    world.flush(log)
    return world, log


def run(step: Step) -> object:
    return done(step)


def disturbed(steps: Steps, at: int, disturb: Callable[[], None]) -> bool:
    """Drives a pass and calls `disturb` after step `at`; whether there was such a step."""
    step = next(steps)
    number = 0
    try:
        while True:
            number += 1
            try:
                result = run(step)
            except Exception as error:
                step = steps.throw(error)
                continue
            if number == at:
                disturb()
            step = steps.send(result)
    except StopIteration:
        return number >= at


def no_work_files(world: World) -> bool:
    return not [name for name in world.disk.names(world.folder) if name.endswith((".cleaned", ".swap"))]


def truncate(_: World, log: Log) -> None:
    cut_to(log, log.segments[1].base_offset + 2)
    put_keyed(log, (b"k1", b"after the cut"))


def truncate_all(_: World, log: Log) -> None:
    begin_anew_at(log, 100)


def roll_and_append(world: World, log: Log) -> None:
    log.roll(NOW)
    put_keyed(log, (b"k1", b"appended"))
    world.flush(log)


def change_policy(_: World, log: Log) -> None:
    log.reconfigure(log.config._replace(cleanup_policy=frozenset({"delete"})))


def retain(_: World, log: Log) -> None:
    log.reconfigure(log.config._replace(cleanup_policy=frozenset({"compact", "delete"}), retention_bytes=900))
    for removal in expire(log, NOW, log.end_offset):
        removal.run()


@pytest.mark.parametrize("disturb", [truncate, truncate_all, roll_and_append, change_policy, retain])
def test_a_pass_over_a_log_that_changes(disturb: Disturb) -> None:
    for at in range(1, 60):
        world, log = filled()
        cleaner = Cleaner(world)
        expected: list[dict[bytes, bytes]] = []

        def change(world: World = world, log: Log = log, expected: list[dict[bytes, bytes]] = expected) -> None:
            disturb(world, log)
            expected.append(newest(records_of(log)))

        was_interrupted = False
        try:
            if not disturbed(cleaner.steps(log), at, change):
                break
        except PassInterrupted:
            was_interrupted = True
        assert no_work_files(world), f"after step {at}"
        assert log.swap is None
        assert newest(records_of(log)) == expected[0], f"after step {at}"
        assert log.size == sum(segment.size for segment in log.segments)
        assert was_interrupted or disturb in {roll_and_append, retain} or at > 8

        # The next start finds the same, and the next pass comes to its end.
        before = records_of(log)
        world.close(log)
        log = world.open(clean=False)
        assert records_of(log) == before
        if log.config.is_compacted:
            cleaner.clean(log)
            assert newest(records_of(log)) == expected[0]
    else:
        pytest.fail("the pass never came to its end")


def swapped_in() -> tuple[Log, Steps, Step]:
    """A log whose first cleaned segment serves, and the step that gives it its last name."""
    world = compacted_world(config=CONFIG)
    log = world.open()
    for number in range(40):
        put_keyed(log, (b"k%d" % (number % 7 if number else 99), b"v%d" % number))
    world.flush(log)
    steps = Cleaner(world).steps(log)
    step = next(steps)
    while log.swap is None or log.swap.stage is not Stage.INSTALLED:
        step = steps.send(run(step))
    return log, steps, steps.send(run(step))


def take_last_name(log: Log, steps: Steps, step: Step) -> None:
    while log.swap is not None:
        step = steps.send(run(step))


def test_a_look_that_waits_while_a_cleaned_segment_gets_its_name_finds_it() -> None:
    log, steps, step = swapped_in()
    log.staging.roll_apart()
    for segment in log.segments:
        segment.release_files()
    missing = missing_place(log, log.segments[0].base_offset, log.end_offset)
    assert missing is not None
    aborted = MissingAborted(log, 0, log.end_offset)
    lookup = log.look_up(NOW, log.end_offset)
    from_disk = next(lookup)
    assert isinstance(from_disk, FromDisk)
    take_last_name(log, steps, step)
    missing.run()
    missing.take()
    assert missing.fault is None
    assert missing_place(log, log.segments[0].base_offset, log.end_offset) is None
    aborted.run()
    aborted.take()
    assert aborted.fault is None
    from_disk.work()


def test_a_look_at_files_that_get_another_name_meanwhile_is_taken_again() -> None:
    log, steps, step = swapped_in()
    log.staging.roll_apart()
    for segment in log.segments:
        segment.release_files()
    missing = missing_place(log, log.segments[0].base_offset, log.end_offset)
    assert missing is not None
    segment = log.segments[0]
    loads = segment.around.disk.open_read_only

    class Renaming:
        """The last name is given between the worker's look at the name and its look for the file."""

        def __getattr__(self, name: str) -> object:
            return getattr(log.places.around.disk, name)

        def open_read_only(self, path: str) -> object:
            if log.swap is not None:
                take_last_name(log, steps, step)
            return loads(path)

    for twin in missing._twins.values():
        twin.keep_in(twin.around._replace(disk=Renaming()))  # type: ignore[arg-type]
    missing.run()
    assert missing.fault is not None
    missing.take()
    assert missing.fault is None
    again = missing_place(log, log.segments[0].base_offset, log.end_offset)
    assert again is not None
    again.run()
    again.take()
    assert missing_place(log, log.segments[0].base_offset, log.end_offset) is None


def test_a_partition_that_is_copied_to_another_directory_meanwhile() -> None:
    for at in range(1, 60):
        world, log = filled()
        cleaner = Cleaner(world)
        expected = newest(records_of(log))

        def move(cleaner: Cleaner = cleaner) -> None:
            cleaner.is_moving = True

        cleaned_to = log.cleaned_to
        try:
            if not disturbed(cleaner.steps(log), at, move):
                break
        except PassInterrupted:
            assert log.cleaned_to in {cleaned_to, log.start_offset}, "the copy may lack what the pass has done"
        assert no_work_files(world), f"after step {at}"
        assert newest(records_of(log)) == expected
        cleaner.is_moving = False
        cleaner.clean(log)
        assert newest(records_of(log)) == expected
    else:
        pytest.fail("the pass never came to its end")


def test_a_partition_that_is_deleted_meanwhile() -> None:
    for at in range(1, 60):
        world, log = filled()
        cleaner = Cleaner(world)

        def delete(world: World = world, log: Log = log, cleaner: Cleaner = cleaner) -> None:
            log.abandon()
            world.disk.rename(world.folder, f"{world.folder}.0a-delete")
            cleaner.is_current = False

        with suppress(PassInterrupted):
            if not disturbed(cleaner.steps(log), at, delete):
                break
        assert world.disk.names("/data") == ["orders-0.0a-delete"], "nothing was made anew"
    else:
        pytest.fail("the pass never came to its end")


def test_the_name_of_a_deleted_partition_is_another_partitions() -> None:
    """The steps that are left find files of the same names, and leave them alone."""
    for at in range(1, 60):
        world, log = filled()
        cleaner = Cleaner(world)
        others: list[Log] = []

        def replace(
            world: World = world, log: Log = log, cleaner: Cleaner = cleaner, others: list[Log] = others
        ) -> None:
            log.abandon()
            world.disk.rename(world.folder, f"{world.folder}.0a-delete")
            cleaner.is_current = False
            world.disk.make_directory(world.folder)
            world.recovery_point = 0
            other = world.open()
            for number in range(40):
                put_keyed(other, (b"k%d" % (number % 7), b"new %d" % number))
            others.append(other)

        with suppress(PassInterrupted):
            if not disturbed(cleaner.steps(log), at, replace):
                break
        assert [each.value for each in records_of(others[0])] == [b"new %d" % number for number in range(40)]
    else:
        pytest.fail("the pass never came to its end")


def test_a_reader_goes_on_in_the_segment_that_it_holds() -> None:
    world, log = filled()
    slice_ = log.read(0, 400, log.end_offset)
    assert slice_.file is not None
    slice_.file.lease()
    expected = slice_.read()
    cleaner = Cleaner(world)
    cleaner.clean(log)
    cleaner.remove()
    assert slice_.read() == expected
    slice_.file.release()
    assert log.read(0, 400, log.end_offset).read() != expected


def test_a_consumer_sees_every_key_whatever_happens_under_it() -> None:
    """It reads in small steps while the log is written to and cleaned, and has each newest record in the end."""
    for seed in range(30):
        rng = Random(seed)
        world, log = filled(CONFIG._replace(segment_bytes=rng.choice([300, 500, 2000])))
        cleaner = Cleaner(world)
        seen: dict[bytes, bytes] = {}
        at = 0
        steps: Steps | None = None
        sent: object = None
        for turn in range(400):
            if steps is None and turn < 300:
                world.flush(log)
                steps, sent = cleaner.steps(log), None
            elif steps is not None:
                try:
                    sent = run(steps.send(sent))
                except StopIteration:
                    steps = None
                    cleaner.remove()
            if turn < 200 and rng.random() < 0.5:
                put_keyed(log, (b"k%d" % rng.randrange(9), b"w%d" % turn))
            if at < log.end_offset and rng.random() < 0.5:
                data = log.read(at, rng.choice([1, 200, 2000]), log.end_offset).read()
                for record in decode_batch(data) if data else ():
                    if record.offset >= at:
                        assert record.key is not None
                        assert record.value is not None
                        seen[record.key] = record.value
                        at = record.offset + 1
        assert at == log.end_offset, f"seed {seed}"
        assert seen == newest(records_of(log)), f"seed {seed}"
        assert fetched(log) == records_of(log)


def check_look_ups(log: Log) -> None:
    """Each offset is answered with the batch that holds it, and one in a hole with the next."""
    left = records_of(log)
    for offset in range(log.end_offset):
        found = decode_batch(log.read(offset, 1, log.end_offset).read())
        following = next(each for each in left if each.offset >= offset)
        assert following.offset in {record.offset for record in found}, offset


def test_look_ups_in_a_log_with_holes() -> None:
    world, log = filled()
    for number in range(40, 60):
        put_keyed(log, (b"k%d" % (number % 7), b"v%d" % number), timestamp=NOW + number)
    Cleaner(world).clean(log)
    left = records_of(log)
    assert left[0].offset > 10
    check_look_ups(log)
    with pytest.raises(OffsetOutsideLog):
        log.read(log.end_offset + 1, 1, log.end_offset)
    for stamp in (NOW, NOW + 45, NOW + 59):
        found_at = first_at_or_after(log, stamp, log.end_offset)
        assert found_at is not None
        assert found_at.offset == next(each.offset for each in left if each.timestamp >= stamp)
    largest = of_largest_timestamp(log)
    assert largest is not None
    assert largest.timestamp == NOW + 59


def test_a_follower_takes_batches_with_holes() -> None:
    world, log = filled()
    Cleaner(world).clean(log)
    other_world = World(world.disk, CONFIG, folder="/data/copy-0")
    world.disk.make_directory("/data/copy-0")
    copy = other_world.open()
    while copy.end_offset < log.end_offset:
        data = log.read(copy.end_offset, 300, log.end_offset).read()
        copy.stage_replica(memoryview(bytearray(data)))
        copy.write_staged()
    assert records_of(copy) == records_of(log)
    check_look_ups(copy)
    assert isinstance(world.disk, MemoryDisk)
    other_world.flush(copy)
    copy.abandon()
    again = other_world.open(clean=False)
    assert records_of(again) == records_of(log)


def test_a_cleaned_log_of_another_policy_opens_after_a_crash() -> None:
    """Its holes below the recovery point are no damage, and segments that were cleaned away no sign of retention."""
    for seed in range(20):
        world, log = filled()
        cleaner = Cleaner(world)
        cleaner.clean(log)
        left = records_of(log)
        world.config = CONFIG._replace(cleanup_policy=frozenset({"delete"}))
        world.crash(Random(seed))
        log = open_log(
            world.disk,
            world.folder,
            log.tp,
            world.config,
            now_ms=NOW,
            clean=False,
            recovery_point=world.recovery_point,
            cleaned_to=cleaner.cleaned_to,
        )
        assert records_of(log) == left, f"seed {seed}"
        log.abandon()


def test_offsets_of_segments_do_not_change() -> None:
    world, log = filled()
    bases = [segment.base_offset for segment in log.segments]
    Cleaner(world).clean(log)
    assert {segment.base_offset for segment in log.segments} <= set(bases)
    assert log.segments[0].base_offset == 0
    assert log.segments[-1].base_offset == bases[-1]
    assert [header.base_offset for header, _ in batches_of(log)] == [each.offset for each in records_of(log)]


def test_aborted_transactions_are_read_by_a_worker() -> None:
    """There may be a million."""
    world = compacted_world(config=CONFIG)
    log = world.open()
    for number in range(20):
        put_keyed(log, (b"k%d" % (number % 3), b"v%d" % number), producer=(1, 0, number), transactional=True)
        if number % 2:
            put(log, marker(1, 0, aborts=True), origin=Origin.COORDINATOR)
    world.close(log)
    disk = world.disk = ColdDisk(world.disk)  # type: ignore[assignment]
    cleaner = Cleaner(world)
    log = world.open()
    log.staging.roll_apart()
    _, end = log.producers, log.segments[-1].base_offset
    with disk.loop():  # type: ignore[attr-defined]
        steps = clean_log(log, Dirt(0, end, 0, 0, 0, False), cleaner.surrounding())
        with suppress(StopIteration):
            step = next(steps)
            while True:
                if isinstance(step, InTurns):
                    result = run(step)
                else:
                    with disk.worker():  # type: ignore[attr-defined]
                        result = run(step)
                step = steps.send(result)
    assert disk.waited == []  # type: ignore[attr-defined]
    assert min(each.offset for each in records_of(log)) >= end
