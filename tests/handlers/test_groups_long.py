"""Requests of groups with very many elements: answered in their order, in steps, and with a bound on the answer."""

from __future__ import annotations

from tests.handlers.groups import NONE, commit, find
from tests.server.conftest import BrokerThread, Peer

from ottla.handlers import offset_commit
from ottla.handlers.calls.group_calls import ANSWER_BYTES_MAX
from ottla.handlers.offset_fetch import PARTITIONS_ANSWERED_MAX
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from ottla.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ottla.steps import PIECE

MANY = 1_000


def test_many_groups_in_one_request(grouped: BrokerThread, client: Peer) -> None:
    grouped.create_topic("long")
    find(client)
    commit(client, "long-0", {("long", 0): 5})
    names = [f"long-{number % (MANY // 2)}" for number in range(MANY)]
    coordinators = client.ask(FindCoordinatorRequest(coordinator_keys=names), 4, FindCoordinatorResponse).coordinators
    assert [found.key for found in coordinators] == names
    described = client.ask(DescribeGroupsRequest(groups=names), 6, DescribeGroupsResponse).groups
    assert [group.group_id for group in described] == names
    assert described[0].error_code == described[MANY // 2].error_code == NONE
    assert described[1].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    consumers = client.ask(ConsumerGroupDescribeRequest(group_ids=names), 1, ConsumerGroupDescribeResponse).groups
    assert [group.group_id for group in consumers] == names
    topics = [OffsetFetchRequestTopics(name="long", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in names])
    fetched = client.ask(request, 8, OffsetFetchResponse).groups
    assert [group.group_id for group in fetched] == names
    assert [group.topics[0].partitions[0].committed_offset for group in fetched[:2]] == [5, -1]
    deleted = client.ask(DeleteGroupsRequest(groups_names=names), 2, DeleteGroupsResponse).results
    assert len(deleted) == MANY // 2
    assert deleted[0].error_code == NONE


def test_offsets_of_more_partitions_than_one_answer_has(grouped: BrokerThread, client: Peer) -> None:
    indexes = [0] * (PARTITIONS_ANSWERED_MAX - 10)
    topics = [OffsetFetchRequestTopics(name="none", partition_indexes=indexes)]
    few = [OffsetFetchRequestTopics(name="none", partition_indexes=[0] * 11)]
    groups = [
        OffsetFetchRequestGroup(group_id="bounded", topics=[*topics, *few]),
        OffsetFetchRequestGroup(group_id="bounded", topics=few),
        OffsetFetchRequestGroup(group_id="bounded", topics=None),
    ]
    found = client.ask(OffsetFetchRequest(groups=groups), 8, OffsetFetchResponse).groups
    assert [group.error_code for group in found] == [ErrorCode.INVALID_REQUEST, NONE, NONE]
    assert not found[0].topics
    old = [OffsetFetchRequestTopic(name="none", partition_indexes=[0] * (PARTITIONS_ANSWERED_MAX + 1))]
    answer = client.ask(OffsetFetchRequest(group_id="bounded", topics=old), 5, OffsetFetchResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.INVALID_REQUEST, [])


def test_a_large_group_that_is_described_again_and_again(grouped: BrokerThread, client: Peer) -> None:
    """Twenty bytes of a request would be a megabyte of its answer each."""
    find(client)
    protocol = JoinGroupRequestProtocol(name="p", metadata=bytes(500_000))
    join = JoinGroupRequest(
        group_id="described",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="connect",
        protocols=[protocol],
    )
    member = client.ask(join, 3, JoinGroupResponse)
    shares = [SyncGroupRequestAssignment(member_id=f"nobody-{number}", assignment=b"no") for number in range(MANY)]
    shares.append(SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"first"))
    shares.append(SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"share"))
    sync = SyncGroupRequest(
        group_id="described", generation_id=member.generation_id, member_id=member.member_id, assignments=shares
    )
    assert client.ask(sync, 3, SyncGroupResponse).assignment == b"share"
    request = DescribeGroupsRequest(groups=["described"] * 100)
    groups = client.ask(request, 6, DescribeGroupsResponse).groups
    errors = [group.error_code for group in groups]
    told = ANSWER_BYTES_MAX // 500_000
    assert errors.count(NONE) in {told - 1, told}
    assert errors[-1] == ErrorCode.INVALID_REQUEST
    assert "fewer groups" in (groups[-1].error_message or "")


def test_names_count_where_a_group_is_described_again_and_again(grouped: BrokerThread, client: Peer) -> None:
    find(client)
    client.client_id = "c" * 32_000  # the member's id begins with it
    join = JoinGroupRequest(
        group_id="named",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="connect",
        protocols=[JoinGroupRequestProtocol(name="p")],
    )
    assert client.ask(join, 3, JoinGroupResponse).error_code == NONE
    client.client_id = "c"
    request = DescribeGroupsRequest(groups=["named"] * 1_000)
    errors = [group.error_code for group in client.ask(request, 6, DescribeGroupsResponse).groups]
    assert 0 < errors.count(NONE) <= ANSWER_BYTES_MAX // 32_000
    assert errors[-1] == ErrorCode.INVALID_REQUEST


def test_a_commit_of_many_topics_that_there_are_not_and_one_that_there_is(grouped: BrokerThread, client: Peer) -> None:
    grouped.create_topic("there-is")
    find(client)
    names = [f"none-{number}" for number in range(MANY)]
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(partition_index=0)])
        for name in [*names, "there-is", "none-7"]
    ]
    request = OffsetCommitRequest(group_id="mixed", generation_id_or_member_epoch=-1, topics=topics)
    answered = client.ask(request, 8, OffsetCommitResponse).topics
    errors = {topic.name: [partition.error_code for partition in topic.partitions] for topic in answered}
    assert len(errors) == len(answered) == MANY + 1
    assert errors["there-is"] == [NONE]
    assert errors["none-8"] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert errors["none-7"] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    request.topics = [topic for topic in topics if topic.name != "there-is"]
    answered = client.ask(request, 8, OffsetCommitResponse).topics
    assert [(topic.name, len(topic.partitions)) for topic in answered] == [
        (name, 1 + (name == "none-7")) for name in names
    ]


def test_what_was_refused_and_what_was_committed_are_joined_in_steps() -> None:
    refused = [OffsetCommitResponseTopic(name=f"t{number}") for number in range(MANY)]
    committed = [OffsetCommitResponseTopic(name=f"t{number}") for number in range(MANY // 2, 2 * MANY)]
    steps = offset_commit._joined(refused, committed)
    count = 0
    try:
        while True:
            next(steps)
            count += 1
    except StopIteration as end:
        joined = end.value
    assert [topic.name for topic in joined] == [f"t{number}" for number in range(2 * MANY)]
    assert count >= 2 * MANY // PIECE
