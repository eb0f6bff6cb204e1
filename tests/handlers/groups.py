"""Requests of groups as clients send them, and a broker that is quick with groups."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

PROPERTIES = {
    "broker.id": "7",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
}
NONE = ErrorCode.NONE
SECONDS_MAX = 60.0


def group_broker(folder: Any, **properties: str) -> BrokerThread:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return BrokerThread(str(folder), **{**PROPERTIES, **named})


def find(peer: Peer, group: str = "g", version: int = 3) -> FindCoordinatorResponse:
    request = FindCoordinatorRequest(key=group) if version < 4 else FindCoordinatorRequest(coordinator_keys=[group])
    answer = peer.ask(request, version, FindCoordinatorResponse)
    assert isinstance(answer, FindCoordinatorResponse)
    return answer


def commit(
    peer: Peer,
    group: str,
    offsets: dict[tuple[str, int], int],
    *,
    version: int = 8,
    generation: int = -1,
    member: str = "",
    metadata: str = "",
) -> dict[tuple[str, int], int]:
    """The errors by topic and partition."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    answer = peer.ask(request, version, OffsetCommitResponse)
    return {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}


def fetch(peer: Peer, group: str, topics: dict[str, list[int]] | None, version: int = 8) -> dict[tuple[str, int], int]:
    """The offsets by topic and partition; an error is an assertion."""
    asked = (
        None
        if topics is None
        else [OffsetFetchRequestTopics(name=name, partition_indexes=parts) for name, parts in topics.items()]
    )
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)])
    (answer,) = peer.ask(request, version, OffsetFetchResponse).groups
    assert answer.error_code == NONE, answer
    assert all(p.error_code == NONE for t in answer.topics for p in t.partitions), answer
    return {(t.name, p.partition_index): p.committed_offset for t in answer.topics for p in t.partitions}


def join_request(group: str, member: str = "", **fields: Any) -> JoinGroupRequest:
    given = {
        "session_timeout_ms": 60_000,  # nobody here sends heartbeats
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"subscription")],
        **fields,
    }
    return JoinGroupRequest(group_id=group, member_id=member, **given)


def join(peer: Peer, group: str, member: str = "", version: int = 3, **fields: Any) -> JoinGroupResponse:
    answer = peer.ask(join_request(group, member, **fields), version, JoinGroupResponse)
    assert isinstance(answer, JoinGroupResponse)
    return answer


def sync(peer: Peer, group: str, joined: JoinGroupResponse, version: int = 2) -> SyncGroupResponse:
    """The leader gives everyone its own name."""
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=each.member_id, assignment=each.member_id.encode())
            for each in joined.members
        ],
    )
    answer = peer.ask(request, version, SyncGroupResponse)
    assert isinstance(answer, SyncGroupResponse)
    return answer


def wait_loaded(peer: Peer, group: str) -> None:
    """Until the group's coordinator has loaded what there is."""
    deadline = time.monotonic() + SECONDS_MAX
    assert find(peer, group).error_code == NONE
    while True:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[])])
        error = peer.ask(request, 8, OffsetFetchResponse).groups[0].error_code
        if error == NONE:
            return
        assert error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    """A broker with an offsets topic and the topics `t` (2 partitions) and `u`."""
    with group_broker(tmp_path_factory.mktemp("groups")) as broker:
        broker.create_topic("t", 2)
        broker.create_topic("u", 1)
        with broker.connect() as client:
            assert find(client).error_code == NONE
        yield broker


@pytest.fixture
def client(grouped: BrokerThread) -> Iterator[Peer]:
    with grouped.connect() as peer:
        yield peer
