"""A group in virtual time: members that crash, sleep and are cut off, and a whole life that a seed repeats."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from ottla.broker.broker import Broker
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import CommitFailed
from ottla.client.producing.producer import Producer
from ottla.config import Config
from ottla.model import TopicPartition
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all
from tests.searches import seeds

PORT = 9092
PARTITIONS = 6
PROPERTIES = {
    "listeners": f"PLAINTEXT://server:{PORT}",
    "log.dirs": "/data",
    "num.partitions": str(PARTITIONS),
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}

Result = TypeVar("Result")


def simulate(seed: int, story: Callable[[World], Awaitable[Result]]) -> Result:
    world = World(seed)
    world.fabric.latency(1, 20)
    broker = Broker(Config.parse(PROPERTIES), world.machine("server"))

    async def whole() -> Result:
        await broker.start()
        try:
            return await story(world)
        finally:
            await broker.stop()

    try:
        return world.loop.run_until_complete(whole())
    finally:
        cancel_all(world.loop)
        world.loop.close()


def consumer(world: World, machine: str, **settings: Any) -> Consumer:
    here = world.machine(machine)
    told = {"bootstrap_servers": f"server:{PORT}", "group_id": "g", "auto_offset_reset": "earliest", **settings}
    return Consumer(told, world=here)


async def write(world: World, count: int) -> None:
    async with Producer(bootstrap_servers=f"server:{PORT}", world=world.machine("writer")) as producer:
        for n in range(count):
            await producer.send("t", b"%d" % n, partition=n % PARTITIONS)


async def ticking(one: Consumer, seconds: float) -> list[bytes]:
    """Polls for so long; what came."""
    values: list[bytes] = []
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 0:
        values += [record.value for record in await one.poll(timeout_ms=max(1, round(left * 1000)))]
    return values


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_crash_costs_a_session_and_no_record(strategy: str) -> None:
    async def story(world: World) -> tuple[set[bytes], int]:
        await write(world, 60)
        first = consumer(world, "one", partition_assignment_strategy=strategy)
        second = consumer(world, "two", partition_assignment_strategy=strategy)
        first.subscribe(["t"])
        second.subscribe(["t"])
        seen = await asyncio.gather(ticking(first, 20), ticking(second, 20))
        assert {len(first.assignment()), len(second.assignment())} == {3}
        world.fabric.cut("two", "server")
        began_ms = world.machine("one").clock.monotonic_ms()
        while len(first.assignment()) < PARTITIONS:
            await first.poll(timeout_ms=100)
        took_ms = world.machine("one").clock.monotonic_ms() - began_ms
        world.fabric.heal()
        await write(world, 12)
        more = await asyncio.gather(ticking(first, 60), ticking(second, 60))
        assert {len(first.assignment()), len(second.assignment())} == {3}
        await first.close()
        await second.close()
        return {value for some in [*seen, *more] for value in some}, took_ms

    values, took_ms = simulate(1, story)
    assert values == {b"%d" % n for n in range(60)}
    assert 40_000 < took_ms < 52_000


def test_five_minutes_without_a_poll() -> None:
    """With Kafka's own settings: the sleeper's partitions go to the other, and its commit is refused."""

    async def story(world: World) -> None:
        await write(world, 60)
        sleeper, other = consumer(world, "one", enable_auto_commit=False), consumer(world, "two")
        sleeper.subscribe(["t"])
        other.subscribe(["t"])
        await asyncio.gather(ticking(sleeper, 20), ticking(other, 20))
        assert len(other.assignment()) == 3
        await ticking(other, 290)
        assert len(other.assignment()) == 3
        await ticking(other, 20)
        assert len(other.assignment()) == PARTITIONS
        with pytest.raises(CommitFailed, match=r"max\.poll\.interval\.ms \(300000 ms\)"):
            await sleeper.commit()
        await asyncio.gather(ticking(sleeper, 10), ticking(other, 10))
        assert (len(sleeper.assignment()), len(other.assignment())) == (3, 3)
        await sleeper.commit()
        await sleeper.close()
        await other.close()

    simulate(2, story)


class Ledger:
    """Who holds what, by what members are told: two of them must never hold the same, except what one has lost."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str, str, int]] = []
        self.holders: dict[TopicPartition, str] = {}
        self.conflicts: list[tuple[str, str, TopicPartition]] = []

    def note(self, name: str, what: str, partitions: Sequence[TopicPartition]) -> None:
        self.told.append((asyncio.get_running_loop().time(), name, what, len(partitions)))
        for tp in partitions:
            if what != "assigned":
                if self.holders.get(tp) == name:
                    del self.holders[tp]
            elif tp in self.holders:
                self.conflicts.append((self.holders[tp], name, tp))
            else:
                self.holders[tp] = name


