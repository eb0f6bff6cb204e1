"""A thousand groups move with their coordinator: each member commits in its generation, at the first time of asking."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.broker.simulated_cluster import SimulatedCluster, until
from tests.broker.test_groups_moving import asked, begin, coordinator

from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUPS = 1_000
ONE_PARTITION = {"offsets.topic.num.partitions": "1"}


async def joined(cluster: SimulatedCluster, number: int, group: str) -> tuple[str, str, int]:
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"s")],
    )
    found = await asked(cluster, number, join, 3)
    assert found.error_code == ErrorCode.NONE
    mine = SyncGroupRequestAssignment(member_id=found.member_id, assignment=b"mine")
    sync = SyncGroupRequest(
        group_id=group, generation_id=found.generation_id, member_id=found.member_id, assignments=[mine]
    )
    assert (await asked(cluster, number, sync, 2)).error_code == ErrorCode.NONE
    return group, found.member_id, found.generation_id


async def commit(cluster: SimulatedCluster, number: int, member: tuple[str, str, int]) -> ErrorCode:
    group, member_id, generation = member
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer: Any = await cluster.client(number).ask(request, 7)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_no_member_of_a_thousand_groups_joins_again_when_their_coordinator_is_killed() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        first = await begin(cluster)
        other = 3 - first
        members = [await joined(cluster, first, f"g{number}") for number in range(GROUPS)]
        await cluster.leave(first, "kill")
        await until(
            lambda: all(each.leader == other for each in cluster.broker(other).metadata.topic(OFFSETS_TOPIC).partitions)
        )
        # Once one group is served all are: they were loaded together.
        assert await coordinator(cluster, other, "g0") == other
        await asked(cluster, other, JoinGroupRequest(group_id="new", session_timeout_ms=300_000), 3)
        answers = Counter([await commit(cluster, other, member) for member in members])
        assert answers == {ErrorCode.NONE: GROUPS}

    with SimulatedCluster(2, properties=ONE_PARTITION) as cluster:
        cluster.run(scenario(cluster))
