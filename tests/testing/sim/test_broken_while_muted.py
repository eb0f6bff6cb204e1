"""A connection that is reset while its requests wait and nothing more is received of it."""

from __future__ import annotations

import asyncio

from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.metadata import MetadataRequest


async def scenario(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create() == ErrorCode.NONE
    wire = await one.client.connected()
    asked = FetchPartition(partition=TP.partition, fetch_offset=0, partition_max_bytes=1000)
    waits = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=[FetchTopic(topic=TP.topic, partitions=[asked])]
    )
    for _ in range(8):
        wire.send(waits, 12)
        wire.send(MetadataRequest(topics=[]), 12)
    await asyncio.sleep(1)
    turns = one.simulation.loop.turns
    one.simulation.world.fabric.reset("clients", "broker")
    await asyncio.sleep(5)
    assert one.simulation.loop.turns - turns < 1000
    assert one.broker.broker is not None
    assert one.broker.broker.connection_count == 0


def test_a_reset_is_seen_though_nothing_more_is_received_of_the_connection() -> None:
    with OneBroker() as one:
        one.run(scenario(one))
