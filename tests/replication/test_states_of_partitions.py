"""What decides whether a partition's state is taken: its epochs and its topic's id; and what a leader keeps of it."""

from __future__ import annotations

import pytest
from tests.replication.roles_world import OTHER, TP, US, RolesWorld
from tests.storage.log_world import append

from ottla.model import ErrorCode, TopicPartition
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader

THIRD = 3
ALL = (US, OTHER, THIRD)


def leading(epoch: int = 5, **options: object) -> RolesWorld:
    world = RolesWorld()
    assert world.role(epoch, replicas=ALL, partition_epoch=3, controller_epoch=4, **options) == ErrorCode.NONE
    return world


# Which states are taken


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "controller_epoch"),
    [(4, 9, 4), (5, 2, 4), (5, 9, 3), (6, 9, 3), (4, 2, 3), (5, 2, 5), (4, 9, 5)],
)
@pytest.mark.parametrize("leads", [US, OTHER])
def test_what_an_older_decision_says_changes_nothing(
    leads: int, leader_epoch: int, partition_epoch: int, controller_epoch: int
) -> None:
    world = RolesWorld()
    world.role(5, leader=leads, replicas=ALL, partition_epoch=3, controller_epoch=4)
    role: Leader | Follower = world.leader if leads == US else world.follower
    for leader in (US, OTHER):
        error = world.role(
            leader_epoch,
            leader=leader,
            replicas=ALL,
            isr=(leader,),
            partition_epoch=partition_epoch,
            controller_epoch=controller_epoch,
        )
        assert error == ErrorCode.STALE_CONTROLLER_EPOCH
    assert role.active
    assert role in (*world.replicas.leaders.values(), *world.replicas.followers.values())
    assert (role.epoch, role.partition_epoch, role.controller_epoch) == (5, 3, 4)


def test_what_a_new_controller_found_does_not_undo_what_it_has_decided_since() -> None:
    """Its first announcement was under way for long; the leader's AlterPartition, and its answer, were not."""
    world = leading(isr=(US,))
    leader = world.leader
    answered = world.state(5, replicas=ALL, isr=(US, OTHER), partition_epoch=4, controller_epoch=5)
    world.replicas.isr_changes._confirmed(leader, answered._replace(controller_epoch=-1))
    assert leader.isr.members == {US, OTHER}
    error = world.role(5, replicas=ALL, isr=(US,), partition_epoch=3, controller_epoch=5)
    assert error == ErrorCode.STALE_CONTROLLER_EPOCH
    assert leader.isr.members == {US, OTHER}
    assert leader.partition_epoch == 4


def test_the_same_state_twice_changes_nothing() -> None:
    world = leading()
    append(world.leader.log, b"a", b"b", epoch=5)
    leader, isr = world.leader, world.leader.isr
    leader.follower_fetched(OTHER, 2, 10)
    isr.propose(frozenset((US, OTHER)))
    told = list(world.told)
    assert world.role(5, replicas=ALL, partition_epoch=3, controller_epoch=4) == ErrorCode.NONE
    # The next controller says all of it again.
    assert world.role(5, replicas=ALL, partition_epoch=3, controller_epoch=6) == ErrorCode.NONE
    assert world.leader is leader
    assert leader.controller_epoch == 6
    assert isr.pending == {US, OTHER}
    assert isr.followers[OTHER].end == 2
    assert world.told == told


def test_a_follower_stays_the_same_within_a_leader_epoch() -> None:
    world = RolesWorld()
    world.role(5, leader=OTHER, replicas=ALL)
    follower = world.follower
    assert world.role(5, leader=OTHER, replicas=ALL, isr=(OTHER,), partition_epoch=1) == ErrorCode.NONE
    assert world.follower is follower
    assert world.told == [("follows", 5)]
    assert world.role(5, leader=THIRD, replicas=ALL, partition_epoch=2) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.role(5, leader=US, replicas=ALL, partition_epoch=2) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.follower is follower


def test_a_leader_that_is_not_in_its_own_isr_is_answered_and_no_fault_of_ours() -> None:
    world = leading()
    leader = world.leader
    assert world.role(6, replicas=ALL, isr=(OTHER, THIRD), controller_epoch=4) == ErrorCode.INVALID_REQUEST
    assert world.leader is leader
    assert (leader.active, leader.epoch) == (True, 5)
    fresh = RolesWorld()
    assert fresh.role(1, replicas=ALL, isr=()) == ErrorCode.INVALID_REQUEST
    assert not fresh.replicas.leaders


def test_a_state_of_a_partition_that_has_no_replica_here_gives_no_role() -> None:
    world = leading()
    assert world.role(6, leader=OTHER, replicas=(OTHER, THIRD), controller_epoch=4) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_topic_under_another_id_is_refused_while_the_one_before_has_a_role() -> None:
    world = leading()
    error = world.role(6, replicas=ALL, controller_epoch=4, topic_id=b"x" * 16)
    assert error == ErrorCode.INCONSISTENT_TOPIC_ID
    assert (world.leader.active, world.leader.epoch) == (True, 5)
    # An old controller knows no ids.
    assert world.role(6, replicas=ALL, controller_epoch=4, topic_id=bytes(16)) == ErrorCode.NONE


