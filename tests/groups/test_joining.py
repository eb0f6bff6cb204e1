"""JoinGroup: who gets in, in which generation, as whom."""

from __future__ import annotations

import pytest
from tests.groups.world import GROUP, REBALANCE_MS, SESSION_MS, World, subscription

from ottla.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS
from ottla.model import ErrorCode

DELAY_MS = 3_000


@pytest.fixture
def world() -> World:
    return World()


def test_a_dynamic_member_is_given_an_id_first(world: World) -> None:
    first = world.join(version=4)
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.value.member_id.startswith("client-")
    assert world.group().members == {}
    joining = world.join(first.value.member_id)
    assert not joining.came
    assert list(world.group().members) == [first.value.member_id]


def test_an_id_that_was_given_out_is_no_static_members(world: World) -> None:
    member_id = world.join().value.member_id
    refused = world.join(member_id, instance="one")
    assert (refused.error, refused.value.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert member_id in world.group().pending_join


def test_before_version_4_it_joins_at_once(world: World) -> None:
    joining = world.join(version=3)
    world.advance(DELAY_MS)
    assert joining.error is ErrorCode.NONE
    assert joining.value.leader == joining.value.member_id


def test_version_0_has_one_timeout(world: World) -> None:
    world.join(version=0, rebalance_ms=-1)
    (member,) = world.group().members.values()
    assert member.rebalance_timeout_ms == SESSION_MS


def test_an_id_that_nobody_uses_is_forgotten_after_a_session(world: World) -> None:
    member_id = world.join().value.member_id
    world.advance(SESSION_MS)
    assert not world.group().pending_join
    assert world.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_for_its_delay(world: World) -> None:
    _, joining = world.enter()
    world.advance(DELAY_MS - 1)
    assert not joining.came
    world.advance(1)
    assert joining.value.generation_id == 1


def test_whoever_comes_prolongs_the_delay(world: World) -> None:
    _, first = world.enter()
    world.advance(DELAY_MS - 1)
    _, second = world.enter()
    world.advance(1)
    assert not first.came
    world.advance(DELAY_MS - 1)
    assert not first.came
    world.advance(1)
    assert first.value.generation_id == second.value.generation_id == 1


def test_the_delay_ends_with_the_rebalance_timeout(world: World) -> None:
    start = world.now.monotonic_ms
    _, first = world.enter(rebalance_ms=10_000)
    while not first.came:
        world.enter(rebalance_ms=10_000)
        world.advance(500)
        assert world.now.monotonic_ms - start <= 10_500
    assert world.now.monotonic_ms - start > 9_000


def test_without_a_delay_it_is_the_next_moment() -> None:
    world = World(group_initial_rebalance_delay_ms="0")
    _, joining = world.enter()
    world.advance(0)
    assert joining.value.generation_id == 1


def test_only_the_leader_is_told_of_all(world: World) -> None:
    entered = [world.enter(protocols=[("range", subscription(f"topic-{number}"))]) for number in range(3)]
    world.advance(3 * DELAY_MS)
    leader, *others = (answer.value for _, answer in entered)
    assert [member.member_id for member in leader.members] == [member_id for member_id, _ in entered]
    assert leader.members[2].metadata == subscription("topic-2")
    assert all(other.members == [] and other.leader == leader.member_id for other in others)


def test_the_protocol_that_most_like_best(world: World) -> None:
    likes = [("sticky", "range", "mine"), ("range", "sticky"), ("range", "sticky")]
    entered = [world.enter(protocols=[(name, name.encode()) for name in names]) for names in likes]
    world.advance(3 * DELAY_MS)
    leader = entered[0][1].value
    assert leader.protocol_name == "range"
    assert [member.metadata for member in leader.members] == [b"range"] * 3


def test_who_knows_no_common_protocol_stays_out(world: World) -> None:
    world.stable(1)
    assert world.join(protocols=[("sticky", b"")]).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols=[]).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(group="new", protocols=[]).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(group="new", protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "new" not in world.shard.groups
    assert world.group().state_name == "Stable"


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1])
def test_sessions_have_bounds(world: World, session_ms: int) -> None:
    assert world.join(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_unknown_id(world: World) -> None:
    assert world.join("nobody").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert GROUP not in world.shard.groups
    world.stable(1)
    assert world.join("nobody").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_answer_that_got_lost_is_given_again(world: World) -> None:
    (first, one), (second, two) = world.enter(), world.enter()
    world.advance(3 * DELAY_MS)
    # In the middle of the rebalance: the same generation, and the leader is told of all once more.
    assert world.join(second).value == two.value
    assert world.join(first).value == one.value
    assert world.group().generation == 1


def test_joining_twice_answers_the_first_attempt(world: World) -> None:
    member_id, lost = world.enter()
    again = world.join(member_id)
    assert lost.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.advance(3 * DELAY_MS)
    assert again.value.generation_id == 1
    assert not world.group().join_replies


def test_who_does_not_join_again_in_time_is_out(world: World) -> None:
    generation, (first, second) = world.stable(2)
    world.enter()
    joining = world.join(first)
    for _ in range(REBALANCE_MS // 5_000):
        world.heartbeat(second, generation)
        world.advance(5_000)
    assert joining.value.generation_id == generation + 1
    assert second not in {member.member_id for member in joining.value.members}
    assert world.heartbeat(second, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_again_is_replaced(world: World) -> None:
    generation, (first, second) = world.stable(2)
    world.leave((first, None))
    world.enter()
    assert world.join(second).value.leader == second
    assert world.group().generation == generation + 1


def test_a_new_member_is_given_up_after_five_minutes(world: World) -> None:
    generation, (first,) = world.stable(1, rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    _, joining = world.enter(rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        assert not joining.came
        world.heartbeat(first, generation)
        world.advance(5_000)
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group() -> None:
    world = World(group_max_size="2")
    generation, (_, second) = world.stable(2)
    refused = world.join()
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.value.member_id == ""
    assert world.join(second).value.generation_id == generation
    assert world.group().state_name == "Stable"


def test_ids_beyond_the_size_are_given_out_but_of_no_use() -> None:
    """Who comes first in a rebalance gets in."""
    world = World(group_max_size="2")
    ids = [world.join().value.member_id for _ in range(4)]
    answers = [world.join(member_id) for member_id in ids]
    assert [answer.came and answer.error is ErrorCode.GROUP_MAX_SIZE_REACHED for answer in answers] == [
        False,
        False,
        True,
        True,
    ]
    world.advance(3 * DELAY_MS)
    assert [answer.value.generation_id for answer in answers] == [1, 1, -1, -1]


def test_ids_that_are_given_out_have_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.groups.classic.group.PENDING_IDS_MAX", 3)
    ids = [world.join().value.member_id for _ in range(5)]
    assert list(world.group().pending_join) == ids[2:]
    timers = len(world.shard.timers)
    assert world.join(ids[0]).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.join(ids[2]).came
    world.join()
    assert len(world.shard.timers) == timers + 2  # one more id, and the first rebalance's delay


def test_a_member_that_comes_too_late_into_a_full_group_loses_its_place() -> None:
    world = World(group_max_size="2")
    _, (first, second) = world.stable(2)
    world.settings = world.settings._replace(size_max=1)
    joining = world.join(first)
    assert world.join(second).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [member.member_id for member in joining.value.members] == [first]


def test_metadata_is_any_bytes(world: World) -> None:
    """The coordinator need not understand them; it only cannot say then what the group reads."""
    for data in (b"", b"\0", b"\xff" * 50, subscription("t")[:-1]):
        _, joining = world.enter(group=repr(data), protocols=[("range", data)])
        world.advance(DELAY_MS)
        assert joining.value.members[0].metadata == data
        assert world.group(repr(data)).subscribed_topics is None
        assert world.group(repr(data)).is_subscribed("anything")


def test_a_client_id_of_any_length() -> None:
    world = World()
    name = world.shard.state.new_member_id("ö" * 32_000)
    assert len(name.encode()) < 32_767


def test_all_are_answered_when_the_coordinator_goes(world: World) -> None:
    _, (first,) = world.stable(1)
    joining = [world.enter()[1] for _ in range(300)]
    _, waiting = world.enter(group="other")
    leader = world.join(first)
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now)
    assert waiting.error is ErrorCode.NOT_COORDINATOR
    assert leader.error is ErrorCode.NONE
    assert all(answer.error is ErrorCode.NONE for answer in joining)
