"""Static members: known by their instance id, whoever they were before."""

from __future__ import annotations

import pytest
from tests.groups.world import SESSION_MS, Answer, World, commit_error, subscription

from ottla.model import ErrorCode


@pytest.fixture
def world() -> World:
    return World()


def fleet(world: World, *instances: str) -> list[str]:
    """A stable group of static members, the leader first."""
    answers = [world.join(instance=instance) for instance in instances]
    world.advance(4 * 3_000)
    ids = [answer.value.member_id for answer in answers]
    shares = {member_id: instance.encode() for member_id, instance in zip(ids, instances, strict=True)}
    for member_id, instance in list(zip(ids, instances, strict=True))[::-1]:
        world.sync(member_id, 1, shares, instance=instance)
    assert world.group().state_name == "Stable"
    return ids


def test_joins_without_asking_for_an_id(world: World) -> None:
    joining = world.join(instance="one")
    world.advance(3_000)
    assert joining.value.member_id.startswith("one-")
    assert joining.value.members[0].group_instance_id == "one"


def test_comes_back_without_a_rebalance(world: World) -> None:
    leader, follower = fleet(world, "one", "two")
    back = world.join(instance="two")
    new_id = back.value.member_id
    assert new_id != follower
    assert (back.value.generation_id, back.value.leader, back.value.members) == (1, leader, [])
    assert world.sync(new_id, 1, instance="two").value.assignment == b"two"
    assert world.heartbeat(new_id, 1, instance="two") is ErrorCode.NONE
    assert world.heartbeat(leader, 1, instance="one") is ErrorCode.NONE


@pytest.mark.parametrize("version", [8, 9])
def test_a_leader_that_comes_back_need_not_assign(world: World, version: int) -> None:
    leader, follower = fleet(world, "one", "two")
    back = world.join(instance="one", version=version).value
    new_id = back.member_id
    assert world.group().leader_id == new_id
    if version >= 9:
        assert back.skip_assignment
        assert back.leader == new_id
        assert {member.member_id for member in back.members} == {new_id, follower}
    else:
        # It is not told that it leads, or it would assign anew.
        assert not back.skip_assignment
        assert (back.leader, back.members) == (leader, [])
    assert world.group().state_name == "Stable"


def test_the_one_before_is_fenced(world: World) -> None:
    leader, follower = fleet(world, "one", "two")
    world.join(instance="two")
    assert world.heartbeat(follower, 1, instance="two") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(follower, instance="two").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.sync(follower, 1, instance="two").error is ErrorCode.FENCED_INSTANCE_ID
    late = world.commit(3, member_id=follower, generation=1, instance="two")
    assert commit_error(late) is ErrorCode.FENCED_INSTANCE_ID
    left = world.leave((follower, "two")).value.members[0]
    assert left.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert leader in world.group().members


def test_two_with_one_instance_id_at_the_same_time(world: World) -> None:
    """The later one has it; whoever waits is told."""
    first = world.join(instance="one")
    second = world.join(instance="one")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    world.advance(3_000)
    assert second.error is ErrorCode.NONE
    waiting = world.join(second.value.member_id, instance="one")
    assert waiting.error is ErrorCode.NONE


def test_who_waits_for_its_share_is_fenced(world: World) -> None:
    answers = [world.join(instance="one"), world.join(instance="two")]
    world.advance(3 * 3_000)
    follower = answers[1].value.member_id
    waiting = world.sync(follower, 1, instance="two")
    world.join(instance="two")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    # In the middle of a rebalance its return starts another one.
    assert world.group().state_name == "PreparingRebalance"


def test_an_unknown_instance(world: World) -> None:
    leader, _ = fleet(world, "one", "two")
    assert world.heartbeat(leader, 1, instance="three") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(leader, instance="two").error is ErrorCode.FENCED_INSTANCE_ID


def test_other_protocols_cause_a_rebalance(world: World) -> None:
    both = [("range", b"r"), ("sticky", b"s")]
    answer = world.join(instance="one", protocols=both)
    world.advance(3_000)
    member_id = answer.value.member_id
    world.sync(member_id, 1, {member_id: b"all"}, instance="one")
    back = world.join(instance="one", protocols=[("sticky", b"s")])
    assert back.value.generation_id == 2
    assert back.value.protocol_name == "sticky"


