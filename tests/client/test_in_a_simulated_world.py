"""Client and broker in one virtual world: no socket, no thread, and time that passes only when all wait for it.

What they do then depends on the seed alone, which is what a simulation of a whole cluster rests on.
"""

from __future__ import annotations

import asyncio

import pytest

from ottla.broker.broker import Broker
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import DeliveryTimedOut
from ottla.client.producing.producer import Producer
from ottla.config import Config
from ottla.model import TopicPartition
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

PORT = 9092


def simulate(seed: int, count: int = 200) -> list[tuple[int, bytes, int]]:
    """Offsets, values and times of what is read, while connections break and everything takes its time."""
    world = World(seed)
    world.fabric.latency(1, 20)
    world.fabric.chop = True
    server, here = world.machine("server"), world.machine("client")
    properties = {"listeners": f"PLAINTEXT://server:{PORT}", "log.dirs": "/data", "auto.create.topics.enable": "true"}
    broker = Broker(Config.parse(properties), server)

    async def run() -> list[tuple[int, bytes, int]]:
        await broker.start()
        deliveries = []
        async with Producer(bootstrap_servers=f"server:{PORT}", world=here, batch_size=300) as producer:
            for n in range(count):
                deliveries.append(await producer.send("t", b"%d" % n))
                await asyncio.sleep(0.01)
                if n % 50 == 25:
                    world.fabric.reset("client", "server")
                if n == 120:
                    world.fabric.cut("client", "server")
                    world.loop.call_later(5, world.fabric.heal)
            for delivery in deliveries:
                await delivery
        records = []
        settings = {"auto_offset_reset": "earliest", "bootstrap_servers": f"server:{PORT}"}
        async with Consumer(settings, world=here) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            while len(records) < count:
                records += await consumer.poll()
                world.fabric.reset("client", "server")
        await broker.stop()
        return [(record.offset, record.value, record.timestamp) for record in records]

    try:
        return world.loop.run_until_complete(run())
    finally:
        cancel_all(world.loop)
        world.loop.close()


@pytest.mark.parametrize("seed", range(3))
def test_once_and_in_order_through_resets_and_a_cut(seed: int) -> None:
    read = simulate(seed)
    assert [(offset, value) for offset, value, _ in read] == [(n, b"%d" % n) for n in range(200)]


def test_the_same_seed_gives_the_same_times() -> None:
    assert simulate(7, 60) == simulate(7, 60)


def test_a_cut_that_does_not_heal_ends_at_the_delivery_time_out() -> None:
    world = World(1)
    server, here = world.machine("server"), world.machine("client")
    broker = Broker(Config.parse({"listeners": f"PLAINTEXT://server:{PORT}", "log.dirs": "/data"}), server)

    async def run() -> int:
        await broker.start()
        producer = Producer(bootstrap_servers=f"server:{PORT}", world=here)
        await producer.send_and_wait("t", b"before")
        world.fabric.cut("client", "server")
        began_ms = here.clock.monotonic_ms()
        delivery = await producer.send("t", b"lost")
        with pytest.raises(DeliveryTimedOut):
            await delivery
        took_ms = here.clock.monotonic_ms() - began_ms
        world.fabric.heal()
        assert (await producer.send_and_wait("t", b"after")).offset in {1, 2}
        await producer.close()
        await broker.stop()
        return took_ms

    try:
        assert world.loop.run_until_complete(run()) == 120_000
    finally:
        cancel_all(world.loop)
        world.loop.close()
