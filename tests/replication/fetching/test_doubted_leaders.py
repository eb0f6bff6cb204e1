"""Clients are not sent to a leader that hangs up on its followers, until somebody has said whether it is dead."""

from __future__ import annotations

import asyncio

from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world

from ottla.metadata.doubts import DOUBT_S
from ottla.model import NO_BROKER, ErrorCode
from ottla.protocol.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

NAMED = (ErrorCode.NONE, 1)
NOBODY = (ErrorCode.LEADER_NOT_AVAILABLE, -1)


async def shown(world: FetchingWorld, broker: int) -> tuple[int, int]:
    """Who leads, as a client that asks this broker is answered."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TP.topic)])
    answer = await world.client(broker, "asking").ask(request, 12)
    assert isinstance(answer, MetadataResponse)
    (partition,) = answer.topics[0].partitions
    described = await world.client(broker, "asking").ask(
        DescribeTopicPartitionsRequest(topics=[TopicRequest(name=TP.topic)]), 0
    )
    assert isinstance(described, DescribeTopicPartitionsResponse)
    (same,) = described.topics[0].partitions
    assert (same.error_code, same.leader_id) == (partition.error_code, partition.leader_id)
    if partition.leader_id == NO_BROKER:
        # It stays in the list: a client that misses it there drops all that it knows of it.
        assert [each.node_id for each in answer.brokers] == [1, 2, 3]
    return partition.error_code, partition.leader_id


async def led_by_one(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"1")
    await world.settled()
    assert [await shown(world, broker) for broker in (1, 2, 3)] == [NAMED] * 3


@in_world()
async def test_a_leader_that_dies_is_not_named_by_its_followers(world: FetchingWorld) -> None:
    await led_by_one(world)
    world.kill(1)
    await asyncio.sleep(0.02)
    assert [await shown(world, broker) for broker in (2, 3)] == [NOBODY] * 2
    # It refuses connections, and is not named for as long as it does.
    await asyncio.sleep(4 * DOUBT_S)
    assert [await shown(world, broker) for broker in (2, 3)] == [NOBODY] * 2
    await world.lead_one(2, epoch=2, isr=(2, 3))
    assert [await shown(world, broker) for broker in (2, 3)] == [(ErrorCode.NONE, 2)] * 2


@in_world()
async def test_a_leader_that_only_hangs_up_is_named_again_when_it_is_reached(world: FetchingWorld) -> None:
    await led_by_one(world)
    world.simulation.world.fabric.reset("broker1", "broker2")
    await asyncio.sleep(0.02)
    assert await shown(world, 2) == NOBODY
    await asyncio.sleep(0.5)
    assert await shown(world, 2) == NAMED
    await world.produce(b"2")
    await world.settled()


@in_world()
async def test_a_stalled_link_says_nothing_about_a_leader(world: FetchingWorld) -> None:
    await led_by_one(world)
    world.simulation.world.fabric.cut("broker1", "broker2")
    await asyncio.sleep(5)
    assert await shown(world, 2) == NAMED


@in_world()
async def test_a_fetcher_that_hangs_up_itself_doubts_nobody(world: FetchingWorld) -> None:
    await led_by_one(world)
    ((fetcher, _),) = world.fetchers(2).partitions()
    fetcher._hang_up("the test wants it")
    assert await shown(world, 2) == NAMED
