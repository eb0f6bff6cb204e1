"""A coordinator is cut off from all but its clients, and replaced: what it still says before it stands aside, and that
it stores nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.broker import standing_aside
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.testing.sim.cluster import SimulatedCluster
from ottla.testing.sim.members import GroupRefusal, committed, coordinator_of
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.tree_machine import ServedTree
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import Simulation

T = TypeVar("T")
GROUP, TP = "g", TopicPartition("t", 0)
PROPERTIES = {"offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "3"}


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(60):
        while True:
            try:
                return await attempt()
            except (Unreachable, GroupRefusal):
                await asyncio.sleep(0.1)


async def commit(client: ClusterClient, broker: int, position: int) -> None:
    """Of a consumer that is no member. Raises Unreachable, and GroupRefusal."""
    part = OffsetCommitRequestPartition(partition_index=TP.partition, committed_offset=position)
    topics = [OffsetCommitRequestTopic(name=TP.topic, partitions=[part])]
    answer = await client.broker(broker).ask(OffsetCommitRequest(group_id=GROUP, topics=topics), 7)
    error = ErrorCode(answer.topics[0].partitions[0].error_code)
    if error != ErrorCode.NONE:
        raise GroupRefusal("commit", error)


async def position_at(client: ClusterClient, broker: int) -> int:
    topics = [OffsetFetchRequestTopics(name=TP.topic, partition_indexes=[TP.partition])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])
    (answer,) = (await client.broker(broker).ask(request, 8)).groups
    assert answer.error_code == ErrorCode.NONE
    return int(answer.topics[0].partitions[0].committed_offset)


async def replaced_at(cluster: SimulatedCluster, old: int) -> float:
    """When another broker was elected in its place. Raises Unreachable while none was."""
    at = cluster.commits.replaced_at(GROUP, old)
    if at is None:
        raise Unreachable("nobody was elected yet")
    return at


async def is_acknowledged(attempt: Awaitable[None]) -> bool:
    try:
        await attempt
    except (Unreachable, GroupRefusal):
        return False
    return True


def test_a_replaced_coordinator_says_what_it_knew_and_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # It would resign (docs/decisions/standing-aside.md) before anything is asked here.
    monkeypatch.setattr(standing_aside, "LATE_MS", 3_600_000)
    with Simulation(1) as simulation:
        cluster = SimulatedCluster(simulation, ServedTree(simulation), 3, PROPERTIES)
        fabric = simulation.world.fabric

        async def scenario() -> None:
            await cluster.started()
            await cluster.backing.create(TP.topic, 1, 3, {})
            client, another, third = (cluster.client(name) for name in ("one", "another", "third"))
            old = await patiently(lambda: coordinator_of(client, GROUP))
            await patiently(lambda: commit(client, old, 10))

            name = cluster.brokers[old - 1].name
            for machine in cluster.machines:
                if machine.name != name:
                    fabric.cut(name, machine.name)
            at = await patiently(lambda: replaced_at(cluster, old))

            async def commit_elsewhere() -> None:
                await commit(another, await coordinator_of(another, GROUP), 20)

            await patiently(commit_elsewhere)
            assert await position_at(client, old) == 10
            assert cluster.commits.as_of(GROUP, old, simulation.loop.time()) == at
            assert not await is_acknowledged(commit(client, old, 30))

            fabric.heal()
            assert await patiently(lambda: committed(third, GROUP, TP)) == 20

        simulation.run(scenario())
