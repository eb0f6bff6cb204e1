"""Producers' snapshots: frozen where a segment is rolled, written by the flush behind it, and never missed."""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random

import pytest
from tests.storage.at_once import cut_to
from tests.storage.log_world import FOLDER, NOW, World, batch, marker, memory_disk, put, read_all

from ottla.config.log import LogConfig
from ottla.ports.memory.disk import MemoryDisk
from ottla.storage.errors import StorageFault
from ottla.storage.formats.producer_snapshot import ProducerEntry, decode
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log
from ottla.storage.log.producers.overlay import Overlay
from ottla.storage.log.producers.producer_state import ActiveProducer
from ottla.storage.log.rolling import LogReading

CONFIG = LogConfig(segment_bytes=1 << 20, retention_ms=-1)
#: A start after a crash begins right before the recovery point.
INDEXED = CONFIG._replace(index_interval_bytes=0)


def send(log: Log, producer_id: int, sequence: int = 0, *, transactional: bool = False) -> None:
    put(log, batch(b"v", producer=(producer_id, 0, sequence), transactional=transactional))


def snapshots(world: World) -> list[int]:
    return [int(name[:20]) for name in world.disk.names(world.folder) if name.endswith(".snapshot")]


def entries(world: World, offset: int) -> list[ProducerEntry]:
    return decode(world.disk.read_file(world.path(f"{offset:020d}.snapshot")))


def known(log: Log) -> list[ActiveProducer]:
    return sorted(log.describe_producers())


def test_a_roll_costs_the_same_with_many_producers_as_with_none() -> None:
    costs = []
    for are_idempotent in (False, True):
        disk = memory_disk()
        world = World(disk, CONFIG)
        log = world.open()
        for producer_id in range(3_000):
            put(log, batch(b"v", producer=(producer_id if are_idempotent else -1, 0, 0)))
        before = disk.operations
        log.roll(NOW)
        costs.append(disk.operations - before)
        assert snapshots(world) == []
    assert costs[0] == costs[1]


def test_a_snapshot_says_what_was_known_at_the_roll_whatever_comes_before_the_flush() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for producer_id in range(1_000):
        send(log, producer_id, transactional=producer_id == 7)
    expected = log.producers.snapshot()
    log.roll(NOW)
    for producer_id in range(500, 1_500):
        send(log, producer_id, sequence=1 if producer_id < 1_000 else 0)
    put(log, marker(7, 0, aborts=True), origin=Origin.COORDINATOR)
    log.producers.expire(NOW + 2 * 86_400_000, 86_400_000)
    after = known(log)
    assert len(after) == 0
    for producer_id in range(10):
        send(log, producer_id)
    flush = log.prepare_flush()
    assert flush is not None
    send(log, 11)
    flush.run()
    send(log, 12)
    log.flushed(flush)
    assert snapshots(world) == [1_000]
    assert entries(world, 1_000) == expected
    assert [each.producer_id for each in known(log)] == [*range(10), 11, 12]
    assert log.snapshots.offsets == (1_000,)


def test_one_is_under_way_at_a_time() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for number in range(5):
        send(log, number)
        log.roll(NOW)
    world.flush(log)
    assert snapshots(world) == [1]
    send(log, 9)
    log.roll(NOW)
    world.flush(log)
    assert snapshots(world) == [1, 6]
    send(log, 10)
    log.roll(NOW)
    world.close(log)
    assert snapshots(world) == [1, 6, 7]
    assert [each.producer_id for each in known(world.open())] == [0, 1, 2, 3, 4, 9, 10]


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_before_or_in_the_flush_forgets_no_producer(seed: int) -> None:
    rng = Random(seed)
    disk = memory_disk()
    world = World(disk, CONFIG)
    log = world.open()
    sequences = dict.fromkeys(range(20), 0)
    for _ in range(rng.randrange(10, 60)):
        producer_id = rng.randrange(20)
        send(log, producer_id, sequences[producer_id])
        sequences[producer_id] += 1
        if rng.random() < 0.2:
            log.roll(NOW)
        if rng.random() < 0.1:
            world.flush(log)
    flush = log.prepare_flush()
    if flush is not None and rng.random() < 0.7:
        disk.fail("*", "*.snapshot", errno.EIO, after=rng.randrange(8), times=1)
        with suppress(OSError):
            flush.run()
        disk.stop_failing()
    world.crash(rng)
    log = world.open(clean=False)
    found = {each.producer_id: each.last_sequence for each in known(log)}
    expected: dict[int, int] = {}
    for offset, _ in read_all(log):
        header_at = log.read(offset, 100, log.end_offset).read()
        expected[int.from_bytes(header_at[43:51], "big")] = int.from_bytes(header_at[53:57], "big")
    assert found == expected


