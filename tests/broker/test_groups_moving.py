"""The coordinator of a group moves with the leader of its partition: members stay in their generation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.simulated_cluster import SimulatedCluster, until

from ottla.coordination.znodes import delete_topic_path
from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

NONE = ErrorCode.NONE


async def coordinator(cluster: SimulatedCluster, ask: int, group: str = "g") -> int:
    """Asked until one is there."""
    found = ErrorCode.COORDINATOR_NOT_AVAILABLE
    for _ in range(200):
        answer = await cluster.client(ask).ask(FindCoordinatorRequest(key=group), 3)
        found = ErrorCode(answer.error_code)
        if found is NONE:
            return int(answer.node_id)
        await cluster.pause(0.1)
    raise AssertionError(found)


async def asked(cluster: SimulatedCluster, number: int, request: Any, version: int) -> Any:
    """Until the coordinator has loaded the group."""
    for _ in range(200):
        answer = await cluster.client(number).ask(request, version)
        if answer.error_code not in {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}:
            return answer
        await cluster.pause(0.05)
    raise AssertionError(answer)


async def commit(
    cluster: SimulatedCluster, number: int, member: str, generation: int, offset: int, topic: str = "t"
) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
                ],
            )
        ],
    )
    answer = await cluster.client(number).ask(request, 9)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(cluster: SimulatedCluster, number: int, *topics: str) -> list[int]:
    asked = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
    answer = await cluster.client(number).ask(request, 8)
    return [int(topic.partitions[0].committed_offset) for topic in answer.groups[0].topics]


async def begin(cluster: SimulatedCluster) -> int:
    await cluster.start()
    assert await cluster.create(1, "t", {0: (1, 2)}) is NONE
    found = await coordinator(cluster, 1)
    # Both have what the coordinator has written.
    await until(
        lambda: all(len(each.isr) == 2 for each in cluster.broker(found).metadata.topic(OFFSETS_TOPIC).partitions)
    )
    return found


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_members_of_a_classic_group_stay_in_their_generation(way: str) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        first = await begin(cluster)
        other = 3 - first
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"s")]
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=protocols,
        )
        joined = await asked(cluster, first, join, 3)
        assert joined.error_code == NONE
        assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")]
        sync = SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
        )
        assert (await asked(cluster, first, sync, 2)).assignment == b"mine"
        assert await commit(cluster, first, joined.member_id, joined.generation_id, 5) is NONE
        await cluster.leave(first, way)
        await until(
            lambda: all(each.leader == other for each in cluster.broker(other).metadata.topic(OFFSETS_TOPIC).partitions)
        )
        assert await coordinator(cluster, other) == other
        beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
        assert (await asked(cluster, other, beat, 3)).error_code == NONE
        assert await committed(cluster, other, "t") == [5]
        assert await commit(cluster, other, joined.member_id, joined.generation_id, 6) is NONE
        assert await committed(cluster, other, "t") == [6]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_members_of_a_consumer_group_keep_their_epoch_and_assignment(way: str) -> None:
    def beat(member: str, epoch: int, topics: list[str] | None = None) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=30_000 if topics else -1,
            subscribed_topic_names=topics,
            topic_partitions=[] if topics else None,
        )

    async def scenario(cluster: SimulatedCluster) -> None:
        first = await begin(cluster)
        other = 3 - first
        joined = await asked(cluster, first, beat("AAAAAAAAAAAAAAAAAAAAAA", 0, ["t"]), 1)
        assert joined.error_code == NONE, joined
        (assigned,) = joined.assignment.topic_partitions
        assert assigned.partitions == [0]
        assert await commit(cluster, first, joined.member_id, joined.member_epoch, 5) is NONE
        await cluster.leave(first, way)
        await until(
            lambda: all(each.leader == other for each in cluster.broker(other).metadata.topic(OFFSETS_TOPIC).partitions)
        )
        assert await coordinator(cluster, other) == other
        again = await asked(cluster, other, beat(joined.member_id, joined.member_epoch), 1)
        assert (again.error_code, again.member_epoch) == (NONE, joined.member_epoch), again
        assert await committed(cluster, other, "t") == [5]
        assert await commit(cluster, other, joined.member_id, joined.member_epoch, 6) is NONE

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_the_coordinator_becomes_the_controller_and_finds_a_topic_marked_for_deletion() -> None:
    """The controller that was asked to delete it died before it told anybody."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        assert await cluster.create(1, "t", {0: (other,)}) is NONE
        assert await cluster.create(1, "kept", {0: (other,)}) is NONE
        first = await coordinator(cluster, other)
        await until(
            lambda: all(len(each.isr) == 2 for each in cluster.broker(other).metadata.topic(OFFSETS_TOPIC).partitions)
        )
        for topic in ("t", "kept"):
            while await commit(cluster, first, "", -1, 5, topic) is not NONE:
                await cluster.pause(0.1)
        await cluster.leave(controller, "kill")
        await cluster.broker(other).tree.create(delete_topic_path("t"))
        await until(lambda: cluster.controllers == [other])
        await until(lambda: cluster.broker(other).metadata.topic("t") is None)
        while await cluster.create(other, "t", {0: (other,)}) is not NONE:
            await cluster.pause(0.1)
        assert await coordinator(cluster, other) == other
        assert await commit(cluster, other, "", -1, 6, "kept") is NONE
        assert await committed(cluster, other, "t", "kept") == [-1, 6]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_broker_that_was_killed_behind_the_mark_of_a_deletion_drops_the_offsets_when_it_is_back() -> None:
    """It deletes the topic's logs then, and has never known the topic since it started."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        for topic in ("t", "kept"):
            assert await cluster.create(1, topic, {0: (1,)}) is NONE
        await coordinator(cluster, 1)
        for topic in ("t", "kept"):
            while await commit(cluster, 1, "", -1, 5, topic) is not NONE:
                await cluster.pause(0.1)
        await cluster.broker(1).tree.create(delete_topic_path("t"))
        assert cluster.broker(1).metadata.topic("t") is not None
        await cluster.leave(1, "kill")
        await cluster.brokers[1].started()
        while await cluster.create(1, "t", {0: (1,)}) is not NONE:
            await cluster.pause(0.1)
        assert await coordinator(cluster, 1) == 1
        while await commit(cluster, 1, "", -1, 6, "kept") is not NONE:
            await cluster.pause(0.1)
        assert await committed(cluster, 1, "t", "kept") == [-1, 6]

    with SimulatedCluster(1, properties={"offsets.topic.replication.factor": "1"}) as cluster:
        cluster.run(scenario(cluster))
