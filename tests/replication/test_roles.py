"""Which role a broker takes in a partition, what it tells its listeners, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.replication.roles_world import DIRECTORIES, OTHER, TP, US, RolesWorld
from tests.storage.log_world import append

from ottla.model import ErrorCode, TopicPartition
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.storage.formats import offset_checkpoint

BOTH = (US, OTHER)


class Waits:
    """Completes when its partition has moved on; notes when it was asked."""

    def __init__(self, world: RolesWorld) -> None:
        self.asked = 0
        self._world = world
        world.replicas.waiters.park(self, [TP], 10**15)

    def try_complete(self, now_ms: int) -> bool:
        self.asked += 1
        return TP not in self._world.replicas.leaders

    def expire(self, now_ms: int) -> None:
        raise AssertionError("nothing is that late")

    def failed(self, fault: Exception) -> None:
        raise AssertionError("nothing fails") from fault


def test_a_leader_becomes_a_follower_and_a_leader_again() -> None:
    world = RolesWorld()
    assert world.role(epoch=1, replicas=BOTH, isr=(US,)) == ErrorCode.NONE
    append(world.leader.log, b"a", b"b", epoch=1)
    world.leader.advance()
    former = world.leader
    assert world.role(epoch=2, leader=OTHER, replicas=BOTH) == ErrorCode.NONE
    assert not former.active
    assert TP not in world.replicas.leaders
    assert world.replicas.why_not_leader(TP) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (world.follower.leader_id, world.follower.epoch, world.replicas.epoch(TP)) == (OTHER, 2, 2)
    # What it knew to be committed it still knows, in both directions.
    assert world.follower.high_watermark == 2
    assert world.role(epoch=3, replicas=BOTH) == ErrorCode.NONE
    assert TP not in world.replicas.followers
    assert (world.leader.epoch, world.leader.high_watermark) == (3, 2)
    # A follower resigns as a leader does: whoever fetches for it has to stop.
    assert world.told == [("leads", 1), ("resigned", -1), ("follows", 2), ("resigned", -1), ("leads", 3)]


def test_a_state_of_an_older_epoch_changes_nothing() -> None:
    world = RolesWorld()
    world.role(epoch=5, replicas=BOTH, isr=(US,))
    leader = world.leader
    assert world.role(epoch=4, leader=OTHER, replicas=BOTH) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.leader is leader
    assert leader.active
    world.role(epoch=6, leader=OTHER, replicas=BOTH)
    follower = world.follower
    assert world.role(epoch=5, replicas=BOTH) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert world.follower is follower


def test_the_same_epoch_again_changes_only_who_is_in_sync() -> None:
    world = RolesWorld()
    world.role(epoch=1, replicas=BOTH)
    leader = world.leader
    append(leader.log, b"a", epoch=1)
    leader.advance()
    assert leader.high_watermark == 0
    waiter = Waits(world)
    assert world.role(epoch=1, replicas=BOTH, isr=(US,), partition_epoch=1) == ErrorCode.NONE
    assert world.leader is leader
    assert leader.high_watermark == 1
    world.replicas.waiters.settle(0)
    assert waiter.asked == 1
    assert world.told == [("leads", 1)]


def test_those_who_wait_hear_of_a_change_of_roles() -> None:
    world = RolesWorld()
    world.role(epoch=1, replicas=BOTH)
    waiter = Waits(world)
    world.role(epoch=2, leader=OTHER, replicas=BOTH)
    world.replicas.waiters.settle(0)
    assert (waiter.asked, len(world.replicas.waiters)) == (1, 0)


def test_a_role_that_is_given_up_is_told_and_the_log_stays() -> None:
    world = RolesWorld()
    world.role(epoch=1)
    log = world.leader.log
    assert world.replicas.stop(TP, delete=False) == ErrorCode.NONE
    assert world.told == [("leads", 1), ("resigned", -1)]
    assert world.replicas.epoch(TP) == -1
    assert world.replicas.directories.get(TP) is log
    assert world.replicas.stop(TP, delete=True) == ErrorCode.NONE
    assert world.replicas.directories.get(TP) is None


def test_a_follower_fetches_and_what_both_have_is_committed() -> None:
    world = RolesWorld()
    world.role(epoch=1, replicas=BOTH)
    leader = world.leader
    append(leader.log, b"a", b"b", b"c", epoch=1)
    assert not leader.advance()
    assert leader.follower_fetched(OTHER, 2)
    assert leader.high_watermark == 2
    assert not leader.follower_fetched(OTHER, 1)
    assert not leader.follower_fetched(77, 3)
    assert leader.high_watermark == 2


def test_the_watermark_of_a_follower_is_checkpointed_and_known_to_the_next_life() -> None:
    world = RolesWorld()
    world.role(epoch=1, leader=OTHER, replicas=BOTH)
    append(world.follower.log, b"a", b"b", b"c", epoch=1)
    world.follower.leader_committed(2)
    assert world.replicas.high_watermarks() == {TP: 2}
    world.stop()
    path = f"{DIRECTORIES[0]}/replication-offset-checkpoint"
    assert offset_checkpoint.read(world.ports.disk, path) == {TP: 2}
    world.start()
    world.role(epoch=2, leader=OTHER, replicas=BOTH, is_new=False)
    assert (world.follower.log.end_offset, world.follower.high_watermark) == (3, 2)


def test_a_directory_that_fails_takes_both_kinds_of_role_with_it() -> None:
    for leads in (US, OTHER):
        world = RolesWorld()
        world.role(epoch=1, leader=leads, replicas=BOTH)
        world.replicas.fail_directory_of(TP, "worn out")
        assert (world.replicas.leaders, world.replicas.followers) == ({}, {})
        assert world.replicas.why_not_leader(TP) == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.role(epoch=2, leader=leads, replicas=BOTH, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_directory_keeps_no_later_topic_of_the_name_from_its_role() -> None:
    world = RolesWorld()
    world.role(epoch=1)
    world.replicas.fail_directory_of(TP, "worn out")
    assert world.replicas.stop(TP, delete=True) == ErrorCode.NONE
    assert world.role(epoch=0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.role(epoch=0, topic_id=bytes([9] * 16)) == ErrorCode.NONE
    assert world.leader.log.end_offset == 0
    assert world.replicas.directories.directory_of(TP) == DIRECTORIES[1]


def lost_records(lost: str) -> RolesWorld:
    """Three records were checkpointed, and the partition's folder is gone, or the end of its log."""
    world = RolesWorld()
    world.role(epoch=1)
    append(world.leader.log, b"a", b"b", b"c", epoch=1)
    world.leader.advance()
    world.stop()
    folder = f"{DIRECTORIES[0]}/t-0"
    if lost == "folder":
        world.ports.disk.remove_tree(folder)
    else:
        file = world.ports.disk.open(f"{folder}/00000000000000000000.log")
        file.truncate(file.size() - 10)
        file.close()
    world.start()
    return world


