"""A consumer in virtual time: what is paused, looked for, and committed last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ottla.broker.broker import Broker
from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.client.wire.world import ClientPorts
from ottla.config import Config
from ottla.model import TopicPartition
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

BOOTSTRAP = "server:9092"
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def simulate(run: Callable[[ClientPorts], Awaitable[None]]) -> None:
    """Has `run` use a broker from another machine."""
    world = World(1)
    world.fabric.latency(1, 20)
    properties = {
        "listeners": f"PLAINTEXT://{BOOTSTRAP}",
        "log.dirs": "/data",
        "num.partitions": "2",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }
    broker = Broker(Config.parse(properties), world.machine("server"))

    async def whole() -> None:
        await broker.start()
        await run(world.machine("client"))
        await broker.stop()

    try:
        world.loop.run_until_complete(whole())
    finally:
        cancel_all(world.loop)
        world.loop.close()


async def write(here: ClientPorts) -> None:
    async with Producer(bootstrap_servers=BOOTSTRAP, world=here) as producer:
        for number in range(5):
            for partition in (0, 1):
                await producer.send("t", b"%d" % number, partition=partition)


def test_iteration_gives_nothing_of_what_is_paused() -> None:
    async def run(here: ClientPorts) -> None:
        await write(here)
        async with Consumer(bootstrap_servers=BOOTSTRAP, world=here, auto_offset_reset="earliest") as consumer:
            consumer.assign([ZERO, ONE])
            seen: list[TopicPartition] = []
            async for record in consumer:
                tp = TopicPartition(record.topic, record.partition)
                if not seen:
                    paused = tp
                    consumer.pause(tp)
                seen.append(tp)
                if len(seen) == 6:
                    break
            assert seen == [paused, *[ONE if paused == ZERO else ZERO] * 5]
            assert await consumer.position(paused) == 1
            consumer.resume(paused)
            assert [record.offset for record in await consumer.poll()] == [1, 2, 3, 4]

    simulate(run)


def test_a_topic_that_is_not_there_is_asked_for_less_and_less() -> None:
    async def run(here: ClientPorts) -> None:
        settings = {"auto_offset_reset": "earliest", "allow_auto_create_topics": False}
        async with Consumer(settings, bootstrap_servers=BOOTSTRAP, world=here) as consumer:
            rounds = 0

            def count() -> None:
                nonlocal rounds
                rounds += 1

            consumer.cluster.on_change.append(count)
            consumer.assign([("nowhere", 0)])
            assert await consumer.poll(timeout_ms=10_000) == []
            assert 10 <= rounds < 25

    simulate(run)


def test_a_commit_that_nobody_waited_for_arrives_before_the_end() -> None:
    async def run(here: ClientPorts) -> None:
        await write(here)
        settings = {"group_id": "g", "enable_auto_commit": False}
        for place, end in enumerate((Consumer.close, Consumer.unsubscribe), 1):
            failures: list[object] = []
            first = Consumer(settings, bootstrap_servers=BOOTSTRAP, world=here)
            first.assign([ZERO])
            first.commit_async({ZERO: place}, lambda _, error: failures.append(error))  # noqa: B023 - before the end
            await end(first)
            assert failures == [None]
            async with Consumer(settings, bootstrap_servers=BOOTSTRAP, world=here) as second:
                found = (await second.committed([ZERO]))[ZERO]
            assert found is not None
            assert found.offset == place
            await first.close()

    simulate(run)


def test_an_end_that_was_cancelled_has_not_been() -> None:
    async def run(here: ClientPorts) -> None:
        await write(here)
        settings = {"group_id": "g", "auto_offset_reset": "earliest"}
        async with Consumer(settings, bootstrap_servers=BOOTSTRAP, world=here) as consumer:
            consumer.subscribe(["t"])
            read = {(one.partition, one.offset) for one in await consumer.poll(max_records=1)}
            ending = asyncio.ensure_future(consumer.unsubscribe())
            await asyncio.sleep(0.001)
            ending.cancel()
            await asyncio.wait([ending])
            assert ending.cancelled()
            while len(read) < 10:
                more = await consumer.poll(timeout_ms=30_000)
                assert more
                read |= {(one.partition, one.offset) for one in more}

    simulate(run)


def test_a_topic_whose_partitions_were_asked_for_is_wanted_no_longer() -> None:
    """Each look at the cluster would ask for it, and the first one behind its deletion make it anew."""

    async def run(here: ClientPorts) -> None:
        await write(here)
        async with (
            Admin(bootstrap_servers=BOOTSTRAP, world=here) as admin,
            Consumer(bootstrap_servers=BOOTSTRAP, world=here, metadata_max_age_ms=1_000) as consumer,
        ):
            await admin.create_topic("other", 1)
            consumer.assign([ZERO])
            assert await consumer.partitions_for("other") == [TopicPartition("other", 0)]
            assert await consumer.partitions_for("t") == [ZERO, ONE]
            await admin.delete_topic("other")
            await asyncio.sleep(10)
            assert await admin.list_topics() == ["t"]
            assert consumer.cluster.wanted == ["t"]
            consumer.assign([ONE])  # what was looked at is read on
            assert await consumer.position(ONE) == 5

    simulate(run)


async def test_a_name_that_was_assigned_by_mistake_is_not_asked_for_any_more() -> None:
    async with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([("odrers", 0)])
        consumer.assign([("orders", 0)])
        assert consumer.cluster.wanted == ["orders"]


def test_an_end_waits_for_commits_within_one_time() -> None:
    """Those that nobody waited for, and behind them how far it has come: nothing is heard of the broker any more."""

    async def run(here: ClientPorts) -> None:
        await write(here)
        settings = {"group_id": "g", "auto_offset_reset": "earliest"}
        consumer = Consumer(settings, bootstrap_servers=BOOTSTRAP, world=here)
        consumer.subscribe(["t"])
        while not await consumer.poll():
            pass
        here.network.fabric.cut("client", "server")
        consumer.commit_async()
        before = here.clock.monotonic_ms()
        await consumer.close()
        here.network.fabric.heal()
        leaving_ms = 5_000
        assert here.clock.monotonic_ms() - before <= 30_000 + leaving_ms

    simulate(run)