@pytest.mark.parametrize("leads", [US, OTHER])
def test_a_log_of_an_earlier_topic_that_has_no_role_is_set_aside(leads: int) -> None:
    """Found at a start whose tree said nothing of the topic, whose new life comes with its state."""
    world = leading()
    append(world.leader.log, b"old", epoch=5)
    world.stop()
    world.start()
    error = world.role(1, leader=leads, replicas=ALL, topic_id=b"x" * 16, is_new=False)
    assert error == ErrorCode.NONE
    role: Leader | Follower = world.leader if leads == US else world.follower
    assert (role.log.end_offset, role.log.topic_id) == (0, b"x" * 16)
    (removal,) = world.removed
    assert removal.path.endswith("-stray")
    assert world.ports.disk.is_directory(removal.path)
    removal.run()
    assert not world.ports.disk.exists(removal.path)


# What a leader keeps


def test_how_far_each_follower_is_stays_known_in_the_same_leader_epoch() -> None:
    world = leading()
    leader = world.leader
    append(leader.log, b"a", b"b", b"c", epoch=5)
    leader.follower_fetched(OTHER, 3, 10)
    leader.follower_fetched(THIRD, 2, 10)
    assert leader.high_watermark == 2
    assert world.role(5, replicas=ALL, isr=(US, OTHER), partition_epoch=4, controller_epoch=4) == ErrorCode.NONE
    assert world.leader is leader
    assert {each.id: each.end for each in leader.isr.followers.values()} == {OTHER: 3, THIRD: 2}
    # What the two have that are left.
    assert leader.high_watermark == 3


def test_a_leader_goes_on_in_its_own_next_leader_epoch() -> None:
    world = leading()
    leader = world.leader
    append(leader.log, b"a", b"b", epoch=5)
    leader.follower_fetched(OTHER, 2, 10)
    assert leader.high_watermark == 0
    told = list(world.told)
    assert world.role(6, replicas=ALL, isr=(US, OTHER), partition_epoch=4, controller_epoch=4) == ErrorCode.NONE
    assert world.leader is leader
    assert (leader.active, leader.epoch, leader.high_watermark) == (True, 6, 2)
    assert leader.log.epochs.entries() == [(5, 0), (6, 2)]
    # Coordinators go on, and so do all who wait.
    assert world.told == told
    assert leader.fencing(5) == ErrorCode.FENCED_LEADER_EPOCH
    assert leader.fencing(-2) == ErrorCode.FENCED_LEADER_EPOCH


def test_a_leader_epoch_further_on_may_have_had_another_leader() -> None:
    world = leading()
    leader = world.leader
    append(leader.log, b"a", b"b", epoch=5)
    leader.follower_fetched(OTHER, 2, 10)
    assert world.role(7, replicas=ALL, isr=(US, OTHER), partition_epoch=5, controller_epoch=4) == ErrorCode.NONE
    assert world.leader is not leader
    assert leader.present is world.leader
    # The follower may have cut its log for the one in between.
    assert world.leader.isr.followers[OTHER].end == 0


def test_what_is_pending_ends_with_the_controllers_next_decision() -> None:
    world = leading(isr=(US, OTHER))
    leader = world.leader
    leader.isr.propose(frozenset(ALL))
    assert world.role(5, replicas=ALL, isr=(US,), partition_epoch=4, controller_epoch=4) == ErrorCode.NONE
    assert leader.isr.pending is None
    assert leader.isr.maximal == {US}


def test_what_is_pending_stays_so_where_the_assignment_alone_is_another() -> None:
    """A controller of Kafka writes that first, and may end in between: the next one announces the state as it was."""
    world = leading(isr=(US, OTHER))
    leader, changes = world.leader, world.replicas.isr_changes
    append(leader.log, b"a", epoch=5)
    leader.follower_fetched(OTHER, 1, 10)
    world.replicas.follower_fetched(leader, THIRD, 1, -1, None, log_start=0)
    (ask,) = changes.take(1)
    grown = (*ALL, 4)
    assert world.role(5, replicas=grown, isr=(US, OTHER), partition_epoch=3, controller_epoch=6) == ErrorCode.NONE
    assert leader.isr.replicas == grown
    assert set(leader.isr.followers) == {OTHER, THIRD, 4}
    # The controller may have taken the third one by now, and elect it.
    append(leader.log, b"b", epoch=5)
    leader.follower_fetched(OTHER, 2, 10)
    assert leader.high_watermark == 1
    taken = world.state(5, replicas=grown, isr=ALL, partition_epoch=4, controller_epoch=6)
    changes.answered(ask, ErrorCode.NONE, taken, 11)
    assert leader.isr.members == set(ALL)
    assert (leader.isr.pending, leader.partition_epoch) == (None, 4)


def test_nothing_is_pending_with_a_replica_that_is_none_any_more() -> None:
    world = leading(isr=(US, OTHER))
    leader = world.leader
    leader.isr.propose(frozenset(ALL))
    assert world.role(5, replicas=(US, OTHER), isr=(US, OTHER), partition_epoch=3, controller_epoch=6) == (
        ErrorCode.NONE
    )
    assert leader.isr.pending is None
    assert leader.isr.maximal == {US, OTHER}


def test_a_replica_that_is_assigned_and_one_that_is_not_any_more() -> None:
    world = leading(isr=(US, OTHER))
    leader = world.leader
    leader.follower_fetched(OTHER, 0, 10)
    world.role(6, replicas=(US, OTHER, 4), isr=(US, OTHER), partition_epoch=4, controller_epoch=4)
    assert world.leader is leader
    assert set(leader.isr.followers) == {OTHER, 4}
    assert not leader.follower_fetched(THIRD, 0, 11)


def test_a_partition_that_others_lead_is_known_to_be_theirs() -> None:
    world = leading()
    world.role(6, leader=OTHER, replicas=ALL, partition_epoch=4, controller_epoch=4)
    assert world.replicas.why_not_leader(TopicPartition(*TP)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