def test_a_cut_while_the_flush_is_running_leaves_no_snapshot_of_another_past() -> None:
    for settled_first in (True, False):
        world = World(config=CONFIG)
        log = world.open()
        for number in range(10):
            send(log, number)
        log.roll(NOW)
        flush = log.prepare_flush()
        assert flush is not None
        if settled_first:
            cut_to(log, 5)
            flush.run()
        else:
            flush.run()
            cut_to(log, 5)
        for number in range(30, 40):
            send(log, number)
        log.roll(NOW)
        log.flushed(flush)
        assert snapshots(world) == []
        send(log, 50)
        log.roll(NOW)
        world.flush(log)
        assert snapshots(world) == [16]
        assert [each.producer_id for each in entries(world, 16)] == [*range(5), *range(30, 40), 50]


def test_a_cut_before_the_flush_drops_it() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for number in range(10):
        send(log, number)
    log.roll(NOW)
    cut_to(log, 5)
    world.flush(log)
    assert snapshots(world) == []
    world.close(log)
    assert [each.producer_id for each in known(world.open())] == list(range(5))


@pytest.mark.parametrize("operation", ["create", "append", "write"])
def test_a_full_disk_leaves_a_snapshot_out_and_keeps_the_records(operation: str) -> None:
    disk = memory_disk()
    world = World(disk, CONFIG)
    log = world.open()
    for number in range(10):
        send(log, number)
    log.roll(NOW)
    disk.fail(operation, "*.snapshot", errno.ENOSPC)
    world.flush(log)
    assert (log.recovery_point, snapshots(world)) == (10, [])
    # A stop relies on one: it is refused, and the next start reads the log.
    send(log, 10)
    with pytest.raises(StorageFault):
        log.close()
    disk.stop_failing()
    log = world.open(clean=False)
    assert [each.producer_id for each in known(log)] == list(range(11))
    world.close(log)
    assert snapshots(world) == [11]


def test_a_flush_that_outlives_its_partition_writes_nothing_into_the_next_ones_folder() -> None:
    disk = memory_disk()
    world = World(disk, CONFIG)
    log = world.open()
    for number in range(10):
        send(log, number)
    log.roll(NOW)
    flush = log.prepare_flush()
    assert flush is not None
    log.abandon()
    disk.rename(FOLDER, FOLDER + ".0123-delete")
    disk.make_directory(FOLDER)
    new = world.open()
    before = disk.names(FOLDER)
    flush.run()
    assert disk.names(FOLDER) == before
    assert new.describe_producers() == []


def test_a_large_snapshot_is_read_at_the_start() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for producer_id in range(2_000):
        send(log, producer_id)
    world.close(log)
    log = world.open()
    assert isinstance(world.disk, MemoryDisk)
    world.disk.fail("*", "*.snapshot", errno.EIO)
    send(log, 5, 1)
    assert len(log.describe_producers()) == 2_000


@pytest.mark.parametrize("seed", range(20))
def test_an_overlay_is_a_dict_and_leaves_its_base_alone(seed: int) -> None:
    rng = Random(seed)
    base = {number: number for number in range(rng.randrange(20))}
    before, model = dict(base), dict(base)
    overlay = Overlay(base)
    for _ in range(200):
        key = rng.randrange(30)
        if rng.random() < 0.6:
            overlay[key] = model[key] = rng.randrange(1000)
        elif rng.random() < 0.5:
            assert overlay.pop(key, None) == model.pop(key, None)
        elif key in model:
            del overlay[key], model[key]
        else:
            with pytest.raises(KeyError):
                del overlay[key]
        assert overlay.get(key) == model.get(key)
        assert overlay.get(key, -1) == model.get(key, -1)
        assert (len(overlay), dict(overlay.items())) == (len(model), model)
    assert base == before
    assert overlay.merged() == model


def test_a_flush_that_began_before_a_roll_leaves_its_snapshot_to_the_next() -> None:
    world = World(config=CONFIG)
    log = world.open()
    for sequence in range(5):
        send(log, 1, sequence)
    flush = log.prepare_flush()
    assert flush is not None
    for sequence in range(5, 10):
        send(log, 1, sequence)
    log.roll(NOW)
    flush.run()
    log.flushed(flush)
    assert snapshots(world) == []
    assert log.flush_due(NOW), "the snapshot waits"
    world.flush(log)
    assert snapshots(world) == [10]


