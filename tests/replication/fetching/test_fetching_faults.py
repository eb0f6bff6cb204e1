"""What goes wrong while followers fetch, and how far it reaches: one partition, one answer, one connection."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from random import Random
from typing import Any

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world, run_in_world

from ottla.handlers.fetch.sessions import Sessions
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.fetching import fetcher as fetcher_module
from ottla.replication.fetching.fetcher import Fetcher
from ottla.replication.fetching.partition import FetchedPartition, FetchState
from ottla.replication.follower import Follower
from ottla.testing.sim.wire import Unreachable

BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}
OTHER = TopicPartition("other", 0)


async def two_partitions(world: FetchingWorld) -> None:
    await world.give([world.state(tp, 1, 1, (1, 2, 3)) for tp in (TP, OTHER)])
    for tp in (TP, OTHER):
        await world.produce(b"0", tp=tp)
        await world.settled(tp)


async def the_other_goes_on(world: FetchingWorld) -> None:
    for number in range(5):
        began = world.loop.time()
        await world.produce(b"%d" % number, tp=OTHER)
        assert world.loop.time() - began < 0.2
        await asyncio.sleep(0.3)


@in_world(properties=BUFFERED)
async def test_a_damaged_batch_is_not_appended_said_once_and_fetched_again(world: FetchingWorld) -> None:
    await two_partitions(world)
    world.kill(3)
    log = world.log(1, TP)
    at = log.size
    assert (await world.try_produce(b"sound again later", to=1, acks=1))[0] == ErrorCode.NONE
    file = log.active.file
    sound = file.read(log.size - at, at)
    file.write(sound[:-1] + bytes([sound[-1] ^ 1]), at)
    await world.start(3)
    await world.lead(OTHER, 1, epoch=2, isr=(1, 2, 3))
    await the_other_goes_on(world)
    assert world.log(3, TP).end_offset == 1
    assert len(world.said("what a leader sent is damaged", "t-0")) == 1
    file.write(sound, at)
    await world.settled()
    assert world.bytes_of(3, TP) == world.bytes_of(1, TP)


@in_world(properties=BUFFERED)
async def test_a_fault_of_ours_in_one_partition_does_not_reach_the_others(world: FetchingWorld) -> None:
    await two_partitions(world)
    log = world.log(3, TP)
    broken = [True]
    write = type(log).write_staged

    def fails(self: object) -> None:
        if self is log and broken:
            raise RuntimeError("planted")
        write(self)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(log), "write_staged", fails)
        assert (await world.try_produce(b"1", to=1, acks=1))[0] == ErrorCode.NONE
        await asyncio.sleep(1)
        assert world.fetched(3).state is FetchState.OUT
        assert (log.end_offset, log.next_offset) == (1, 1)
        await the_other_goes_on(world)
        assert len(world.said("cannot be fetched for a fault of the broker")) == 1
        broken.clear()
        await world.lead_one(1, epoch=2, isr=(1, 2))
        await world.settled()


@in_world(properties=BUFFERED)
async def test_a_full_disk_at_a_follower_is_waited_for(world: FetchingWorld) -> None:
    await two_partitions(world)
    disk = world.brokers[3].ports.disk
    disk.capacity_bytes = disk.total_bytes("/data") - disk.free_bytes("/data")
    assert (await world.try_produce(b"x" * 10_000, to=1, acks=1))[0] == ErrorCode.NONE
    await asyncio.sleep(3)
    assert world.log(3, TP).end_offset == 1
    assert world.log(2, TP).end_offset == 2
    disk.capacity_bytes = 1 << 40
    await world.settled()
    assert len(world.logs()) == 1


@in_world(properties={**BUFFERED, "log.dirs": "/data/a,/data/b"})
async def test_a_directory_that_fails_takes_its_partitions_out_and_no_others(world: FetchingWorld) -> None:
    partitions = [TopicPartition("t", number) for number in range(4)]
    await world.give([world.state(tp, 1, 1, (1, 2, 3)) for tp in partitions])
    for tp in partitions:
        await world.produce(b"0", tp=tp)
        await world.settled(tp)
    life = world.brokers[3].broker
    assert life is not None
    assert life.services is not None
    directories = life.services.replicas.directories
    held = {tp: directories.directory_of(tp) for tp in partitions}
    failed = held[partitions[0]]
    world.brokers[3].ports.disk.fail("append", f"{failed}/*", errno.EIO)
    for tp in partitions:
        assert (await world.try_produce(b"1", to=1, acks=1, tp=tp))[0] == ErrorCode.NONE
    await asyncio.sleep(2)
    gone = {tp for tp in partitions if held[tp] == failed}
    assert {one.tp for _, one in world.fetchers(3).partitions()} == set(partitions) - gone
    for tp in set(partitions) - gone:
        assert world.log(3, tp).end_offset == 2


@in_world(properties=BUFFERED)
async def test_a_leader_that_forgot_the_session_is_asked_in_full(world: FetchingWorld) -> None:
    await two_partitions(world)
    resume = Sessions.resume
    forgets = [False]

    def forgetting(self: Sessions, session_id: int, epoch: int, **named: Any) -> Any:
        if forgets[0]:
            self.close(session_id)
        return resume(self, session_id, epoch, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sessions, "resume", forgetting)
        for number in range(5):
            forgets[0] = True
            waits = asyncio.ensure_future(world.produce(b"%d" % number))
            await asyncio.sleep(0.01)
            forgets[0] = False
            began = world.loop.time()
            await waits
            assert world.loop.time() - began < 1.2
            await world.settled()


@in_world(properties=BUFFERED)
async def test_an_answer_that_is_none_ends_the_connection_and_nothing_else(world: FetchingWorld) -> None:
    await two_partitions(world)
    take = Fetcher._take
    broken = [True]

    def bad(self: Fetcher, frame: memoryview) -> None:
        if broken and self.leader == 1:
            broken.clear()
            frame = memoryview(bytes(frame[:9]) + b"\xff" * 40)
        take(self, frame)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fetcher, "_take", bad)
        for number in range(3):
            await world.produce(b"%d" % number)
    await world.settled()
    assert len(world.logs()) == 1


@in_world(properties=BUFFERED)
async def test_a_partition_has_one_fetcher(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    follower = world.follower(2, TP)
    with pytest.raises(AssertionError, match="fetched already"):
        world.fetchers(2).became_follower(follower)
    fetcher = next(iter(world.fetchers(2).partitions()))[0]
    with pytest.raises(AssertionError, match="fetched twice"):
        fetcher.add(FetchedPartition(follower))


@in_world(properties=BUFFERED)
async def test_what_was_asked_in_a_former_role_is_not_appended(world: FetchingWorld) -> None:
    """An answer that was on its way when the role changed: its batches are of a leader that leads no more."""
    world.simulation.world.fabric.latency(50, 50)
    await world.lead_one(1, epoch=1)
    await world.produce(b"0")
    await world.settled()
    assert (await world.try_produce(b"on its way", to=1, acks=1))[0] == ErrorCode.NONE
    appended: list[int] = []
    append = Follower.append

    def noted(self: Follower, *arguments: object) -> None:
        appended.append(self.epoch)
        assert self.active
        append(self, *arguments)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Follower, "append", noted)
        await world.lead_one(3, epoch=2, isr=(2, 3), to=(2, 3))
        await asyncio.sleep(1)
    assert set(appended) <= {2}
    await world.lead_one(3, epoch=3, isr=(2, 3))
    await world.settled()
    assert len(world.logs()) == 1


@pytest.mark.parametrize("news", ["watermark", "log start"])
def test_what_an_answer_to_a_former_role_said_is_said_again(news: str) -> None:
    """It is not taken over; the leader takes it for told, and would say it again with the next records only."""
    held: list[tuple[Fetcher, bytes]] = []
    is_held = [news == "watermark"]
    answered = Fetcher._answered

    def holding(self: Fetcher, frame: bytes | memoryview) -> None:
        assert self._requests is not None
        rows = list(self._requests.read(memoryview(frame))[2])
        if is_held[0] and rows and not any(len(row.records) for row in rows):
            is_held[0] = False
            held.append((self, bytes(frame)))
        else:
            answered(self, frame)

    async def scenario(world: FetchingWorld) -> None:
        await world.lead_one(1, epoch=1)
        await world.produce(b"a", b"b")
        if news == "log start":
            await world.settled()
            is_held[0] = True
            world.log(1, TP).advance_start(1)
        await world.until(lambda: bool(held))
        await world.lead_one(1, epoch=2)
        world.brokers[2].process.context().run(answered, *held[0])
        await world.settled()
        assert world.high_watermarks() == {1: 2, 2: 2}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fetcher, "_answered", holding)
        run_in_world(scenario, brokers=2, properties=BUFFERED)


@pytest.mark.parametrize("seed", range(3))
def test_leaders_that_do_not_know_diverging_epochs(seed: int) -> None:
    """Kafka before 2.7: logs that parted are cut by what OffsetForLeaderEpoch says."""

    async def scenario(world: FetchingWorld) -> None:
        await world.lead_one(1, epoch=1)
        await world.produce(b"0")
        await world.settled()
        for each in (1, 2, 3):
            world.kill(each)
        for epoch in range(2, 8):
            leader = 1 if epoch % 2 == 0 else 2
            await world.start(leader)
            await world.lead_one(leader, epoch=epoch, isr=(leader,))
            values = [b"%d in %d" % (leader, epoch)] * (1 + epoch % 2)
            assert (await world.try_produce(*values, to=leader, acks=1))[0] == ErrorCode.NONE
            world.kill(leader)
        await world.start(1, 2, 3)
        await world.lead_one(2, epoch=8, isr=(2,))
        await world.settled()
        assert world.values(1) == [b"0", *(b"2 in %d" % epoch for epoch in (3, 3, 5, 5, 7, 7))]
        await world.lead_one(2, epoch=9, isr=(1, 2, 3))
        for number in range(5):
            await world.produce(b"%d" % number)
        await world.settled()
        assert len(world.logs()) == 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetcher_module, "NEWEST", Random(seed).randrange(7, 12))
        run_in_world(scenario, seed=seed)


@pytest.mark.parametrize("newest", range(12, 19))
def test_each_version_of_fetch(newest: int) -> None:
    async def scenario(world: FetchingWorld) -> None:
        await world.lead_one(1, epoch=1)
        for number in range(5):
            await world.produce(b"%d" % number)
        await world.settled()
        assert len(world.logs()) == 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetcher_module, "NEWEST", newest)
        run_in_world(scenario, properties=BUFFERED)


@pytest.mark.parametrize("seed", range(6))
def test_random_leaders_and_faults_end_in_equal_logs(seed: int) -> None:
    """Brokers die, links break, leaders change, records are written with acks=1; then all heals."""

    async def scenario(world: FetchingWorld) -> None:
        random, fabric = Random(seed), world.simulation.world.fabric
        fabric.latency(0, 20)
        fabric.chop = True
        await world.lead_one(1, epoch=1)
        committed: list[bytes] = []
        for epoch in range(2, 26):
            for number in range(random.randrange(4)):
                value = b"%d in %d" % (number, epoch)
                leader = world.states[TP].leader
                if leader not in world.alive:
                    continue
                with contextlib.suppress(Unreachable):  # on a connection from before the broker died
                    if (await world.try_produce(value, to=leader, acks=1))[0] == ErrorCode.NONE:
                        committed.append(value)
            chance = random.random()
            names = [world.brokers[each].name for each in random.sample((1, 2, 3), 2)]
            if chance < 0.3 and len(world.alive) == 3:
                world.kill(random.choice(world.alive))
            elif chance < 0.5:
                fabric.reset(*names)
            elif chance < 0.7:
                fabric.cut(*names)
            else:
                fabric.heal()
                dead = [each for each in world.brokers if each not in world.alive]
                if dead:
                    await world.start(*dead)
            leader = random.choice(world.alive)
            to = random.sample(world.alive, random.randrange(1, 1 + len(world.alive)))
            await world.lead_one(leader, epoch=epoch, isr=(leader,), to={leader, *to})
            await asyncio.sleep(random.choice((0, 0.05, 0.3)))
        fabric.heal()
        dead = [each for each in world.brokers if each not in world.alive]
        if dead:
            await world.start(*dead)
        await world.lead_one(2, epoch=99, isr=(2,))
        await world.settled()
        assert len(world.logs()) == 1
        assert committed

    run_in_world(scenario, seed=seed, properties=BUFFERED if seed % 2 else None)
