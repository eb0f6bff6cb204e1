"""Groups and offsets outlive the broker: a clean stop, and a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.handlers.groups import (
    NONE,
    PROPERTIES,
    commit,
    fetch,
    group_broker,
    join,
    sync,
    wait_loaded,
)
from tests.server.conftest import Peer
from tools.ottla_server import ottla_broker
from tools.server_process import ServerProcess

from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

GROUPS = [f"group-{number}" for number in range(20)]


@pytest.fixture(params=["none", "zstd"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    codec = {"none": "0", "zstd": "4"}[request.param]
    process = ottla_broker(tmp_path / "data", properties={**PROPERTIES, "offsets.topic.compression.codec": codec})
    process.start()
    try:
        yield process
    finally:
        process.kill()


def create_topic(peer: Peer) -> None:
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    (made,) = peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5, CreateTopicsResponse).topics
    assert made.error_code == NONE


def put_something_there(peer: Peer) -> str:
    """A member of the first group, which is given back, and offsets of all of them."""
    create_topic(peer)
    for group in GROUPS:
        wait_loaded(peer, group)
    joined = join(peer, GROUPS[0], session_timeout_ms=60_000)
    assert sync(peer, GROUPS[0], joined).error_code == NONE
    given = {("t", 0): 10, ("t", 1): 11}
    commit(peer, GROUPS[0], given, member=joined.member_id, generation=joined.generation_id)
    for number, group in enumerate(GROUPS[1:], 1):
        assert commit(peer, group, {("t", 0): number, ("t", 1): 5}) == {("t", 0): NONE, ("t", 1): NONE}
        assert commit(peer, group, {("t", 1): number + 100}) == {("t", 1): NONE}
    gone = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=1)])
    request = OffsetDeleteRequest(group_id=GROUPS[1], topics=[gone])
    assert peer.ask(request, 0, OffsetDeleteResponse).error_code == NONE
    return joined.member_id


def check_it_is_there(peer: Peer, member: str) -> None:
    for group in GROUPS:
        wait_loaded(peer, group)
    beat = HeartbeatRequest(group_id=GROUPS[0], generation_id=1, member_id=member)
    assert peer.ask(beat, 3, HeartbeatResponse).error_code == NONE
    (described,) = peer.ask(DescribeGroupsRequest(groups=[GROUPS[0]]), 4, DescribeGroupsResponse).groups
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert [(each.member_id, each.client_id, each.client_host) for each in described.members] == [
        (member, "test", "/127.0.0.1")
    ]
    assert [each.member_assignment for each in described.members] == [member.encode()]
    assert fetch(peer, GROUPS[0], None) == {("t", 0): 10, ("t", 1): 11}
    assert fetch(peer, GROUPS[1], None) == {("t", 0): 1}
    for number, group in enumerate(GROUPS[2:], 2):
        assert fetch(peer, group, None) == {("t", 0): number, ("t", 1): number + 100}


@pytest.mark.in_turns
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_groups_and_offsets_are_there_again(server: ServerProcess, how: str) -> None:
    with Peer(server.port) as peer:
        member = put_something_there(peer)
    for _ in range(2):
        if how == "stop":
            server.stop()
        else:
            server.kill()
        server.start()
        with Peer(server.port) as peer:
            check_it_is_there(peer, member)


def test_what_was_committed_after_a_restart_wins(tmp_path: Path) -> None:
    for life in range(3):
        with group_broker(tmp_path) as broker, broker.connect() as peer:
            if not life:
                create_topic(peer)
            wait_loaded(peer, "g")
            assert fetch(peer, "g", {"t": [0]}) == {("t", 0): life - 1}
            assert commit(peer, "g", {("t", 0): life}) == {("t", 0): NONE}
