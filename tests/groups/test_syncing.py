"""SyncGroup: shares, who gets them, and when."""

from __future__ import annotations

import pytest
from tests.groups.world import REBALANCE_MS, SESSION_MS, World

from ottla.groups.classic.syncing import ASSIGNMENTS_BYTES_MAX
from ottla.model import ErrorCode


@pytest.fixture
def world() -> World:
    return World()


def completing(world: World, members: int = 2) -> list[str]:
    entered = [world.enter()[0] for _ in range(members)]
    world.advance(3 * 3_000)
    assert world.group().state_name == "CompletingRebalance"
    return entered


def test_followers_wait_for_the_leader(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    assert not waiting.came
    leader = world.sync(first, 1, {first: b"one", second: b"two"})
    assert (leader.value.assignment, waiting.value.assignment) == (b"one", b"two")
    assert waiting.value.protocol_type == "consumer"
    assert waiting.value.protocol_name == "range"


def test_who_comes_later_gets_its_share_too(world: World) -> None:
    first, second = completing(world)
    world.sync(first, 1, {first: b"one", second: b"two"})
    assert world.sync(second, 1).value.assignment == b"two"
    assert world.sync(second, 1).value.assignment == b"two"


def test_a_followers_shares_do_not_count(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1, {second: b"everything"})
    world.sync(first, 1, {second: b"little"})
    assert waiting.value.assignment == b"little"


def test_a_member_that_was_left_out_gets_nothing(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    world.sync(first, 1, {first: b"all"})
    assert waiting.error is ErrorCode.NONE
    assert waiting.value.assignment == b""


def test_an_assignment_for_members_who_are_not_there_is_ignored(world: World) -> None:
    (first,) = completing(world, 1)
    answer = world.sync(first, 1, {"gone": b"lost", first: b"mine"})
    assert answer.value.assignment == b"mine"
    world.restart()
    assert list(world.group().members) == [first]


def test_an_assignment_after_a_member_left_is_for_a_generation_that_is_over(world: World) -> None:
    first, second = completing(world)
    world.leave((second, None))
    assert world.sync(first, 1, {first: b"1", second: b"2"}).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_shares_are_safe_before_they_are_told(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    world.journal.held = True
    leader = world.sync(first, 1, {second: b"two"})
    assert not leader.came
    assert world.group().state_name == "CompletingRebalance"
    world.journal.commit()
    assert leader.came
    assert waiting.value.assignment == b"two"


def test_a_member_that_comes_before_the_shares_are_safe_ends_the_generation(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    world.journal.held = True
    leader = world.sync(first, 1, {second: b"two"})
    world.enter()
    assert leader.error is waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.journal.commit()
    assert world.group().state_name == "PreparingRebalance"


def test_a_leader_hands_out_no_more_than_it_may(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    written = len(world.journal.batches)
    leader = world.sync(first, 1, {first: bytes(ASSIGNMENTS_BYTES_MAX), second: b"2"})
    assert leader.error is waiting.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.journal.batches) == written
    assert world.group().state_name == "PreparingRebalance"


@pytest.mark.parametrize("lost", [False, True])
def test_shares_that_cannot_be_stored(world: World, lost: bool) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    if lost:
        world.journal.held = True
        leader = world.sync(first, 1, {second: b"two"})
        world.journal.lose(ErrorCode.NOT_COORDINATOR)
        error = ErrorCode.NOT_COORDINATOR
    else:
        world.journal.refusal = error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        leader = world.sync(first, 1, {second: b"two"})
    assert leader.error is waiting.error is error
    assert leader.value.assignment == b""
    # All join again, and nobody is stuck.
    world.journal.refusal = None
    world.journal.held = False
    assert world.group().state_name == "PreparingRebalance"
    joining = world.join(first)
    world.join(second)
    assert joining.value.generation_id == 2
    world.share_out(2, [first, second])


def test_a_member_that_never_syncs_is_out_after_the_rebalance_timeout(world: World) -> None:
    first, second = completing(world)
    world.sync(first, 1, {})
    for _ in range(REBALANCE_MS // 5_000):
        assert world.group().state_name == "Stable"
        world.heartbeat(first, 1)
        world.heartbeat(second, 1)
        world.advance(5_000)
    assert world.group().state_name == "PreparingRebalance"
    assert world.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(first).value.generation_id == 2


def test_a_leader_that_never_syncs_is_replaced(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    for _ in range(REBALANCE_MS // 5_000):
        world.heartbeat(first, 1)
        world.advance(5_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(second).value.leader == second
    world.share_out(2, [second])


def test_who_waits_for_its_share_need_not_send_heartbeats(world: World) -> None:
    first, second = completing(world)
    waiting = world.sync(second, 1)
    for _ in range(3):
        world.heartbeat(first, 1)
        world.advance(SESSION_MS - 1)
    assert not waiting.came
    world.sync(first, 1, {second: b"two"})
    assert waiting.value.assignment == b"two"
    # From here on it does again.
    world.advance(SESSION_MS - 1)
    world.heartbeat(first, 1)
    assert world.group().state_name == "Stable"
    world.advance(1)
    assert world.group().state_name == "PreparingRebalance"


def test_shares_that_take_long_to_be_stored_set_no_session_back(world: World) -> None:
    """Clients send heartbeats meanwhile. They were taken out when a session had passed since the plan came."""
    first, second = completing(world)
    waiting = world.sync(second, 1)
    world.journal.held = True
    world.sync(first, 1, {second: b"two"})
    world.advance(SESSION_MS // 2)
    assert [world.heartbeat(each, 1) for each in (first, second)] == [ErrorCode.NONE] * 2
    world.advance(SESSION_MS // 2 - 1)
    world.journal.commit()
    assert waiting.value.assignment == b"two"
    world.advance(SESSION_MS // 2)
    assert [world.heartbeat(each, 1) for each in (first, second)] == [ErrorCode.NONE] * 2


def test_syncing_twice_answers_the_first_attempt(world: World) -> None:
    first, second = completing(world)
    lost = world.sync(second, 1)
    again = world.sync(second, 1)
    assert lost.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(first, 1, {second: b"two"})
    assert again.value.assignment == b"two"


def test_whoever_does_not_belong_here(world: World) -> None:
    assert world.sync("nobody", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    first, second = completing(world)
    assert world.sync("nobody", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync(first, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert world.sync(first, 2).error is ErrorCode.ILLEGAL_GENERATION
    assert world.sync(first, 1, protocol_name="sticky").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync(first, 1, protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    # Before version 5 it is not said.
    assert not world.sync(second, 1, protocol_type=None, protocol_name=None).came


def test_a_member_that_leaves_is_answered(world: World) -> None:
    _, second = completing(world)
    waiting = world.sync(second, 1)
    world.leave((second, None))
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID
