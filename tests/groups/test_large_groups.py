"""Classic groups of thousands: what happens to all members together is done step by step, and what happens between two
steps changes nothing of what was said.
"""

from __future__ import annotations

import pytest
from tests.groups.world import GROUP, REBALANCE_MS, SESSION_MS, TOPIC, Answer, World, subscription

from ottla.groups.classic.rebalance import MEMBERS_A_STEP
from ottla.groups.state import STEPS_AT_ONCE_MAX
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.steps import at_once

MANY = 1_000
NONE = ErrorCode.NONE
#: Members to whom something happens before others have their turn, and some for the leader's answer.
AT_ONCE_MAX = STEPS_AT_ONCE_MAX * MEMBERS_A_STEP

Joined = Answer[JoinGroupResponse]


@pytest.fixture
def world() -> World:
    return World()


def joined(world: World, *, static: bool = False, members: int = MANY) -> list[Joined]:
    """Members that have come to a group whose first rebalance ends now; the work that is left is the test's."""
    if static:
        answers = [world.join(instance=f"instance-{number}") for number in range(members)]
    else:
        answers = [world.enter()[1] for _ in range(members)]
    world.leave_long_work()
    world.advance(2 * world.settings.initial_rebalance_delay_ms)
    return answers


def stable(world: World, *, static: bool = False, members: int = MANY) -> tuple[int, list[str]]:
    answers = joined(world, static=static, members=members)
    world.step()
    ids = [answer.value.member_id for answer in answers]
    generation = answers[0].value.generation_id
    shares = {member_id: member_id.encode() for member_id in ids}
    synced = [world.sync(member_id, generation, shares if member_id == ids[0] else None) for member_id in ids]
    world.step()
    assert [answer.value.assignment for answer in synced] == [member_id.encode() for member_id in ids]
    return generation, ids


def test_members_of_a_generation_are_answered_some_at_a_time(world: World) -> None:
    answers = joined(world)
    at_once_answered = sum(answer.came for answer in answers)
    assert at_once_answered <= AT_ONCE_MAX
    for _ in range(3):
        before = sum(answer.came for answer in answers)
        world.step(1)
        assert sum(answer.came for answer in answers) - before <= MEMBERS_A_STEP
    world.step()
    assert {answer.error for answer in answers} == {NONE}
    assert {answer.value.generation_id for answer in answers} == {1}
    assert len(answers[0].value.members) == MANY
    assert not any(answer.value.members for answer in answers[1:])


def test_members_that_leave_and_come_while_the_generation_is_announced(world: World) -> None:
    answers = joined(world)
    ids = list(world.group().members)
    world.leave((ids[-1], None))
    new_id, new = world.enter()
    world.step()
    named = [member.member_id for member in answers[0].value.members]
    assert named == ids
    assert {member.metadata for member in answers[0].value.members} == {subscription(TOPIC)}
    assert {answer.value.generation_id for answer in answers} == {1}
    # They join again, and are one generation with the one that came.
    rejoined = [world.join(member_id) for member_id in ids[:-1]]
    world.step()
    assert {answer.value.generation_id for answer in [new, *rejoined]} == {2}
    assert new_id in {member.member_id for member in rejoined[0].value.members}


def test_a_static_member_that_is_replaced_while_the_generation_is_announced(world: World) -> None:
    answers = joined(world, static=True)
    ids = list(world.group().members)
    last = world.join(instance=f"instance-{MANY - 1}")
    assert world.group().state_name == "PreparingRebalance"
    world.step()
    assert [member.member_id for member in answers[0].value.members] == ids
    assert answers[-1].value.member_id == ids[-1]
    assert ids[-1] not in world.group().members
    assert not last.came  # the others are to join again first


def test_no_session_ends_before_its_member_is_answered(world: World) -> None:
    answers = joined(world)
    assert not answers[-1].came
    world.advance(20 * 60 * 1000)
    ids = list(world.group().members)
    assert len(ids) >= MANY - AT_ONCE_MAX  # those that were answered have been silent since
    world.step()
    assert all(answer.came for answer in answers)
    world.advance(SESSION_MS + 1_000)
    world.step()
    assert not world.group().members


def test_members_that_did_not_come_in_time_are_taken_out_some_at_a_time(world: World) -> None:
    _, ids = stable(world)
    world.advance(SESSION_MS - 1_000)
    rejoined = [world.join(ids[0], protocols=[("range", subscription("other"))])]
    for member_id in ids:
        world.heartbeat(member_id, 1)
    world.group().members[ids[1]].session_timeout_ms = 1
    for member in world.group().members.values():
        member.session_timeout_ms = 10 * REBALANCE_MS
        world.heartbeat(member.id, 1)
    world.advance(REBALANCE_MS)
    left = len(world.group().members)
    assert MANY - AT_ONCE_MAX <= left < MANY
    late = world.join(ids[-1])  # whose turn has not come
    gone = world.join(ids[1])
    assert gone.error is ErrorCode.UNKNOWN_MEMBER_ID
    world.step()
    assert list(world.group().members) == [ids[0], ids[-1]]
    assert [late.value.generation_id, rejoined[0].value.generation_id] == [2, 2]


def test_a_large_assignment_is_stored_some_members_at_a_time(world: World) -> None:
    answers = joined(world)
    world.step()
    ids = [answer.value.member_id for answer in answers]
    writes = world.journal.writes
    synced = [world.sync(member_id, 1) for member_id in ids[1:]]
    leader = world.sync(ids[0], 1, {member_id: member_id.encode() for member_id in ids})
    assert world.journal.writes == writes
    assert world.step() > MANY // MEMBERS_A_STEP
    assert world.journal.writes == writes + 1
    assert [answer.value.assignment for answer in [leader, *synced]] == [member_id.encode() for member_id in ids]
    world.restart()
    assert [member.assignment for member in world.group().members.values()] == [name.encode() for name in ids]


