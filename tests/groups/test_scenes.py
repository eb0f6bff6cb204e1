"""What happens to a group, told from its members' side: the scenes that every text on consumer groups shows."""

from __future__ import annotations

from tests.groups.world import SESSION_MS, TOPIC, World, commit_error, subscription

from ottla.model import ErrorCode

# Four scenes.


def test_scene_join() -> None:
    world = World()
    generation, (first,) = world.stable(1)

    second, joining = world.enter()
    # The first learns of it with its next heartbeat, and both join.
    assert not joining.came
    assert world.heartbeat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    again = world.join(first)

    assert again.value.generation_id == joining.value.generation_id == generation + 1
    assert again.value.leader == joining.value.leader == first
    assert [member.member_id for member in again.value.members] == [first, second]
    assert joining.value.members == []
    world.share_out(generation + 1, [first, second])


def test_scene_crash() -> None:
    world = World()
    generation, (first, second) = world.stable(2)

    world.advance(SESSION_MS - 1)
    assert world.heartbeat(first, generation) is ErrorCode.NONE
    world.advance(1)  # the second was not heard of for a session

    assert world.group().state_name == "PreparingRebalance"
    assert world.heartbeat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(first).value.generation_id == generation + 1
    world.share_out(generation + 1, [first])
    assert world.heartbeat(second, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_scene_leave() -> None:
    world = World()
    generation, (first, second) = world.stable(2)

    assert world.leave((first, None)).value.members[0].error_code == ErrorCode.NONE

    # At once, and the second is the leader now.
    assert world.heartbeat(second, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    again = world.join(second)
    assert again.value.leader == second
    assert [member.member_id for member in again.value.members] == [second]
    world.share_out(generation + 1, [second])


def test_scene_commit() -> None:
    world = World()
    generation, (first, second) = world.stable(2)
    assert commit_error(world.commit(5, member_id=first, generation=generation)) is ErrorCode.NONE
    assert world.committed() == 5
    third, _ = world.enter()

    # Until it has joined again a member may save what it read: its generation is still the group's.
    assert commit_error(world.commit(7, member_id=first, generation=generation)) is ErrorCode.NONE
    world.join(first)
    world.join(second)

    # The next generation has begun. What belongs to the one before is refused, and before its share is known nobody
    # commits in the new one.
    assert world.group().state_name == "CompletingRebalance"
    assert commit_error(world.commit(8, member_id=first, generation=generation)) is ErrorCode.ILLEGAL_GENERATION
    in_new = world.commit(8, member_id=first, generation=generation + 1)
    assert commit_error(in_new) is ErrorCode.REBALANCE_IN_PROGRESS
    world.share_out(generation + 1, [first, second, third])
    assert commit_error(world.commit(9, member_id=first, generation=generation + 1)) is ErrorCode.NONE
    assert world.committed() == 9


# Four triggers.


def test_trigger_membership() -> None:
    world = World()
    generation, _ = world.stable(1)
    world.enter()
    assert world.group().state_name == "PreparingRebalance"
    assert world.group().generation == generation


def test_trigger_poll_timeout() -> None:
    """A client whose application does not poll leaves by itself, and comes back with its next poll."""
    world = World()
    generation, (first, second) = world.stable(2)
    world.leave((second, None))
    world.join(first)
    world.share_out(generation + 1, [first])

    back, joining = world.enter()
    world.join(first)
    assert joining.value.generation_id == generation + 2
    world.share_out(generation + 2, [first, back])


def test_trigger_subscription() -> None:
    world = World()
    generation, (first, second) = world.stable(2)

    unchanged = world.join(second)
    assert unchanged.value.generation_id == generation
    assert world.group().state_name == "Stable"

    joining = world.join(second, protocols=[("range", subscription(TOPIC, "payments"))])
    assert world.heartbeat(first, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    leader = world.join(first)
    assert joining.value.generation_id == generation + 1
    told = {member.member_id: member.metadata for member in leader.value.members}
    assert told[second] == subscription(TOPIC, "payments")


def test_trigger_partition_count() -> None:
    """The leader watches the topics: with more partitions than before it joins again, though nothing else changed."""
    world = World()
    generation, (first, second) = world.stable(2)
    joining = world.join(first)
    assert not joining.came
    assert world.heartbeat(second, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(second)
    assert joining.value.generation_id == generation + 1


def test_the_sleeping_consumer() -> None:
    """max.poll.interval.ms has passed while it worked on what it read: its share is another's, its commit fails."""
    world = World()
    generation, (sleeper, other) = world.stable(2)
    assert commit_error(world.commit(10, member_id=sleeper, generation=generation)) is ErrorCode.NONE

    # Its own client's heartbeat thread takes it out, and the other gets all partitions.
    world.leave((sleeper, None))
    world.join(other)
    world.share_out(generation + 1, [other])
    assert commit_error(world.commit(15, member_id=other, generation=generation + 1)) is ErrorCode.NONE

    # It wakes up and commits. This is where clients say that the group has rebalanced and given its partitions away.
    late = commit_error(world.commit(12, member_id=sleeper, generation=generation))
    assert late is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.committed() == 15
