"""A client sends its last five batches again after a start: each is known, though a snapshot holds only one of them."""

from __future__ import annotations

import errno

import pytest
from tests.storage.log_world import NOW, World, batch, put

from ottla.model import ErrorCode
from ottla.ports.memory.disk import MemoryDisk
from ottla.storage.errors import AppendRefused, StorageFault
from ottla.storage.log.log import Log


def filled(world: World, producers: int, batches: int, size: int = 100) -> Log:
    """`batches` of two records each from every producer, taking turns."""
    log = world.open()
    for number in range(batches):
        for producer in range(producers):
            put(log, batch(b"x" * size, b"y", producer=(producer, 0, 2 * number)))
    return log


def again(log: Log, producer: int, number: int, size: int = 100) -> int:
    """Sends a batch a second time; its first offset."""
    appended = log.stage(batch(b"x" * size, b"y", producer=(producer, 0, 2 * number)), leader_epoch=0, now_ms=NOW)
    assert appended.duplicate
    return appended.first_offset


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("producers", [1, 3])
def test_five_batches_are_known_after_a_start(clean: bool, producers: int) -> None:
    world = World()
    log = filled(world, producers, batches=12)
    assert len(log.segments) > 1, "snapshots in the middle are what this is about"
    if clean:
        world.close(log)
    else:
        world.flush(log)
        log.abandon()
    log = world.open(clean=clean)
    for producer in range(producers):
        for number in range(7, 12):
            assert again(log, producer, number) == 2 * (number * producers + producer)
        with pytest.raises(AppendRefused) as refused:
            again(log, producer, 6)
        assert refused.value.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_with_a_new_epoch_is_not_given_the_batches_of_the_old_one() -> None:
    world = World()
    log = filled(world, 1, batches=3)
    put(log, batch(b"z", producer=(0, 1, 0)))
    put(log, batch(b"z", producer=(0, 1, 1)))
    world.close(log)
    log = world.open()
    assert log.stage(batch(b"z", producer=(0, 1, 0)), leader_epoch=0, now_ms=NOW).duplicate
    with pytest.raises(AppendRefused) as refused:
        again(log, 0, 2)
    assert refused.value.error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_damage_before_the_snapshot_does_not_keep_a_producer_from_going_on() -> None:
    world = World()
    world.close(filled(world, 1, batches=12))
    log = world.open()
    first = log.segments[0].path()
    log.abandon()
    assert isinstance(world.disk, MemoryDisk)
    world.disk.flip(first, 16)
    log = world.open()
    assert put(log, batch(b"next", producer=(0, 0, 24))).first_offset == 24
    assert again(log, 0, 11) == 22


def test_the_beginning_that_had_no_room_must_come_before_what_follows_it() -> None:
    world = World()
    log = world.open()
    assert isinstance(world.disk, MemoryDisk)
    world.disk.fail("append", "*.log", errno.ENOSPC, times=1)
    with pytest.raises(StorageFault):
        put(log, batch(b"0", producer=(7, 0, 0)))
    with pytest.raises(AppendRefused) as refused:
        put(log, batch(b"1", producer=(7, 0, 1)))
    assert refused.value.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # Another epoch, or another producer, begins where it likes, as ever.
    assert put(log, batch(b"5", producer=(8, 0, 5))).first_offset == 0
    assert put(log, batch(b"0", producer=(7, 0, 0))).first_offset == 1
    assert put(log, batch(b"1", producer=(7, 0, 1))).first_offset == 2
