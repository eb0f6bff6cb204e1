"""Who may commit and fetch offsets of a consumer group."""

from __future__ import annotations

import pytest
from tests.groups.consumer.room import GROUP, Consumer, Room, settle
from tests.groups.consumer.test_migration import mixed, room_with

from ottla.groups.offsets.committing import ALL_COMMITTED
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup
from ottla.steps import at_once


def commit(room: Room, member: str, epoch: int, partition: int = 0, *, topic: str = "t", version: int = 9) -> ErrorCode:
    entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=7)
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[entry])],
    )
    answer: OffsetCommitResponse = room.ask(
        lambda reply: at_once(room.shard.offset_commit(room.caller(version), request, reply))
    )
    return ErrorCode.NONE if answer is ALL_COMMITTED else ErrorCode(answer.topics[0].partitions[0].error_code)


def fetch(room: Room, member: str | None, epoch: int) -> ErrorCode:
    request = OffsetFetchRequestGroup(group_id=GROUP, member_id=member, member_epoch=epoch, topics=None)
    return ErrorCode(at_once(room.shard.offset_fetch(request, False)).error_code)


def one_member() -> tuple[Room, Consumer]:
    room = Room()
    room.topic("t", 2)
    member = Consumer(room, "a")
    settle([member])
    return room, member


def test_a_member_commits_and_fetches_in_its_epoch() -> None:
    room, member = one_member()
    assert commit(room, "a", member.epoch) == ErrorCode.NONE
    assert fetch(room, "a", member.epoch) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("name", "epoch", "error"),
    [
        ("a", 3, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 0, ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_others_do_not(name: str, epoch: int, error: ErrorCode) -> None:
    room, _ = one_member()
    assert commit(room, name, epoch) == error
    if name:
        assert fetch(room, name, epoch) == error


def test_versions_without_epochs_are_not_for_members_of_the_newer_protocol() -> None:
    room, member = one_member()
    assert commit(room, "a", member.epoch, version=8) == ErrorCode.UNSUPPORTED_VERSION


def test_an_administrator_commits_while_the_group_is_empty() -> None:
    room, member = one_member()
    assert commit(room, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    member.leave()
    assert commit(room, "", -1) == ErrorCode.NONE


def test_anybody_fetches_without_saying_who_it_is() -> None:
    room, _ = one_member()
    assert fetch(room, None, -1) == ErrorCode.NONE


def test_an_epoch_of_the_past_is_good_for_what_the_member_has_had_since() -> None:
    """The commit was on its way while the group went on. What came later needs the later epoch."""
    room, member = one_member()
    room.topic("t", 3)
    member.beat()
    assert member.epoch == 3
    assert commit(room, "a", 2, 0) == ErrorCode.NONE
    assert commit(room, "a", 2, 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(room, "a", 3, 2) == ErrorCode.NONE
    assert commit(room, "a", 2, topic="unknown") == ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_asked_back_may_be_committed_until_it_is_given_up() -> None:
    room, member = one_member()
    member.revokes_at_once = False
    other = Consumer(room, "b")
    other.beat()
    member.beat()
    assert commit(room, "a", member.epoch, 0) == ErrorCode.NONE
    assert commit(room, "a", member.epoch, 1) == ErrorCode.NONE
    member.revoke()
    settle([member, other])
    lost = ({0, 1} - set(member.partitions)).pop()
    assert commit(room, "a", 2, lost) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(room, "a", 2, member.partitions[0]) == ErrorCode.NONE


def test_classic_members_commit_in_their_generation() -> None:
    room = room_with()
    classic, _ = mixed(room)
    mine = classic.partitions[0]
    assert commit(room, classic.id, classic.generation, mine, version=8) == ErrorCode.NONE
    assert commit(room, classic.id, classic.generation + 1, mine) == ErrorCode.ILLEGAL_GENERATION
    assert fetch(room, classic.id, classic.generation + 1) == ErrorCode.ILLEGAL_GENERATION


def test_subscribed_topics_are_known() -> None:
    room = Room()
    room.topic("x1", 1)
    settle([Consumer(room, "a", ["t"]), Consumer(room, "b", None, regex="x.*")])
    assert [room.group.is_subscribed(name) for name in ("t", "x1", "x2")] == [True, True, False]
