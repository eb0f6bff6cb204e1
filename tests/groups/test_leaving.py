"""Heartbeats, silence, goodbyes, and what is left."""

from __future__ import annotations

import pytest
from tests.groups.world import GROUP, SESSION_MS, World, commit_error

from ottla.model import ErrorCode
from ottla.steps import at_once


@pytest.fixture
def world() -> World:
    return World()


def test_heartbeats_of_a_stable_group(world: World) -> None:
    generation, (first, _) = world.stable(2)
    assert world.heartbeat(first, generation) is ErrorCode.NONE
    assert world.heartbeat(first, generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(first, generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat("nobody", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("nobody", 1, group="none") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_keeps_the_session(world: World) -> None:
    generation, (first,) = world.stable(1)
    for _ in range(5):
        world.advance(SESSION_MS - 1)
        assert world.heartbeat(first, generation) is ErrorCode.NONE
    world.advance(SESSION_MS)
    assert world.heartbeat(first, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.group().state_name == "Empty"


def test_a_commit_keeps_it_too(world: World) -> None:
    generation, (first,) = world.stable(1)
    for offset in range(5):
        world.advance(SESSION_MS - 1)
        assert commit_error(world.commit(offset, member_id=first, generation=generation)) is ErrorCode.NONE


def test_several_leave_in_one_request(world: World) -> None:
    generation, (first, second, third) = world.stable(3)
    answer = world.leave((first, None), ("nobody", None), (second, None)).value
    assert [ErrorCode(entry.error_code) for entry in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert world.join(third).value.generation_id == generation + 1


def test_leaving_a_group_that_is_not(world: World) -> None:
    answer = world.leave(("a", None), ("", "i"), group="none").value
    assert answer.error_code == ErrorCode.NONE
    assert [entry.error_code for entry in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_the_last_one_leaves_an_empty_group(world: World) -> None:
    generation, (first,) = world.stable(1)
    world.journal.held = True
    answer = world.leave((first, None))
    assert world.group().state_name == "Empty"
    assert not answer.came  # until it is safe that nobody is in it
    world.journal.commit()
    assert answer.came
    world.restart()
    assert world.group().state_name == "Empty"
    assert world.group().generation == generation + 1
    assert world.group().protocol_type == "consumer"


@pytest.mark.parametrize("is_lost", [True, False])
def test_the_last_one_is_not_out_where_nobody_knows_whether_that_is_stored(world: World, is_lost: bool) -> None:
    """It was answered that it is, and stood in its group after the partition was loaded again."""
    _, (first,) = world.stable(1)
    world.journal.held = True
    answer = world.leave((first, None))
    if is_lost:
        world.journal.lose(ErrorCode.NOT_COORDINATOR)
    else:
        world.journal.time_out()
    assert answer.error is (ErrorCode.NOT_COORDINATOR if is_lost else ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_a_member_that_leaves_while_it_joins_is_answered(world: World) -> None:
    member_id, joining = world.enter()
    world.leave((member_id, None))
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID
    world.advance(3_000)
    assert world.group().state_name == "Empty"


def test_an_id_that_was_not_used_is_given_back(world: World) -> None:
    member_id = world.join().value.member_id
    assert world.leave((member_id, None)).value.members[0].error_code == ErrorCode.NONE
    assert not world.group().pending_join
    assert world.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_others_do_not_wait_for_an_id_that_is_given_back(world: World) -> None:
    _, (first,) = world.stable(1)
    pending = world.join().value.member_id
    joining = world.join(first)
    assert not joining.came
    world.leave((pending, None))
    assert joining.came


def test_others_do_not_wait_for_an_id_that_nobody_uses(world: World) -> None:
    _, (first,) = world.stable(1)
    world.join()
    joining = world.join(first)
    world.advance(SESSION_MS)
    assert joining.came


def test_described(world: World) -> None:
    _, (first, second) = world.stable(2)
    answers: list = []
    answers.append(at_once(world.shard.describe_group(GROUP, 6)))
    (found,) = answers
    assert (found.error_code, found.group_state) == (ErrorCode.NONE, "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    assert [member.member_id for member in found.members] == [first, second]
    assert found.members[1].member_assignment == second.encode()
    assert found.members[1].client_id == "client"
    assert found.members[1].client_host == "/127.0.0.1"


@pytest.mark.parametrize(("version", "error"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_described_though_it_is_not(world: World, version: int, error: ErrorCode) -> None:
    answers: list = []
    answers.append(at_once(world.shard.describe_group("none", version)))
    assert (answers[0].error_code, answers[0].group_state) == (error, "Dead")


def test_listed_by_state_and_type(world: World) -> None:
    world.stable(1, group="busy")
    world.commit(1, group="simple")

    def listed(states: list[str], types: list[str]) -> list[tuple[str, str, str, str]]:
        found = at_once(world.shard.list_groups(set(states), set(types)))
        return [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in found]

    busy, simple = ("busy", "consumer", "Stable", "classic"), ("simple", "", "Empty", "classic")
    assert listed([], []) == [busy, simple]
    assert listed(["stable", "dead"], []) == [busy]
    assert listed([], ["classic"]) == [busy, simple]
    assert listed([], ["consumer"]) == []
    assert listed(["nonsense"], []) == []


def test_deleted_when_it_is_empty(world: World) -> None:
    _, (first,) = world.stable(1)
    world.commit(5, member_id=first, generation=1)
    answers: list[ErrorCode] = []
    at_once(world.shard.delete_group(world.caller(2), "none", answers.append))
    at_once(world.shard.delete_group(world.caller(2), GROUP, answers.append))
    world.leave((first, None))
    at_once(world.shard.delete_group(world.caller(2), GROUP, answers.append))
    assert answers == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    for _ in range(2):
        assert GROUP not in world.shard.groups
        assert world.shard.state.offsets.count == 0
        world.restart()


def test_a_group_that_cannot_be_deleted_stays(world: World) -> None:
    world.commit(5)
    answers: list[ErrorCode] = []
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    at_once(world.shard.delete_group(world.caller(2), GROUP, answers.append))
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert world.committed() == 5
