"""What the properties of followers' fetches govern: how long one is kept, for how much, what an answer may bring, and
how long a leader that answers with an error, or not at all, is left alone."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world, run_in_world

from ottla.model import ErrorCode, TopicPartition
from ottla.replication.fetching.fetcher import Fetcher
from ottla.replication.follower import Follower
from ottla.storage.errors import AppendRefused
from ottla.storage.log.log import Log

BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}
IDLE_S = 10.0
RECORD = 10_000
#: What a batch has around one record, and an answer around its batches.
AROUND = 1_000


def fetcher(world: FetchingWorld, broker: int) -> Fetcher:
    """Its only one."""
    (found,) = {one for one, _ in world.fetchers(broker).partitions()}
    return found


async def asked_anew(world: FetchingWorld, broker: int) -> None:
    """Until a request has just left."""
    before = fetcher(world, broker).rate.total
    await world.until(lambda: fetcher(world, broker).rate.total > before)


async def followed(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a", acks=1)
    await world.settled()


# How long, and for how much


@pytest.mark.parametrize("wait_ms", [200, 2_000])
def test_a_fetch_that_nothing_comes_for_is_kept_for_as_long_as_is_said(wait_ms: int) -> None:
    async def scenario(world: FetchingWorld) -> None:
        await followed(world)
        await asked_anew(world, 2)
        before = fetcher(world, 2).rate.total
        await asyncio.sleep(IDLE_S)
        assert abs(fetcher(world, 2).rate.total - before - 1_000 * IDLE_S / wait_ms) <= 1

    run_in_world(scenario, properties={**BUFFERED, "replica.fetch.wait.max.ms": str(wait_ms)})


@in_world(properties={**BUFFERED, "replica.fetch.min.bytes": "5000", "replica.fetch.wait.max.ms": "2000"})
async def test_a_fetch_waits_for_as_many_bytes_as_are_said(world: FetchingWorld) -> None:
    await followed(world)
    for size, took_s in ((100, 2.0), (6_000, 0.0)):
        await asked_anew(world, 2)
        began, end = world.loop.time(), world.log(2, TP).end_offset
        assert (await world.try_produce(b"x" * size, to=1, acks=1))[0] == ErrorCode.NONE
        await world.until(lambda end=end: world.log(2, TP).end_offset > end)  # type: ignore[misc]
        assert abs(world.loop.time() - began - took_s) < 0.1


# How much an answer brings


async def catching_up(world: FetchingWorld, partitions: list[TopicPartition], records: int) -> list[int]:
    """The sizes of all answers that broker 3 got until it had what it had missed."""
    await world.give([world.state(tp, 1, 1, (1, 2), replicas=(1, 2, 3)) for tp in partitions])
    for tp in partitions:
        await world.settled(tp)
    world.kill(3)
    for tp in partitions:
        for _ in range(records):
            await world.produce(b"x" * RECORD, tp=tp)
    sizes: list[int] = []
    answered = Fetcher._answered

    def noted(self: Fetcher, frame: bytes | memoryview) -> None:
        if self._around.broker_id == 3:
            sizes.append(len(frame))
        answered(self, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fetcher, "_answered", noted)
        await world.start(3)
        for tp in partitions:
            await world.settled(tp)
    return sizes


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_an_answer_brings_as_much_of_a_partition_as_is_said(batches: int) -> None:
    async def scenario(world: FetchingWorld) -> None:
        sizes = await catching_up(world, [TP], records=20)
        assert batches * RECORD < max(sizes) < batches * RECORD + AROUND
        assert sum(size > RECORD for size in sizes) == 20 // batches

    run_in_world(scenario, properties={**BUFFERED, "replica.fetch.max.bytes": str(batches * (RECORD + 100))})


@pytest.mark.parametrize("batches", [1, 3])
def test_an_answer_brings_as_much_in_all_as_is_said(batches: int) -> None:
    async def scenario(world: FetchingWorld) -> None:
        sizes = await catching_up(world, [TopicPartition("t", number) for number in range(4)], records=5)
        assert batches * RECORD < max(sizes) < batches * RECORD + AROUND

    run_in_world(scenario, properties={**BUFFERED, "replica.fetch.response.max.bytes": str(batches * (RECORD + 100))})


@in_world(properties=BUFFERED)
async def test_what_an_answer_brings_of_a_partition_is_written_at_once(world: FetchingWorld) -> None:
    written: list[Log] = []
    write = Log.write_staged

    def noted(self: Log) -> None:
        written.append(self)
        write(self)

    partitions = [TopicPartition("t", number) for number in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "write_staged", noted)
        sizes = await catching_up(world, partitions, records=20)
    assert sum(size > RECORD for size in sizes) == 1
    for tp in partitions:
        log = world.log(3, tp)
        assert (log.end_offset, sum(one is log for one in written)) == (20, 1)


# Errors and silence


@pytest.mark.parametrize("backoff_ms", [500, 2_500])
def test_behind_an_answer_that_is_not_sound_it_waits_as_long_as_is_said(backoff_ms: int) -> None:
    async def scenario(world: FetchingWorld) -> None:
        await followed(world)
        world.kill(3)
        log = world.log(1, TP)
        at = log.size
        assert (await world.try_produce(b"b", to=1, acks=1))[0] == ErrorCode.NONE
        await world.until(lambda: world.log(2, TP).end_offset == 2)
        byte = log.active.file.read(1, log.size - 1)
        log.active.file.write(bytes([byte[0] ^ 1]), log.size - 1)
        assert log.size > at
        tries: list[float] = []
        append = Follower.append

        def refusing(self: Follower, *arguments: object) -> None:
            try:
                append(self, *arguments)  # type: ignore[arg-type]
            except AppendRefused:
                tries.append(world.loop.time())
                raise

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Follower, "append", refusing)
            await world.start(3)
            await asyncio.sleep(4 * backoff_ms / 1_000)
        assert 3 <= len(tries) <= 5
        pauses = [after - before for before, after in pairwise(tries)]
        assert all(abs(pause - backoff_ms / 1_000) < 0.05 for pause in pauses)

    run_in_world(scenario, properties={**BUFFERED, "replica.fetch.backoff.ms": str(backoff_ms)})


@in_world(brokers=2, properties={**BUFFERED, "replica.socket.timeout.ms": "3000"})
async def test_a_leader_that_does_not_answer_is_left_after_as_long_as_is_said(world: FetchingWorld) -> None:
    await followed(world)
    await asked_anew(world, 2)
    began, link = world.loop.time(), fetcher(world, 2)._link
    world.brokers[1].pause()
    await world.until(lambda: link.connection is None)
    assert abs(world.loop.time() - began - 3.0) < 0.1
    world.brokers[1].wake()
    assert (await world.try_produce(b"b", to=1, acks=1))[0] == ErrorCode.NONE
    await world.settled()
