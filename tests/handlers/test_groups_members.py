"""Members of classic groups on the wire: every version of what they ask, and answers that wait for others to ask."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.handlers.groups import NONE, SECONDS_MAX, commit, fetch, group_broker, join, join_request, sync, wait_loaded
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.config.log import LogConfig
from ottla.model import OFFSETS_TOPIC, BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.generated.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse

INVALID_GROUP, UNKNOWN_MEMBER = ErrorCode.INVALID_GROUP_ID, ErrorCode.UNKNOWN_MEMBER_ID

_numbers = itertools.count()


@pytest.fixture
def group() -> str:
    return f"members-{next(_numbers)}"


@pytest.fixture
def peers(grouped: BrokerThread) -> Iterator[list[Peer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(grouped.connect()) for _ in range(3)]


def let_in(peer: Peer, group: str, version: int, **fields: str) -> JoinGroupResponse:
    """As a client does it: where an id is required, it joins again with the one that it is given."""
    joined = join(peer, group, version=version, **fields)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        assert version >= 4
        joined = join(peer, group, joined.member_id, version=version, **fields)
    assert joined.error_code == NONE, joined
    return joined


def wait_for_rebalance(peer: Peer, group: str, member: str) -> None:
    """Until a member of the first generation is told that somebody else has come."""
    beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
    deadline = time.monotonic() + SECONDS_MAX
    while (error := peer.ask(beat, 3, HeartbeatResponse).error_code) == NONE:
        assert time.monotonic() < deadline
    assert error == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", range(10))
def test_a_member_alone_in_its_group(client: Peer, group: str, version: int) -> None:
    joined = let_in(client, group, version)
    assert joined.leader == joined.member_id
    assert joined.member_id.startswith("test-")
    assert (joined.generation_id, joined.protocol_name) == (1, "range")
    assert [(each.member_id, each.metadata) for each in joined.members] == [(joined.member_id, b"subscription")]
    if version >= 7:
        assert joined.protocol_type == "consumer"
    assert sync(client, group, joined).assignment == joined.member_id.encode()


@pytest.mark.parametrize("version", range(6))
def test_sync_heartbeat_and_leave_in_all_versions(client: Peer, group: str, version: int) -> None:
    joined = let_in(client, group, 3)
    member, generation = joined.member_id, joined.generation_id
    request = SyncGroupRequest(group_id=group, generation_id=generation, member_id=member)
    if version >= 5:
        assert client.ask(request, version, SyncGroupResponse).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type, request.protocol_name = "consumer", "range"
    answer = client.ask(request, version, SyncGroupResponse)
    assert (answer.error_code, answer.assignment) == (NONE, b"")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    beat = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    assert client.ask(beat, min(version, 4), HeartbeatResponse).error_code == NONE
    if version < 3:
        leave = LeaveGroupRequest(group_id=group, member_id=member)
        expected = [NONE, UNKNOWN_MEMBER]
    else:
        leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)])
        expected = [NONE, NONE]
    for number, error in enumerate(expected):
        left = client.ask(leave, version, LeaveGroupResponse)
        assert left.error_code == error
        if version >= 3:
            assert [(each.member_id, each.error_code) for each in left.members] == [
                (member, (NONE, UNKNOWN_MEMBER)[number])
            ]


def test_a_join_waits_for_the_others_and_only_the_leader_sees_them(peers: list[Peer], group: str) -> None:
    first = let_in(peers[0], group, 3)
    sync(peers[0], group, first)
    peers[1].send(peers[1].frame(join_request(group), 3))
    wait_for_rebalance(peers[0], group, first.member_id)
    again = join(peers[0], group, first.member_id)
    second = peers[1].answer(JoinGroupResponse, 3)
    assert again.generation_id == second.generation_id == 2
    assert again.leader == second.leader == first.member_id
    assert {each.member_id for each in again.members} == {first.member_id, second.member_id}
    assert second.members == []
    peers[1].send(peers[1].frame(SyncGroupRequest(group_id=group, generation_id=2, member_id=second.member_id), 2))
    assert sync(peers[0], group, again).assignment == first.member_id.encode()
    assert peers[1].answer(SyncGroupResponse, 2).assignment == second.member_id.encode()


def test_a_client_that_goes_away_in_the_middle_of_its_join_harms_nobody(peers: list[Peer], group: str) -> None:
    first = let_in(peers[0], group, 3)
    sync(peers[0], group, first)
    peers[1].send(peers[1].frame(join_request(group), 3))
    peers[1].socket.close()
    wait_for_rebalance(peers[0], group, first.member_id)
    joined = join(peers[0], group, first.member_id)
    assert joined.error_code == NONE
    assert sync(peers[0], group, joined).error_code == NONE


def test_commits_of_a_member(client: Peer, group: str) -> None:
    joined = let_in(client, group, 3)
    member, generation = joined.member_id, joined.generation_id
    sync(client, group, joined)
    given = {("t", 0): 5}
    assert commit(client, group, given, member=member, generation=generation) == {("t", 0): NONE}
    old = commit(client, group, {("t", 0): 6}, member=member, generation=generation - 1)
    assert old == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
    stranger = commit(client, group, {("t", 0): 7}, member="somebody", generation=generation)
    assert stranger == {("t", 0): UNKNOWN_MEMBER}
    assert commit(client, group, {("t", 0): 8}) == {("t", 0): UNKNOWN_MEMBER}
    assert fetch(client, group, None) == {("t", 0): 5}


@pytest.mark.parametrize("version", [0, 4, 5, 6, 7, 8, 9])
def test_joins_that_are_refused(client: Peer, group: str, version: int) -> None:
    nameless = None if version >= 7 else ""
    for given, error in (
        ({"group": ""}, INVALID_GROUP),
        ({"session_timeout_ms": 10}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member": "stranger"}, UNKNOWN_MEMBER),
    ):
        fields = {"group": group, **given}
        answer = join(client, version=version, **fields)  # type: ignore[arg-type]
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (error, -1, nameless)
        assert answer.members == []


def test_a_reason_of_any_length_is_heard(client: Peer, group: str) -> None:
    joined = let_in(client, group, 8, reason="because " * 1000)
    assert joined.error_code == NONE


def test_two_who_speak_nothing_in_common(peers: list[Peer], group: str) -> None:
    let_in(peers[0], group, 3)
    other = [JoinGroupRequestProtocol(name="roundrobin", metadata=b"")]
    assert join(peers[1], group, protocols=other).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join(peers[1], group, protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(7))
def test_groups_described(client: Peer, group: str, version: int) -> None:
    joined = let_in(client, group, 3)
    sync(client, group, joined)
    request = DescribeGroupsRequest(groups=[group, "nobody"], include_authorized_operations=version >= 3)
    found, missing = client.ask(request, version, DescribeGroupsResponse).groups
    assert (found.group_id, found.error_code, found.group_state) == (group, NONE, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"subscription", joined.member_id.encode())
    assert (found.authorized_operations == 3400) == (version >= 3)
    assert (missing.group_state, missing.members) == ("Dead", [])
    if version >= 6:
        assert (missing.error_code, missing.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group nobody not found.",
        )
    else:
        assert missing.error_code == NONE


@pytest.mark.parametrize("version", range(6))
def test_groups_listed(client: Peer, group: str, version: int) -> None:
    let_in(client, group, 3)
    commit(client, group + "-simple", {("t", 0): 1})

    def listed(states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> dict[str, tuple[str, str, str]]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        answer = client.ask(request, version, ListGroupsResponse)
        assert answer.error_code == NONE
        return {
            each.group_id: (each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
            if each.group_id.startswith(group)
        }

    found = listed()
    assert {name: entry[0] for name, entry in found.items()} == {group: "consumer", group + "-simple": ""}
    if version >= 4:
        assert found[group][1] == "CompletingRebalance"
        assert set(listed(states=("empty",))) == {group + "-simple"}
        assert listed(states=("nonsense",)) == {}
    if version >= 5:
        assert found[group][2] == "classic"
        assert set(listed(types=("Classic",))) == {group, group + "-simple"}
        assert listed(types=("consumer",)) == listed(types=("nonsense",)) == {}


@pytest.mark.parametrize("version", range(3))
def test_groups_deleted(client: Peer, group: str, version: int) -> None:
    let_in(client, group, 3)
    commit(client, group + "-simple", {("t", 0): 1})
    names = [group, group + "-simple", "nobody", group + "-simple"]
    results = client.ask(DeleteGroupsRequest(groups_names=names), version, DeleteGroupsResponse).results
    assert {each.group_id: each.error_code for each in results} == {
        group: ErrorCode.NON_EMPTY_GROUP,
        group + "-simple": NONE,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(results) == 3
    assert fetch(client, group + "-simple", {"t": [0]}) == {("t", 0): -1}


def test_empty_questions_have_empty_answers(client: Peer) -> None:
    assert client.ask(DescribeGroupsRequest(), 5, DescribeGroupsResponse).groups == []
    assert client.ask(DeleteGroupsRequest(), 2, DeleteGroupsResponse).results == []
    assert client.ask(ConsumerGroupDescribeRequest(), 1, ConsumerGroupDescribeResponse).groups == []


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_of_the_newer_protocol(client: Peer, group: str, version: int) -> None:
    wait_loaded(client, group)

    def beat(epoch: int, member: str, **fields: object) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)  # type: ignore[arg-type]
        return client.ask(request, version, ConsumerGroupHeartbeatResponse)  # type: ignore[no-any-return]

    # From version 1 on members name themselves.
    joined = beat(
        0, "m" if version else "", rebalance_timeout_ms=5_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert (joined.error_code, joined.member_epoch > 0) == (NONE, True)
    assert joined.member_id == "m" if version else joined.member_id
    assert joined.assignment is not None
    assert [each.partitions for each in joined.assignment.topic_partitions] == [[0, 1]]
    again = beat(joined.member_epoch, joined.member_id)
    assert (again.error_code, again.member_epoch, again.assignment) == (NONE, joined.member_epoch, None)
    request = ConsumerGroupDescribeRequest(group_ids=[group, "nobody-s"])
    described, missing = client.ask(request, version, ConsumerGroupDescribeResponse).groups
    assert (described.group_state, described.group_epoch) == ("Stable", joined.member_epoch)
    assert [each.member_id for each in described.members] == [joined.member_id]
    assert described.members[0].member_type == (1 if version else -1)
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert beat(-1, joined.member_id).error_code == NONE
    assert beat(joined.member_epoch, joined.member_id).error_code == UNKNOWN_MEMBER


def test_the_newer_protocol_where_it_is_not_wanted(tmp_path: Path) -> None:
    with group_broker(tmp_path, group_coordinator_rebalance_protocols="classic") as broker, broker.connect() as peer:
        wait_loaded(peer, "g")
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", subscribed_topic_names=["t"], topic_partitions=[], rebalance_timeout_ms=1000
        )
        answer = peer.ask(request, 1, ConsumerGroupHeartbeatResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        described = peer.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1, ConsumerGroupDescribeResponse).groups
        assert [each.error_code for each in described] == [ErrorCode.UNSUPPORTED_VERSION]


def test_before_there_is_an_offsets_topic(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("t", 1)
        not_here = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert join(peer, "g").error_code in not_here
        assert commit(peer, "g", {("t", 0): 1})[("t", 0)] in not_here
        assert peer.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups == []


def test_a_coordinator_that_gives_its_partition_up_and_gets_it_back(tmp_path: Path) -> None:
    with group_broker(tmp_path) as broker, broker.connect() as peer, broker.connect() as other:
        broker.create_topic("t", 1)
        wait_loaded(peer, "g")
        assert commit(peer, "g", {("t", 0): 5}) == {("t", 0): NONE}
        joined = join(peer, "g", rebalance_timeout_ms=60_000)
        assert sync(peer, "g", joined).error_code == NONE
        other.send(other.frame(join_request("g", rebalance_timeout_ms=60_000), 3))
        wait_for_rebalance(peer, "g", joined.member_id)

        def lead(leader: int, epoch: int) -> ErrorCode:
            def apply(running: Broker) -> ErrorCode:
                assert running.services is not None
                tp = TopicPartition(OFFSETS_TOPIC, running.services.groups.partition_for("g"))
                known = running.metadata.partition(*tp)
                assert known is not None
                state = known._replace(leader=BrokerId(leader), leader_epoch=Epoch(known.leader_epoch + epoch))
                return running.services.replicas.apply([state], lambda _: LogConfig())[tp]

            return broker.look(apply)

        assert lead(99, 1) == NONE
        # Who waits is told, and whoever comes.
        assert other.answer(JoinGroupResponse, 3).error_code == ErrorCode.NOT_COORDINATOR
        assert commit(peer, "g", {("t", 0): 6}) == {("t", 0): ErrorCode.NOT_COORDINATOR}
        assert join(peer, "g", joined.member_id).error_code == ErrorCode.NOT_COORDINATOR

        assert lead(7, 2) == NONE
        wait_loaded(peer, "g")
        assert fetch(peer, "g", {"t": [0]}) == {("t", 0): 5}
        beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
        assert peer.ask(beat, 3, HeartbeatResponse).error_code == NONE


def test_members_who_wait_when_the_broker_stops_are_told(tmp_path: Path) -> None:
    with (
        group_broker(tmp_path, group_initial_rebalance_delay_ms="30000") as broker,
        broker.connect() as peer,
        broker.connect() as other,
    ):
        wait_loaded(peer, "g")
        peer.send(peer.frame(join_request("g", rebalance_timeout_ms=60_000), 3))
        request = DescribeGroupsRequest(groups=["g"])
        deadline = time.monotonic() + SECONDS_MAX
        while other.ask(request, 4, DescribeGroupsResponse).groups[0].group_state != "PreparingRebalance":
            assert time.monotonic() < deadline
        broker.run(broker.broker.stop())
        assert peer.answer(JoinGroupResponse, 3).error_code == ErrorCode.NOT_COORDINATOR
