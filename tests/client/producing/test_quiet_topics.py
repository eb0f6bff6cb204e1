"""Topics that no record goes to for a while, and what the metadata keeps of them: in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.broker.broker import Broker
from ottla.client.admin.admin import Admin
from ottla.client.errors import KafkaError, UnknownTopicOrPartition
from ottla.client.producing.producer import Producer
from ottla.client.wire.metadata import Topic
from ottla.client.wire.world import ClientPorts
from ottla.config import Config
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

PORT = 9092


def simulate(run: Callable[[ClientPorts], Awaitable[None]], **properties: str) -> None:
    """Has `run` use a broker from another machine."""
    world = World(1)
    server, here = world.machine("server"), world.machine("client")
    given = {name.replace("_", "."): value for name, value in properties.items()}
    broker = Broker(Config.parse({"listeners": f"PLAINTEXT://server:{PORT}", "log.dirs": "/data", **given}), server)

    async def whole() -> None:
        await broker.start()
        await run(here)
        await broker.stop()

    try:
        world.loop.run_until_complete(whole())
    finally:
        cancel_all(world.loop)
        world.loop.close()


def producing(here: ClientPorts) -> Producer:
    return Producer(
        bootstrap_servers=f"server:{PORT}", world=here, metadata_max_idle_ms=5_000, metadata_max_age_ms=2_000
    )


def test_a_topic_is_written_to_again_when_it_has_just_been_forgotten() -> None:
    async def run(here: ClientPorts) -> None:
        async with producing(here) as producer:
            await producer.send_and_wait("t", b"first")
            while producer._routes.known:  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.01)
            for _ in range(20):  # over several rounds of metadata
                await producer.send_and_wait("t", b"again")
                await asyncio.sleep(0.5)

    simulate(run)


def test_a_record_that_waited_for_room_goes_to_a_topic_that_was_forgotten_meanwhile() -> None:
    async def run(here: ClientPorts) -> None:
        settings = {"buffer_memory": 40_000, "metadata_max_idle_ms": 5_000, "metadata_max_age_ms": 2_000}
        async with Producer(settings, bootstrap_servers=f"server:{PORT}", world=here) as producer:
            await producer.send_and_wait("quiet", b"first")
            await producer.send_and_wait("busy", b"first")
            cluster = producer.cluster

            def without_leaders() -> None:
                topics = {name: leaderless(topic) for name, topic in cluster.metadata.topics.items()}
                cluster.metadata = cluster.metadata._replace(topics=topics)

            without_leaders()
            cluster.on_change.insert(0, without_leaders)
            for _ in range(3):
                await producer.send("busy", bytes(12_000))
            waits = [
                asyncio.create_task(producer.send("quiet", bytes(12_000), partition=0)),
                asyncio.create_task(producer.enter(producer.checked("quiet", bytes(12_000), None, 0, None, ()))),
            ]
            while "quiet" in cluster.wanted:  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.1)
            cluster.on_change.remove(without_leaders)
            deliveries = await asyncio.gather(*waits)
            assert [(await one).offset for one in deliveries] == [1, 2]

    simulate(run)


def test_a_topic_whose_batches_wait_for_a_leader_is_not_forgotten() -> None:
    async def run(here: ClientPorts) -> None:
        async with producing(here) as producer:
            await producer.send_and_wait("t", b"first")
            cluster = producer.cluster

            def without_leaders() -> None:
                topics = {name: leaderless(topic) for name, topic in cluster.metadata.topics.items()}
                cluster.metadata = cluster.metadata._replace(topics=topics)

            without_leaders()
            cluster.on_change.insert(0, without_leaders)
            delivery = await producer.send("t", b"second")
            await asyncio.sleep(30)
            cluster.on_change.remove(without_leaders)
            assert (await delivery).offset == 1

    simulate(run)


def leaderless(topic: Topic) -> Topic:
    return topic._replace(partitions=tuple(one._replace(leader=-1) for one in topic.partitions))


def test_a_topic_that_is_not_there_is_not_asked_for_any_more_when_nobody_waits_for_it() -> None:
    async def run(here: ClientPorts) -> None:
        async with Producer(bootstrap_servers=f"server:{PORT}", world=here, max_block_ms=100) as producer:

            async def missing(number: int) -> None:
                with pytest.raises(KafkaError):
                    await producer.send(f"missing-{number}", b"x")

            await asyncio.gather(*(missing(number % 40) for number in range(50)))
            assert producer.cluster.wanted == []

    simulate(run, auto_create_topics_enable="false")


def test_a_topic_that_lacks_the_partition_is_forgotten_like_any_other() -> None:
    """Kept for ever, it would be made anew when somebody has deleted it."""

    async def run(here: ClientPorts) -> None:
        async with producing(here) as producer, Admin(bootstrap_servers=f"server:{PORT}", world=here) as admin:
            await admin.create_topic("t", 1)
            with pytest.raises(UnknownTopicOrPartition):
                await producer.send("t", b"x", partition=99)
            await asyncio.sleep(20)
            assert producer.cluster.wanted == []
            await admin.delete_topic("t")
            await asyncio.sleep(20)
            assert await admin.list_topics() == []

    simulate(run)


def test_one_that_gives_up_leaves_the_topic_to_another_that_waits() -> None:
    async def run(here: ClientPorts) -> None:
        async with producing(here) as producer:
            cluster = producer.cluster
            cluster.auto_create = False
            patient = asyncio.create_task(cluster.topic("later", 60_000))
            with pytest.raises(KafkaError):
                await cluster.topic("later", 500)
            cluster.auto_create = True
            assert (await patient).name == "later"
            assert cluster.wanted == ["later"]

    simulate(run)