def test_other_metadata_under_the_same_protocol_does_not(world: World) -> None:
    _, follower = fleet(world, "one", "two")
    back = world.join(instance="two", protocols=[("range", subscription("other"))])
    assert back.value.generation_id == 1
    assert world.group().members[back.value.member_id].protocols == (("range", subscription("other")),)
    assert follower not in world.group().members


def test_away_for_a_session_it_is_out(world: World) -> None:
    leader, _ = fleet(world, "one", "two")
    world.advance(SESSION_MS - 1)
    world.heartbeat(leader, 1, instance="one")
    world.advance(1)
    assert world.group().state_name == "PreparingRebalance"
    assert list(world.group().members) == [leader]


def test_keeps_its_place_in_a_rebalance_that_it_misses(world: World) -> None:
    leader, follower = fleet(world, "one", "two")
    world.join(leader, instance="one")
    for _ in range(12):
        world.heartbeat(follower, 1, instance="two")
        world.advance(5_000)
    assert world.group().state_name == "CompletingRebalance"
    assert list(world.group().members) == [leader, follower]


def test_nobody_who_is_there_and_no_time_to_wait_for_them(world: World) -> None:
    """A rebalance time-out of 0 is over at once, again and again, until the static member comes or its session ends."""
    static = world.join(instance="one", rebalance_ms=0)
    dynamic, joining = world.enter()
    world.advance(9_000)
    generation = joining.value.generation_id
    world.share_out(generation, [static.value.member_id, dynamic])
    world.leave((dynamic, None))
    world.advance(SESSION_MS // 2)
    assert world.group().state_name == "PreparingRebalance"
    assert world.heartbeat(static.value.member_id, generation, instance="one") is ErrorCode.REBALANCE_IN_PROGRESS
    world.advance(SESSION_MS)
    assert world.group().state_name == "Empty"


def test_a_session_that_ends_while_its_new_id_is_stored() -> None:
    """The log takes longer than a session: who waited for it is missed all the same when it falls silent after that."""
    world = World()
    static = world.join(instance="one")
    world.advance(3_000)
    world.share_out(1, [static.value.member_id])
    world.journal.held = True
    back = world.join(instance="one")
    world.advance(SESSION_MS + 1)
    assert not back.came
    world.journal.commit()
    assert back.error is ErrorCode.NONE
    assert world.group().state_name == "Stable"
    world.advance(SESSION_MS)
    assert world.group().state_name == "Empty"


def test_the_new_id_is_stored(world: World) -> None:
    fleet(world, "one", "two")
    new_id = world.join(instance="two").value.member_id
    world.restart()
    assert world.heartbeat(new_id, 1, instance="two") is ErrorCode.NONE
    assert world.sync(new_id, 1, instance="two").value.assignment == b"two"


def test_it_is_answered_when_that_is_stored(world: World) -> None:
    fleet(world, "one", "two")
    world.journal.held = True
    back = world.join(instance="two")
    assert not back.came
    world.journal.commit()
    assert back.error is ErrorCode.NONE


def test_nothing_changes_when_it_cannot_be_stored(world: World) -> None:
    _, follower = fleet(world, "one", "two")
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.join(instance="two").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.heartbeat(follower, 1, instance="two") is ErrorCode.NONE
    assert not world.group().join_replies


def test_a_rebalance_that_begins_meanwhile_takes_it_along(world: World) -> None:
    leader, _ = fleet(world, "one", "two")
    world.journal.held = True
    back = world.join(instance="two")
    again = world.join(leader, instance="one")
    world.journal.commit()
    assert back.value.generation_id == again.value.generation_id == 2


def test_an_administrator_takes_it_out_by_its_instance(world: World) -> None:
    leader, _ = fleet(world, "one", "two")
    answers: Answer = world.leave(("", "two"), ("", "nobody"), ("", None))
    errors = [ErrorCode(entry.error_code) for entry in answers.value.members]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(world.group().members) == [leader]


def test_an_id_that_was_given_out_is_not_for_an_instance(world: World) -> None:
    member_id = world.join().value.member_id
    assert world.join(member_id, instance="one").error is ErrorCode.UNKNOWN_SERVER_ERROR
