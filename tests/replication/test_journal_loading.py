"""A coordinator that loads a log of which nothing is in memory, while that changes: it has all of it, or is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.replication.journal_world import CONFIG, DIRECTORIES, NOW, TP, JournalWorld

from ottla.coordinators.journal import TransactionalProducer
from ottla.model import ErrorCode
from ottla.records.batch import parse_header
from ottla.replication.journal_pieces import read_producers
from ottla.steps import done_at_once
from ottla.storage.errors import CorruptLog
from ottla.storage.log.cold_reads import lacks_producers

BATCHES = 9
#: Of the workers: what is asked of them first ends behind all that happens meanwhile.
SOON_MS, LATE_MS = (10.0, 10.0), (1_000.0, 1_000.0)


def cold(*, producer: TransactionalProducer | None = None) -> JournalWorld:
    """A few segments that nobody has read."""
    world = JournalWorld(CONFIG._replace(segment_bytes=2_000, max_message_bytes=1_000))
    for number in range(BATCHES):
        with world.round():
            records = [(b"k%d" % number, bytes(600))]
            assert world.journal.write(records, NOW, lambda _: None, producer=producer) == ErrorCode.NONE
    return world.next_life()


def cold_places() -> JournalWorld:
    world = cold()
    world.run(read_producers(world.leader.log, world.ports.workers))
    assert world.leader.log.is_far(0, BATCHES)
    return world


async def move(world: JournalWorld) -> None:
    directories = world.replicas.directories
    target = next(path for path in DIRECTORIES if path != directories.directory_of(TP))
    before = world.leader
    done_at_once(world.replicas.moves.starting(TP, target))
    for _ in range(1_000):
        if not directories.moves:
            break
        await asyncio.sleep(0.001)
    assert world.leader is not before


async def offsets(world: JournalWorld) -> list[int]:
    return [parse_header(piece).base_offset async for piece in world.journal.replay()]


def replayed_while(world: JournalWorld, change: Callable[[JournalWorld], Awaitable[None]]) -> list[int]:
    """The offsets that come where all this happens during the first read of a worker."""

    async def work() -> list[int]:
        workers = world.ports.workers
        workers.latency_ms = LATE_MS
        replay = asyncio.ensure_future(offsets(world))
        await asyncio.sleep(0)
        workers.latency_ms = SOON_MS
        await change(world)
        assert not replay.done()
        return await replay

    world.settings = world.settings._replace(load_bytes_max=500)
    return world.run(work())


def test_a_log_that_moves_while_a_place_in_it_is_read_is_loaded_from_its_new_directory() -> None:
    world = cold_places()
    assert replayed_while(world, move) == list(range(BATCHES))


def test_so_is_one_that_moves_while_its_producers_are_read() -> None:
    world = cold(producer=TransactionalProducer(7, 3))
    assert lacks_producers(world.leader.log)
    assert replayed_while(world, move) == list(range(BATCHES))
    assert not lacks_producers(world.leader.log)


def test_one_whose_start_passes_the_place_that_is_read_is_loaded_from_there() -> None:
    async def delete(world: JournalWorld) -> None:
        world.leader.log.advance_start(4)

    assert replayed_while(cold_places(), delete) == list(range(4, BATCHES))


def test_one_that_is_emptied_meanwhile_has_nothing_to_load() -> None:
    async def delete(world: JournalWorld) -> None:
        world.leader.log.advance_start(BATCHES)

    assert replayed_while(cold_places(), delete) == []


@pytest.mark.parametrize("end", [0, 1])
def test_one_that_loses_its_end_is_not_taken_for_loaded(end: int) -> None:
    """No role of ours does that: what has lost its end is damaged."""

    async def cut(world: JournalWorld) -> None:
        done_at_once(world.leader.log.cutting_to(end))

    with pytest.raises(CorruptLog):
        replayed_while(cold_places(), cut)


def test_a_role_that_is_lost_meanwhile_ends_the_load() -> None:
    async def resign(world: JournalWorld) -> None:
        world.lead(epoch=1, replicas=(1, 2), leader=2)

    assert replayed_while(cold_places(), resign) == []


def test_one_whose_file_has_lost_its_end_is_not_taken_for_loaded() -> None:
    world = cold()
    assert world.run(offsets(world)) == [0, 2, 4, 6, 8]
    world.ports.disk.open(f"{world.leader.log.directory}/{0:020}.log").truncate(0)
    with pytest.raises(CorruptLog):
        world.run(offsets(world))