class Holder:
    def __init__(self, ledger: Ledger, name: str) -> None:
        self.ledger = ledger
        self.name = name

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.ledger.note(self.name, "assigned", partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.ledger.note(self.name, "revoked", partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.ledger.note(self.name, "lost", partitions)


def lived(seed: int, strategy: str) -> Ledger:
    """Members come and go, sleep now and then, and their connections break; records are written all the time."""

    async def story(world: World) -> Ledger:
        ledger = Ledger()
        loop = asyncio.get_running_loop()
        chance = random.Random(seed)
        seen: set[bytes] = set()
        ended = False

        async def life(name: str) -> None:
            one = consumer(world, name, partition_assignment_strategy=strategy, max_poll_records=chance.randint(1, 20))
            one.subscribe(["t"], listener=Holder(ledger, name))
            for _ in range(chance.randint(3, 8)):
                seen.update(await ticking(one, chance.uniform(0.1, 15)))
                await asyncio.sleep(chance.choice((0, 0, 1, 20)))
            await one.close()

        async def lives(name: str) -> None:
            while not ended:
                await asyncio.sleep(chance.uniform(0, 20))
                await life(name)

        async def breaks() -> None:
            while not ended:
                await asyncio.sleep(chance.uniform(1, 20))
                world.fabric.reset(chance.choice("abc"), "server")

        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(lives(name))
            group.create_task(breaks())
            for _ in range(10):
                await write(world, 60)
                await asyncio.sleep(20)
            ended = True
        last = consumer(world, "last")
        last.subscribe(["t"], listener=Holder(ledger, "last"))
        seen.update(await ticking(last, 60))
        ends = await last.end_offsets(last.assignment())
        assert {tp: await last.position(tp) for tp in last.assignment()} == ends
        await last.close()
        assert sum(ends.values()) == 600
        assert seen == {b"%d" % n for n in range(60)}
        assert not ledger.holders
        assert loop.time() > 0
        return ledger

    return simulate(seed, story)


@pytest.mark.parametrize("strategy", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("seed", seeds(2, 4))
def test_no_partition_has_two_holders(seed: int, strategy: str) -> None:
    ledger = lived(seed, strategy)
    assert not ledger.conflicts
    assert len(ledger.told) > 20


def test_a_seed_repeats_a_groups_life() -> None:
    once = lived(5, "cooperative-sticky").told
    assert once == lived(5, "cooperative-sticky").told
    assert once != lived(6, "cooperative-sticky").told


def test_one_that_became_a_member_after_nobody_polled_any_more() -> None:
    """It leaves as any other does, though the interval had passed once before it was one."""

    async def story(world: World) -> None:
        one = consumer(world, "one", max_poll_interval_ms=10_000)
        world.fabric.cut("one", "server")
        one.subscribe(["t"])
        await one.poll(timeout_ms=10)
        await asyncio.sleep(15)
        world.fabric.heal()
        await asyncio.sleep(30)
        assert one.group_metadata().member_id
        assert not one.is_member
        await one.close()

    simulate(1, story)