def test_a_stop_behind_a_flush_that_began_before_a_roll_leaves_one_snapshot() -> None:
    world = World(config=CONFIG)
    log = world.open()
    send(log, 1)
    flush = log.prepare_flush()
    assert flush is not None
    send(log, 1, 1)
    log.roll(NOW)
    send(log, 1, 2)
    flush.run()
    log.flushed(flush)
    world.close(log)
    assert snapshots(world)[-1] == 3
    assert known(world.open())[0].last_sequence == 2


@pytest.mark.parametrize("by_a_worker", [False, True])
def test_a_damaged_snapshot_of_a_stop_is_made_anew_though_nothing_is_written(by_a_worker: bool) -> None:
    disk = memory_disk()
    world = World(disk, CONFIG)
    log = world.open()
    send(log, 1, transactional=True)
    world.close(log)
    disk.flip(world.path(f"{1:020d}.snapshot"), 12)
    log = world.open()
    if by_a_worker:
        reading = LogReading(log.staging)
        reading.run()
        reading.finish()
    assert log.first_unstable_offset == 0
    world.close(log)
    assert snapshots(world) == [1]
    assert world.open().first_unstable_offset == 0


def test_a_stop_s_snapshot_that_was_replaced_while_the_log_was_cut_back_to_it_is_taken_again() -> None:
    world = World(config=CONFIG)
    log = world.open()
    send(log, 1, transactional=True)
    world.close(log)
    log = world.open()
    send(log, 2)
    log.roll(NOW)
    flush = log.prepare_flush()
    assert flush is not None
    cut_to(log, 1)
    flush.run()
    log.flushed(flush)
    assert snapshots(world) == []
    world.close(log)
    assert snapshots(world) == [1]
    assert world.open().first_unstable_offset == 0


def test_a_transaction_that_ended_below_the_log_s_start_is_not_open_behind_a_crash() -> None:
    """Its snapshot is older than both."""
    world = World(config=INDEXED)
    log = world.open()
    send(log, 1, transactional=True)
    log.roll(NOW)
    world.flush(log)
    send(log, 2)
    put(log, marker(1, 0, aborts=False), origin=Origin.COORDINATOR)
    send(log, 2, 1)
    world.flush(log)
    log.active.write_indexes()
    log.advance_start(log.end_offset - 1)
    world.start_offset = log.start_offset
    log.abandon()
    log = world.open(clean=False)
    assert log.first_unstable_offset is None
    assert [(each.producer_id, each.last_sequence) for each in known(log)] == [(1, 0), (2, 1)]


def test_damage_below_the_log_s_start_keeps_no_producer_from_being_known() -> None:
    disk = memory_disk()
    world = World(disk, INDEXED)
    log = world.open()
    send(log, 1)
    log.roll(NOW)
    world.flush(log)
    for sequence in range(1, 6):
        put(log, batch(b"v", producer=(1, 0, sequence), timestamp=NOW + sequence))
    world.flush(log)
    log.active.write_indexes()
    disk.flip(log.active.path(), 16, 5)
    log.advance_start(3)
    world.start_offset = log.start_offset
    log.abandon()
    log = world.open(clean=False)
    assert known(log)[0].last_sequence == 5


def test_a_snapshot_that_is_older_than_the_first_segment_counts_no_more() -> None:
    """A crash came between the removal of the segments and that of their snapshots."""
    world = World(config=CONFIG)
    log = world.open()
    send(log, 1, transactional=True)
    log.roll(NOW)
    world.flush(log)
    put(log, marker(1, 0, aborts=False), origin=Origin.COORDINATOR)
    log.roll(NOW)
    send(log, 2)
    world.flush(log)
    assert snapshots(world) == [1, 2]
    world.disk.remove(world.path(f"{2:020d}.snapshot"))
    for base in (0, 1):
        world.disk.remove(world.path(f"{base:020d}.log"))
    log.abandon()
    log = world.open(clean=False)
    assert log.first_unstable_offset is None
    assert [each.producer_id for each in known(log)] == [2]


def test_a_transaction_of_deleted_records_is_aborted_in_case_that_a_crash_brings_them_back() -> None:
    """The log's start had not been checkpointed."""
    world = World(config=INDEXED)
    log = world.open()
    send(log, 1, transactional=True)
    for sequence in range(4):
        send(log, 2, sequence)
    log.advance_start(3)
    cut_to(log, 4)
    put(log, marker(1, 0, aborts=True), origin=Origin.COORDINATOR)
    send(log, 2, 3)
    send(log, 2, 4)
    world.flush(log)
    log.active.write_indexes()
    log.abandon()
    log = world.open(clean=False)
    assert (log.start_offset, log.recovery_point) == (0, 7)
    assert log.aborted_transactions(0, log.end_offset) == [(1, 0)]
