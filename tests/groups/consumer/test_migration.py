"""Groups that change protocol while they run, and groups in which members speak both."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.groups.consumer.classic_consumer import ClassicConsumer, Stage
from tests.groups.consumer.room import GROUP, Consumer, Room

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import FIRST_EPOCH
from ottla.groups.consumer.target import WORK_AT_ONCE_MAX
from ottla.model import ErrorCode
from ottla.protocol.generated.heartbeat import HeartbeatRequest
from ottla.protocol.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.steps import at_once

#: Together they cover the first rebalance's delay of a classic group.
ROUND_MS = 1_000


def room_with(partitions: int = 6, **properties: str) -> Room:
    room = Room(**properties)
    room.topic("t", partitions)
    return room


def settle(members: Sequence[Consumer | ClassicConsumer], rounds: int = 20) -> None:
    """Everybody does what it does every second; no two ever read one partition."""
    room = members[0].room
    for _ in range(rounds):
        for member in members:
            member.beat()
            room.check()
            check_reading(members)
        room.advance(ROUND_MS)


def check_reading(members: Sequence[Consumer | ClassicConsumer]) -> None:
    reading = [one for member in members for one in member.owned]
    assert len(reading) == len(set(reading))


def check_all_read(members: Sequence[Consumer | ClassicConsumer], partitions: int) -> None:
    reading = [partition for member in members for partition in member.partitions]
    assert sorted(reading) == list(range(partitions))


def classic_group(room: Room, count: int, *, cooperative: bool = False) -> list[ClassicConsumer]:
    members = [ClassicConsumer(room, cooperative=cooperative) for _ in range(count)]
    settle(members)
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    assert all(member.stage is Stage.STABLE for member in members)
    return members


# Up.


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_new_member_turns_a_classic_group_into_a_consumer_group(cooperative: bool) -> None:
    room = room_with()
    classic = classic_group(room, 2, cooperative=cooperative)
    generation = classic[0].generation
    new = Consumer(room, "new")
    assert new.beat() == ErrorCode.NONE
    group = room.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert group.epoch == generation + 1
    assert {member.id: member.classic is not None for member in group.members.values()} == {
        classic[0].id: True,
        classic[1].id: True,
        "new": False,
    }
    # They still have what they had, until they have heard of it.
    assert sum(len(member.owned) for member in classic) == 6
    everybody = [*classic, new]
    settle(everybody)
    assert group.state_name == "Stable"
    check_all_read(everybody, 6)
    assert sorted(len(member.owned) for member in everybody) == [2, 2, 2]
    assert all(member.generation == group.epoch for member in classic)


def test_cooperative_members_keep_reading_what_they_keep() -> None:
    room = room_with()
    classic = classic_group(room, 2, cooperative=True)
    before = [set(member.owned) for member in classic]
    everybody = [*classic, Consumer(room, "new")]
    for _ in range(10):
        for member in everybody:
            member.beat()
            for had, one in zip(before, classic, strict=True):
                assert len(had & one.owned) >= 2
    check_all_read(everybody, 6)


def test_who_waits_in_the_classic_group_is_told_to_join_again() -> None:
    room = room_with()
    classic = classic_group(room, 2)
    third = ClassicConsumer(room)
    third.beat()
    assert third.stage is Stage.JOINING
    new = Consumer(room, "new")
    new.beat()
    room.deliver()
    assert third.errors == [ErrorCode.REBALANCE_IN_PROGRESS]
    everybody = [*classic, third, new]
    settle(everybody)
    check_all_read(everybody, 6)


def test_a_group_whose_members_all_change_one_by_one_and_back() -> None:
    room = room_with()
    members: list[Consumer | ClassicConsumer] = list(classic_group(room, 3, cooperative=True))
    for place in range(3):
        old = members[place]
        assert isinstance(old, ClassicConsumer)
        old.leave()
        members[place] = Consumer(room, f"new-{place}")
        settle(members)
        check_all_read(members, 6)
    assert isinstance(room.shard.groups[GROUP], ConsumerGroup)
    assert room.group.classic_members == 0
    for place in range(3):
        new = members[place]
        assert isinstance(new, Consumer)
        new.leave()
        members[place] = ClassicConsumer(room, cooperative=True)
        settle(members)
        check_all_read(members, 6)
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    # What is stored says the same.
    room.restart()
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)


@pytest.mark.parametrize(("policy", "up"), [("upgrade", True), ("downgrade", False), ("disabled", False)])
def test_the_policy_decides_upgrades(policy: str, up: bool) -> None:
    room = room_with(group_consumer_migration_policy=policy)
    classic = classic_group(room, 1)
    assert Consumer(room, "new").beat() == (ErrorCode.NONE if up else ErrorCode.GROUP_ID_NOT_FOUND)
    assert isinstance(room.shard.groups[GROUP], ConsumerGroup if up else ClassicGroup)
    settle(classic)
    assert classic[0].stage is Stage.STABLE


def test_a_group_that_is_too_large_for_the_newer_protocol() -> None:
    room = room_with(group_consumer_max_size="2")
    classic_group(room, 3)
    assert Consumer(room, "new").beat() == ErrorCode.GROUP_ID_NOT_FOUND


def joined(room: Room, metadata: bytes, protocol_type: str = "consumer") -> JoinGroupResponse:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name="p", metadata=metadata)],
    )
    answers: list[JoinGroupResponse] = []
    room.shard.join_group(room.caller(3), request, answers.append)
    room.advance(5_000)
    return answers[0]


@pytest.mark.parametrize(
    ("metadata", "protocol_type"),
    [(b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", "connect"), (b"", "consumer"), (b"\0\1ab", "consumer")],
)
def test_members_that_are_no_consumers_stay_among_themselves(metadata: bytes, protocol_type: str) -> None:
    room = room_with()
    assert joined(room, metadata, protocol_type).error_code == 0
    answer = Consumer(room, "new")
    assert answer.beat() == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)


def test_an_assignor_with_data_of_its_own_stays() -> None:
    room = room_with()
    answer = joined(room, b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")
    request = SyncGroupRequest(group_id=GROUP, generation_id=answer.generation_id, member_id=answer.member_id)
    request.assignments = []
    answers: list[SyncGroupResponse] = []
    room.shard.sync_group(room.caller(5), request, answers.append)
    group = room.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    group.members[answer.member_id].assignment = b"\0\0\0\0\0\0\0\0\0\2xy"
    assert Consumer(room, "new").beat() == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_upgrade_that_cannot_be_written_did_not_happen() -> None:
    room = room_with()
    classic = classic_group(room, 2)
    room.journal.refuses_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert Consumer(room, "new").beat() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    room.journal.refuses_with = ErrorCode.NONE
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    settle(classic)
    check_all_read(classic, 6)


def test_an_empty_classic_group_becomes_a_consumer_group_and_the_other_way_round() -> None:
    room = room_with()
    (old,) = classic_group(room, 1)
    old.leave()
    new = Consumer(room, "new")
    assert new.beat() == ErrorCode.NONE
    assert room.group.epoch == FIRST_EPOCH
    assert new.partitions == [0, 1, 2, 3, 4, 5]
    new.leave()
    again = ClassicConsumer(room)
    settle([again])
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    assert again.partitions == [0, 1, 2, 3, 4, 5]


def test_a_new_member_comes_while_the_first_members_of_a_classic_group_wait() -> None:
    room = room_with()
    classic = [ClassicConsumer(room) for _ in range(2)]
    for member in classic:
        member.beat()
    assert room.shard.groups[GROUP].state_name == "PreparingRebalance"
    new = Consumer(room, "new")
    assert new.beat() == ErrorCode.NONE
    settle([*classic, new])
    assert {error for member in classic for error in member.errors} == {ErrorCode.REBALANCE_IN_PROGRESS}
    check_all_read([*classic, new], 6)


def test_a_new_member_comes_while_a_member_joins_that_does_not_know_the_protocol_of_before() -> None:
    room = room_with()
    subscription = bytes.fromhex("0000 00000001 0001 74 ffffffff".replace(" ", ""))
    answers: list[JoinGroupResponse] = []

    def join(member_id: str, *names: str) -> None:
        room.shard.join_group(
            room.caller(3),
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=name, metadata=subscription) for name in names],
            ),
            answers.append,
        )

    join("", "range", "cooperative-sticky")
    room.advance(3 * ROUND_MS)
    assert answers[0].protocol_name == "range"
    join("", "cooperative-sticky")
    assert Consumer(room, "new").beat() == ErrorCode.NONE
    assert [answer.error_code for answer in answers[1:]] == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert {member.topic_names for member in room.group.members.values()} == {frozenset({"t"})}


# Down.


@pytest.mark.parametrize("way", ["leaves", "falls silent"])
def test_the_last_new_member_goes_and_the_group_is_classic_again(way: str) -> None:
    room = room_with()
    classic = classic_group(room, 2)
    new = Consumer(room, "new")
    settle([*classic, new])
    epoch = room.group.epoch
    if way == "leaves":
        assert new.leave() == ErrorCode.NONE
    else:
        new.owned = set()
        for _ in range(50):
            settle(classic, 1)
    group = room.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    settle(classic)
    assert group.state_name == "Stable"
    assert group.generation == epoch + 1
    check_all_read(classic, 6)
    room.restart()
    stored = room.shard.groups[GROUP]
    assert isinstance(stored, ClassicGroup)
    assert set(stored.members) == set(group.members)


@pytest.mark.parametrize("policy", ["upgrade", "disabled"])
def test_the_policy_decides_downgrades(policy: str) -> None:
    room = room_with()
    classic = classic_group(room, 2)
    new = Consumer(room, "new")
    settle([*classic, new])
    room.configure(group_consumer_migration_policy=policy)
    new.leave()
    assert isinstance(room.shard.groups[GROUP], ConsumerGroup)
    settle(classic)
    check_all_read(classic, 6)


def test_a_downgrade_that_would_be_too_large_does_not_happen() -> None:
    room = room_with()
    classic = classic_group(room, 2)
    new = Consumer(room, "new")
    settle([*classic, new])
    room.configure(group_max_size="1")
    new.leave()
    assert isinstance(room.shard.groups[GROUP], ConsumerGroup)


def test_a_downgrade_that_did_not_happen_comes_with_the_next_member_that_goes() -> None:
    """Whichever protocol that one speaks: classic members are all that is left."""
    room = room_with()
    classic = classic_group(room, 3)
    new = Consumer(room, "new")
    settle([*classic, new])
    room.configure(group_consumer_migration_policy="disabled")
    new.leave()
    settle(classic)
    room.configure(group_consumer_migration_policy="bidirectional")
    gone = classic.pop()
    gone.leave()
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    settle(classic)
    assert room.shard.groups[GROUP].state_name == "Stable"
    check_all_read(classic, 6)


def test_an_instance_comes_back_by_the_classic_protocol() -> None:
    room = room_with()
    (other,) = classic_group(room, 1)
    new = Consumer(room, "new", instance="I")
    settle([other, new])
    had = set(new.owned)
    new.owned = set()
    back = ClassicConsumer(room, instance="I")
    back.beat()
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    # It goes on with what it had, and nobody has to join again.
    assert back.owned == had
    assert back.stage is Stage.STABLE
    other.beat()
    assert other.stage is Stage.STABLE
    check_all_read([other, back], 6)


@pytest.mark.parametrize("what", ["a member left", "the topic grew"])
def test_an_instance_comes_back_by_the_classic_protocol_and_finds_more_to_read(what: str) -> None:
    room = room_with()
    (other,) = classic_group(room, 1)
    new = Consumer(room, "new", instance="I")
    settle([other, new])
    new.owned = set()
    left = [other]
    partitions = 6
    if what == "a member left":
        other.leave()
        left = []
    else:
        partitions = 12
        room.topic("t", partitions)
    back = ClassicConsumer(room, instance="I")
    back.beat()
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    # Nobody who only heard of the generation knows that it leads, and looks at the topics.
    for member in [*left, back]:
        member.watches = False
    settle([*left, back])
    check_all_read([*left, back], partitions)


def test_an_instance_comes_back_by_the_classic_protocol_and_others_stay() -> None:
    room = room_with()
    stays, goes = Consumer(room, "stays"), Consumer(room, "goes", instance="I")
    settle([stays, goes])
    goes.owned = set()
    back = ClassicConsumer(room, instance="I")
    settle([stays, back])
    assert room.group.classic_members == 1
    check_all_read([stays, back], 6)
    # And once more by the newer one: the classic member is replaced without having left.
    back.owned = set()
    again = Consumer(room, "again", instance="I")
    settle([stays, again])
    assert room.group.classic_members == 0
    check_all_read([stays, again], 6)


def test_who_waits_for_a_target_is_told_to_join_the_classic_group() -> None:
    room = room_with(WORK_AT_ONCE_MAX + 1)
    new = Consumer(room, "new")
    assert new.beat() == ErrorCode.NONE
    classic = ClassicConsumer(room)
    classic.beat()
    assert classic.stage is Stage.JOINING
    new.leave()
    assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    room.long_work()
    room.deliver()
    settle([classic], 2)
    assert classic.errors == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert len(classic.owned) == WORK_AT_ONCE_MAX + 1


# Classic members of consumer groups.


def mixed(room: Room) -> tuple[ClassicConsumer, Consumer]:
    new, classic = Consumer(room, "new"), ClassicConsumer(room)
    settle([new, classic])
    check_all_read([new, classic], 6)
    return classic, new


def test_a_classic_member_joins_a_consumer_group() -> None:
    room = room_with()
    classic, new = mixed(room)
    assert (classic.stage, len(classic.owned), len(new.owned)) == (Stage.STABLE, 3, 3)
    described = {member.member_id: member.member_type for member in room.describe().members}
    assert described == {"new": 1, classic.id: 0}


def test_a_mixed_group_survives_a_restart() -> None:
    room = room_with()
    members = list(mixed(room))
    room.restart()
    settle(members)
    check_all_read(members, 6)
    third = Consumer(room, "third")
    settle([*members, third])
    check_all_read([*members, third], 6)


def test_a_silent_classic_member_is_taken_out_after_its_own_session() -> None:
    room = room_with()
    new, classic = Consumer(room, "new"), ClassicConsumer(room, session_ms=10_000)
    settle([new, classic])
    classic.owned = set()
    settle([new], 8)
    assert len(room.group.members) == 2
    settle([new], 4)
    assert set(room.group.members) == {"new"}
    check_all_read([new], 6)


def test_a_classic_member_that_does_not_join_again_in_time_is_taken_out() -> None:
    room = room_with()
    classic, new = ClassicConsumer(room, rebalance_ms=20_000), Consumer(room, "new")
    settle([new, classic])
    third = Consumer(room, "third")
    third.beat()
    request = HeartbeatRequest(group_id=GROUP, generation_id=classic.generation, member_id=classic.id)
    for _ in range(5):
        answer = room.ask(lambda reply: room.shard.heartbeat(room.caller(4), request, reply))
        room.advance(3_000)
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.id in room.group.members
    room.advance(6_000)
    assert classic.id not in room.group.members


def test_a_classic_member_that_does_not_sync_in_time_is_taken_out() -> None:
    room = room_with()
    new = Consumer(room, "new")
    new.beat()
    answer = joined(room, b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")
    assert (answer.error_code, answer.protocol_name, answer.leader) == (0, "p", "")
    settle([new], 20)
    assert answer.member_id in room.group.members
    settle([new], 10)
    assert answer.member_id not in room.group.members


def sync_error(room: Room, **fields: object) -> ErrorCode:
    request = SyncGroupRequest(**{"group_id": GROUP, "protocol_type": "consumer", "protocol_name": "range", **fields})  # type: ignore[arg-type]
    return ErrorCode(room.ask(lambda reply: room.shard.sync_group(room.caller(5), request, reply)).error_code)


def heartbeat_error(room: Room, **fields: object) -> ErrorCode:
    request = HeartbeatRequest(**{"group_id": GROUP, **fields})  # type: ignore[arg-type]
    return ErrorCode(room.ask(lambda reply: room.shard.heartbeat(room.caller(4), request, reply)).error_code)


def test_what_classic_members_are_refused() -> None:
    room = room_with()
    classic, new = mixed(room)
    me = {"member_id": classic.id, "generation_id": classic.generation}
    for refused in (sync_error, heartbeat_error):
        assert refused(room, **me) == ErrorCode.NONE
        assert refused(room, **{**me, "generation_id": 1}) == ErrorCode.ILLEGAL_GENERATION
        assert refused(room, **{**me, "member_id": "x"}) == ErrorCode.UNKNOWN_MEMBER_ID
        assert refused(room, **{**me, "group_instance_id": "i"}) == ErrorCode.UNKNOWN_MEMBER_ID
        assert refused(room, member_id="new", generation_id=new.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync_error(room, **me, protocol_name="sticky") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert sync_error(room, **me, protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert joined(room, b"\0\0", "connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # It knows none of the protocols that the classic members have.
    assert joined(room, b"\0\0\0\0\0\0\xff\xff\xff\xff").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_bytes_that_are_no_subscription() -> None:
    room = room_with()
    Consumer(room, "new").beat()
    assert joined(room, b"\0\1\7").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert joined(room, b"").error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_static_classic_member_fences_the_one_before() -> None:
    room = room_with()
    new = Consumer(room, "new")
    new.beat()
    one = ClassicConsumer(room, instance="I")
    settle([new, one])
    two = ClassicConsumer(room, instance="I")
    one.owned = set()
    settle([new, two])
    check_all_read([new, two], 6)
    assert (
        heartbeat_error(room, member_id=one.id, generation_id=one.generation, group_instance_id="I")
        == ErrorCode.FENCED_INSTANCE_ID
    )


def leave_errors(room: Room, *identities: tuple[str, str | None]) -> list[ErrorCode]:
    members = [MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in identities]
    request = LeaveGroupRequest(group_id=GROUP, members=members)
    answer: LeaveGroupResponse = room.ask(lambda reply: at_once(room.shard.leave_group(room.caller(5), request, reply)))
    return [ErrorCode(member.error_code) for member in answer.members]


def test_an_administrator_takes_members_out() -> None:
    room = room_with()
    static, new, third = Consumer(room, "s", instance="S"), Consumer(room, "new"), Consumer(room, "third")
    settle([static, new, third])
    assert leave_errors(room, ("", "S"), ("x", None), ("new", None), ("new", None), ("y", "S")) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
    ]
    assert set(room.group.members) == {"third"}
    assert leave_errors(room, ("x", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("meanwhile", ["one of them changes", "the group becomes a classic one"])
def test_many_members_are_taken_out_whatever_happens_meanwhile(meanwhile: str) -> None:
    room = room_with(partitions=40)
    new = Consumer(room, "new")
    classic = [ClassicConsumer(room) for _ in range(20)]
    settle([new, *classic])
    assert len(room.group.members) == 21
    identities = [MemberIdentity(member_id=one.id) for one in classic]
    answers: list[LeaveGroupResponse] = []
    steps = room.shard.leave_group(
        room.caller(5), LeaveGroupRequest(group_id=GROUP, members=identities), answers.append
    )
    next(steps)
    if meanwhile == "one of them changes":
        before = room.group.members[classic[0].id]
        classic[0].topics = ("t", "u")
        classic[0].join()
        room.deliver()
        assert room.group.members[classic[0].id] is not before
    else:
        new.leave()
        assert isinstance(room.shard.groups[GROUP], ClassicGroup)
    at_once(steps)
    assert [one.error_code for one in answers[0].members] == [ErrorCode.NONE] * 20
    assert set(room.shard.groups[GROUP].members) <= {"new"}


def test_a_leader_that_gave_one_partition_to_two() -> None:
    room = room_with()
    classic_group(room, 2)
    group = room.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    for member in group.members.values():
        member.assignment = b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    assert Consumer(room, "new").beat() == ErrorCode.NONE
    room.check()