def test_a_member_that_comes_while_the_assignment_is_stored(world: World) -> None:
    answers = joined(world)
    world.step()
    ids = [answer.value.member_id for answer in answers]
    writes = world.journal.writes
    follower = world.sync(ids[1], 1)
    leader = world.sync(ids[0], 1, dict.fromkeys(ids, b"share"))
    world.step(10)
    world.enter()
    world.step()
    assert leader.error is follower.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.journal.writes == writes
    assert world.group().state_name == "PreparingRebalance"


def test_static_members_that_come_back_together_are_stored_together(world: World) -> None:
    _, ids = stable(world, static=True)
    writes = world.journal.writes
    back = [world.join(instance=f"instance-{number}") for number in range(100)]
    assert not any(answer.came for answer in back)
    world.step()
    assert {answer.error for answer in back} == {NONE}
    assert world.journal.writes <= writes + 2
    assert len(back[0].value.members) == MANY
    assert back[0].value.skip_assignment
    assert not any(answer.value.skip_assignment for answer in back[1:])
    world.restart()
    found = world.group().members
    assert list(found) == [answer.value.member_id for answer in back] + ids[100:]
    assert [member.assignment for member in found.values()] == [name.encode() for name in ids]


def test_a_rebalance_that_begins_before_a_returned_member_is_stored(world: World) -> None:
    _, ids = stable(world, static=True)
    back = world.join(instance="instance-7")
    world.step(3)
    world.leave((ids[8], None))
    world.step()
    assert not back.came  # it has joined, as all others have to
    rejoined = [world.join(name, instance=f"instance-{at}") for at, name in enumerate(ids) if at not in {7, 8}]
    world.step()
    assert {answer.value.generation_id for answer in [back, *rejoined]} == {2}


def test_returned_members_that_could_not_be_stored_are_who_they_were(world: World) -> None:
    _, ids = stable(world, static=True)
    back = [world.join(instance=f"instance-{number}") for number in range(3)]
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.step()
    assert {answer.error for answer in back} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert list(world.group().members) == ids
    assert world.heartbeat(ids[0], 1, instance="instance-0") is NONE
    world.journal.refusal = None
    again = world.join(instance="instance-0")
    world.step()
    assert again.error is NONE


def test_nothing_is_deleted_before_it_is_known_what_the_members_read(world: World) -> None:
    stable(world)
    world.commit(5, member_id=next(iter(world.group().members)), generation=1, topic="unread")
    assert deletion(world) == NONE
    world.commit(5, member_id=next(iter(world.group().members)), generation=1, topic="unread")
    for member_id in list(world.group().members):
        world.join(member_id, protocols=[("range", subscription(TOPIC, "more"))])
    assert world.group().generation == 2
    assert deletion(world) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    world.step()
    assert deletion(world) == NONE


def deletion(world: World) -> int:
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="unread", partitions=[partition])
    answer: Answer[OffsetDeleteResponse] = Answer()
    at_once(world.shard.offset_delete(world.caller(0), OffsetDeleteRequest(group_id=GROUP, topics=[topic]), answer))
    return answer.value.topics[0].partitions[0].error_code


def test_a_coordinator_that_goes_answers_some_at_a_time(world: World) -> None:
    stable(world, members=1)
    waiting = [world.enter()[1] for _ in range(MANY)]
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now)
    assert sum(answer.came for answer in waiting) <= AT_ONCE_MAX
    world.step()
    assert {answer.error for answer in waiting} == {ErrorCode.NOT_COORDINATOR}
    assert not world.shard.groups
    assert not len(world.shard.timers)


def test_offsets_are_not_said_to_be_missing_while_their_coordinator_goes(world: World) -> None:
    world.commit(5)
    world.leave_long_work()
    topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * MANY)]
    steps = world.shard.offset_fetch(OffsetFetchRequestGroup(group_id=GROUP, topics=topics), False)
    next(steps)
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now)
    world.step()
    assert at_once(steps).error_code == ErrorCode.NOT_COORDINATOR


def test_a_fault_in_one_answer_costs_the_others_nothing(world: World) -> None:
    def fail(_: JoinGroupResponse) -> None:
        raise ZeroDivisionError

    answers = [world.enter()[1] for _ in range(MANY)]
    group = world.group()
    for number in (3, MANY - 3):
        group.join_replies[list(group.members)[number]] = fail
    world.leave_long_work()
    world.advance(2 * world.settings.initial_rebalance_delay_ms)
    world.step()
    assert sum(answer.came for answer in answers) == MANY - 2
    assert not group.being_answered


def test_the_vote_stays_with_the_first_of_equals(world: World) -> None:
    """Counts are kept by what members say, and not by member: a return must not move its list to the end."""
    first = [("a", b""), ("b", b"")]
    world.join(instance="one", protocols=first)
    world.join(instance="two", protocols=[("b", b""), ("a", b"")])
    world.advance(2 * world.settings.initial_rebalance_delay_ms)
    assert world.group().protocol_name == "a"
    one, two = world.group().members
    world.sync(two, 1, protocol_name="a")
    world.sync(one, 1, {one: b"1", two: b"2"}, protocol_name="a")
    assert world.join(instance="one", protocols=first).error is NONE
    assert world.group().state_name == "Stable"