LOST = pytest.mark.parametrize("lost", ["folder", "end"])


@LOST
def test_a_leader_that_has_lost_its_log_does_not_begin_anew(lost: str) -> None:
    world = lost_records(lost)
    assert world.role(epoch=2, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.replicas.why_not_leader(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.replicas.leaders == {}
    # While nobody leads, nobody has the records.
    assert world.role(epoch=3, leader=-1, replicas=BOTH, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR


@LOST
def test_a_follower_that_has_lost_its_log_is_filled_from_its_leader(lost: str) -> None:
    """Not while the controller counts it as in sync: it would be elected with nothing."""
    world = lost_records(lost)
    assert world.role(epoch=2, leader=OTHER, replicas=BOTH, is_new=False) == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.role(epoch=3, leader=OTHER, replicas=BOTH, isr=(OTHER,), is_new=False) == ErrorCode.NONE
    assert (world.follower.log.end_offset, world.follower.high_watermark) == (0, 0)


def test_an_offline_partition_does_not_keep_others_from_being_made() -> None:
    world = lost_records("folder")
    states = [world.state(2, is_new=False), world.state(1, is_new=False, partition=1)]
    answers = world.replicas.apply(states, lambda _: world.config)
    assert [answers[each] for each in sorted(answers)] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_epochs_survive_a_crash_after_a_change_of_roles() -> None:
    world = RolesWorld()
    world.role(epoch=1, replicas=BOTH, isr=(US,))
    append(world.leader.log, b"a", epoch=1)
    flush = world.leader.log.prepare_flush()
    assert flush is not None
    flush.run()
    world.leader.log.flushed(flush)
    world.role(epoch=2, leader=OTHER, replicas=BOTH)
    world.ports.disk.crash(Random(1))
    world.start()
    world.role(epoch=3, replicas=BOTH, isr=(US,), is_new=False)
    assert world.leader.log.epochs.entries() == [(1, 0), (3, 1)]


class Broken:
    """A listener that raises at whatever it is told."""

    def became_leader(self, leader: Leader) -> None:
        raise ValueError("planted")

    def became_follower(self, follower: Follower) -> None:
        raise ValueError("planted")

    def resigned(self, tp: TopicPartition) -> None:
        raise ValueError("planted")


def test_a_fault_of_one_listener_costs_no_other_and_no_partition_its_role() -> None:
    world = RolesWorld(listeners=[Broken()])
    partitions = range(4)
    states = [world.state(1, replicas=BOTH, partition=partition) for partition in partitions]
    assert {*world.replicas.apply(states, lambda _: world.config).values()} == {ErrorCode.NONE}
    assert world.told == [("leads", 1)] * 4
    waits = Waits(world)
    leaders = list(world.replicas.leaders.values())
    for path in DIRECTORIES:
        world.replicas.fail_directory(path, "planted")
    assert world.told[4:] == [("resigned", -1)] * 4
    assert not any(leader.active for leader in leaders)
    assert waits.asked == 1
    assert not world.replicas.leaders
    assert len(world.failed) == 4
    assert len(world.lost) == 1


def test_a_fault_of_a_listener_costs_no_follower_its_role() -> None:
    world = RolesWorld(listeners=[Broken()])
    world.role(1, replicas=BOTH)
    assert world.role(2, leader=OTHER, replicas=BOTH) == ErrorCode.NONE
    assert world.follower.epoch == 2


def test_roles_are_refused_before_there_is_an_owner() -> None:
    world = RolesWorld()
    world.stop()
    world.owned = False
    world.start()
    with pytest.raises(AssertionError, match="only after `open`"):
        world.role(1)
    assert world.replicas.directories.get(TP) is None


class Halting:
    """A listener that raises at its next calls, and else does as it is told."""

    def __init__(self, faults: int) -> None:
        self.faults = faults
        self.calls = 0
        #: What it does for the partition: half of it is done where it raises.
        self.role = "none"

    def _take(self, role: str) -> None:
        self.calls += 1
        self.role = "half"
        if self.faults:
            self.faults -= 1
            raise ValueError("planted")
        self.role = role

    def became_leader(self, leader: Leader) -> None:
        assert self.role == "none" or self.role.startswith("follows")
        self._take(f"leads in {leader.epoch}")

    def became_follower(self, follower: Follower) -> None:
        assert self.role == "none"
        self._take(f"follows in {follower.epoch}")

    def resigned(self, tp: TopicPartition) -> None:
        self._take("none")


def pass_time(world: RolesWorld, seconds: float, *, every_s: float = 2.0) -> None:
    """As housekeeping does it."""

    async def work() -> None:
        for _ in range(int(seconds / every_s)):
            if world.replicas.lacks_some:
                await world.replicas.change(world.replicas.make_missing())
            await asyncio.sleep(every_s)

    world.ports.loop.run_until_complete(work())


def test_a_listener_that_could_not_take_a_role_on_is_called_again_until_it_can() -> None:
    halting = Halting(faults=4)
    world = RolesWorld(listeners=[halting])
    world.role(1, replicas=BOTH)
    pass_time(world, 60)
    assert halting.role == "leads in 1"
    assert not world.replicas.lacks_some
    assert world.told == [("leads", 1)]


def test_a_listener_that_could_not_resign_is_called_again() -> None:
    halting = Halting(faults=0)
    world = RolesWorld(listeners=[halting])
    world.role(1, replicas=BOTH)
    halting.faults = 2
    world.replicas.stop(TP, delete=True)
    assert halting.role == "half"
    pass_time(world, 60)
    assert halting.role == "none"
    assert not world.replicas.lacks_some


def test_a_listener_that_is_behind_takes_on_the_role_of_the_moment() -> None:
    halting = Halting(faults=1)
    world = RolesWorld(listeners=[halting])
    world.role(1, replicas=BOTH)
    world.role(2, leader=OTHER, replicas=BOTH)
    assert halting.role in {"none", "follows in 2"}
    world.role(3, replicas=BOTH)
    assert halting.role == "leads in 3"
    assert not world.replicas.lacks_some


def test_the_pauses_grow() -> None:
    halting = Halting(faults=1_000_000)
    world = RolesWorld(listeners=[halting])
    world.role(1, replicas=BOTH)
    pass_time(world, 3600)
    assert 50 < halting.calls < 75
