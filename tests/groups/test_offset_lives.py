"""How offsets end: deleted by administrators, with their topics, or by time."""

from __future__ import annotations

import pytest
from tests.groups.world import DAY_MS, GROUP, TOPIC, Answer, World, commit_error, subscription

from ottla.groups.offsets.sweeping import LOOK_AGAIN_MS, STEPS_AT_ONCE_MAX
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.hot.offset_records import offset_key, offset_value
from ottla.steps import at_once

CHECK_MS = 600_000
RETENTION_MS = 7 * DAY_MS


@pytest.fixture
def world() -> World:
    return World()


def delete(world: World, topic: str, partitions: list[int], group: str = GROUP) -> Answer[OffsetDeleteResponse]:
    entries = [OffsetDeleteRequestPartition(partition_index=number) for number in partitions]
    request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=entries)])
    answer: Answer[OffsetDeleteResponse] = Answer()
    at_once(world.shard.offset_delete(world.caller(0), request, answer))
    return answer


def errors(answer: Answer[OffsetDeleteResponse]) -> list[ErrorCode]:
    return [ErrorCode(entry.error_code) for entry in answer.value.topics[0].partitions]


def keep_alive(world: World, ids: list[str], generation: int, ms: int) -> None:
    """A long time in which the members go on sending heartbeats."""
    step = 9_000_000
    for member in world.group().members.values():
        member.session_timeout_ms = 10_000_000
    for _ in range(ms // step + 1):
        for member_id in ids:
            assert world.heartbeat(member_id, generation) is ErrorCode.NONE
        world.advance(step)


# By an administrator.


def test_deleted_offsets_are_gone_for_good(world: World) -> None:
    for number in range(3):
        world.commit(number, partition=number)
    assert errors(delete(world, TOPIC, [0, 2, 9])) == [ErrorCode.NONE] * 3
    for _ in range(2):
        assert [world.committed(number) for number in range(3)] == [-1, 1, -1]
        world.restart()


def test_not_in_topics_that_members_read(world: World) -> None:
    generation, (first,) = world.stable(1)
    world.commit(5, member_id=first, generation=generation)
    world.commit(6, member_id=first, generation=generation, topic="old")
    assert errors(delete(world, TOPIC, [0])) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert errors(delete(world, "old", [0])) == [ErrorCode.NONE]
    assert world.committed() == 5
    assert world.committed(topic="old") == -1


def test_not_while_others_than_consumers_are_in_it(world: World) -> None:
    world.enter(protocol_type="connect")
    world.advance(3_000)
    assert delete(world, TOPIC, [0]).error is ErrorCode.NON_EMPTY_GROUP
    assert delete(world, TOPIC, [0], group="none").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_all_of_it_in_doubt_about_what_members_read(world: World) -> None:
    generation, (first,) = world.stable(1, protocols=[("range", b"\xff")])
    world.commit(5, member_id=first, generation=generation)
    assert errors(delete(world, TOPIC, [0])) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


# With their topic.


def test_of_deleted_topics(world: World) -> None:
    for number in range(STEPS_AT_ONCE_MAX + 50):
        world.commit(1, group=f"group-{number}")
        world.commit(2, group=f"group-{number}", topic="other")
    offsets = world.shard.state.offsets
    offsets.put_pending(9, "group-1", TOPIC, 4, b"")
    before = offsets.count
    world.shard.topics_deleted([TOPIC], world.now)
    # Some at a time.
    assert before // 2 < offsets.count < before
    world.shard.topics_deleted(["never"], world.now)
    world.advance(10)
    assert offsets.count == before // 2
    assert not offsets.has_open("group-1")
    world.restart()
    assert world.committed(group="group-7") == -1
    assert world.committed(group="group-7", topic="other") == 2


def test_of_deleted_topics_that_cannot_be_written_go_later(world: World) -> None:
    for number in range(STEPS_AT_ONCE_MAX // 2):
        world.commit(1, group=f"group-{number}")
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.shard.topics_deleted([TOPIC], world.now)
    world.advance(10_000)
    assert world.shard.state.offsets.count == STEPS_AT_ONCE_MAX // 2
    world.journal.refusal = None
    world.advance(1_000)
    assert world.shard.state.offsets.count == 0
    world.restart()
    assert world.committed(group="group-7") == -1


def test_not_of_a_new_topic_of_that_name(world: World) -> None:
    world.commit(1)
    world.commit(2, partition=1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.shard.topics_deleted([TOPIC], world.now)
    world.journal.refusal = None
    world.commit(7)
    world.advance(1_000)
    assert (world.committed(0), world.committed(1)) == (7, -1)
    # Which may be deleted as well.
    world.shard.topics_deleted([TOPIC], world.now)
    assert world.committed() == -1


def test_not_of_a_new_topics_transaction(world: World) -> None:
    world.commit(1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.shard.topics_deleted([TOPIC], world.now)
    world.journal.refusal = None
    offsets = world.shard.state.offsets
    offsets.put_pending(9, GROUP, TOPIC, 1, offset_value(8, -1, "", 1, -1, bytes(16)))
    world.advance(1_000)
    world.shard.end_transaction(9, committed=True)
    assert (world.committed(0), world.committed(1)) == (-1, 8)


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_a_new_topics_transaction_may_leave_is_looked_at_when_it_has_ended(
    world: World, is_committed: bool
) -> None:
    """A tombstone would void its offset. Given up, it left the deleted topic's in its place."""
    world.commit(1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.shard.topics_deleted([TOPIC], world.now)
    world.journal.refusal = None
    world.shard.state.offsets.put_pending(9, GROUP, TOPIC, 0, offset_value(8, -1, "", 1, -1, bytes(16)))
    world.advance(30_000)
    assert TOPIC in world.shard.unsettled_deletions
    world.shard.topics_deleted(["other"], world.now)
    assert TOPIC in world.shard.unsettled_deletions
    assert "other" not in world.shard.unsettled_deletions
    world.shard.end_transaction(9, committed=is_committed)
    world.advance(LOOK_AGAIN_MS)
    assert world.committed() == (8 if is_committed else -1)
    assert not world.shard.unsettled_deletions


def test_a_topic_that_is_deleted_once_more_before_all_of_the_first_are_gone(world: World) -> None:
    world.commit(1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.shard.topics_deleted([TOPIC], world.now)
    world.journal.refusal = None
    world.commit(7)
    world.shard.topics_deleted([TOPIC], world.now)
    world.commit(9, partition=1)
    world.advance(10_000)
    assert (world.committed(0), world.committed(1)) == (-1, 9)


def test_a_topics_id_tells_its_offsets_from_those_of_the_deleted_one(world: World) -> None:
    """As after a load, which has both and nothing else to tell them by."""
    old_id, new_id = TopicId(b"o" * 16), TopicId(b"n" * 16)
    world.commit(1, topic_id=old_id, version=10)
    world.commit(2, partition=1, topic_id=new_id, version=10)
    world.commit(3, partition=2)
    state = PartitionState(
        topic=TOPIC,
        partition=0,
        topic_id=new_id,
        controller_epoch=Epoch(1),
        leader=BrokerId(1),
        leader_epoch=Epoch(1),
        isr=(BrokerId(1),),
        replicas=(BrokerId(1),),
        partition_epoch=0,
    )
    assert world.metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=[state]))
    world.shard.topics_deleted([TOPIC], world.now)
    assert [world.committed(number) for number in range(3)] == [-1, 2, -1]


def test_a_deletion_is_settled_when_its_tombstones_are_committed(world: World) -> None:
    world.commit(1)
    world.journal.held = True
    world.shard.topics_deleted([TOPIC, "never"], world.now)
    assert set(world.shard.unsettled_deletions) == {TOPIC, "never"}
    world.journal.time_out()
    world.advance(1_000)
    assert set(world.shard.unsettled_deletions) == {TOPIC, "never"}
    world.journal.commit()
    assert set(world.shard.unsettled_deletions) == set()


# By time.


def test_of_a_simple_consumer_from_the_commit_on(world: World) -> None:
    world.commit(1)
    world.advance(RETENTION_MS // 2)
    world.commit(2, partition=1)
    world.advance(RETENTION_MS // 2 + CHECK_MS)
    assert (world.committed(0), world.committed(1)) == (-1, 2)
    world.advance(RETENTION_MS // 2)
    assert GROUP not in world.shard.groups
    world.restart()
    assert GROUP not in world.shard.groups


def test_of_an_empty_group_from_its_last_day_on(world: World) -> None:
    generation, (first,) = world.stable(1)
    world.commit(1, member_id=first, generation=generation)
    keep_alive(world, [first], generation, RETENTION_MS)
    world.leave((first, None))
    world.advance(RETENTION_MS - 1)
    assert world.committed() == 1
    world.advance(CHECK_MS + 1)
    assert GROUP not in world.shard.groups
    world.restart()
    assert GROUP not in world.shard.groups


def test_that_day_is_remembered(world: World) -> None:
    generation, (first,) = world.stable(1)
    world.commit(1, member_id=first, generation=generation)
    world.leave((first, None))
    world.advance(RETENTION_MS - 10_000)
    world.restart()
    assert world.committed() == 1
    world.advance(CHECK_MS + 10_000)
    assert world.committed() == -1


def test_of_a_group_with_members_only_what_they_do_not_read(world: World) -> None:
    generation, (first,) = world.stable(1)
    world.commit(1, member_id=first, generation=generation)
    world.commit(2, member_id=first, generation=generation, topic="old")
    keep_alive(world, [first], generation, RETENTION_MS + CHECK_MS)
    assert (world.committed(), world.committed(topic="old")) == (1, -1)


def test_not_of_a_group_whose_members_read_who_knows_what(world: World) -> None:
    generation, (first,) = world.stable(1, protocols=[("range", b"?")])
    world.commit(2, member_id=first, generation=generation, topic="old")
    keep_alive(world, [first], generation, RETENTION_MS + CHECK_MS)
    assert world.committed(topic="old") == 2


def test_not_of_others_than_consumers_while_they_are_there(world: World) -> None:
    world.journal.add((offset_key(GROUP, "old", 0), b"\0\0" + bytes(8) + b"\0\0" + bytes(8)))
    member_id, joining = world.enter(protocol_type="connect")
    world.advance(3_000)
    world.sync(member_id, 1, {}, protocol_type="connect")
    assert joining.came
    world.restart()
    assert world.group().retention_base_ms(0) is None


@pytest.mark.parametrize("retention_ms", [1_000, 30 * DAY_MS])
def test_of_a_client_that_chose_the_time_itself(world: World, retention_ms: int) -> None:
    assert commit_error(world.commit(1, retention_ms=retention_ms, version=4)) is ErrorCode.NONE
    world.restart()
    world.advance(min(retention_ms, RETENTION_MS + CHECK_MS) - 1)
    assert world.committed() == 1
    world.advance(max(retention_ms, CHECK_MS))
    assert world.committed() == -1


def test_not_while_a_transaction_is_open(world: World) -> None:
    world.commit(1)
    world.shard.state.offsets.put_pending(9, GROUP, TOPIC, 0, b"")
    world.advance(RETENTION_MS + CHECK_MS)
    assert world.committed() == 1
    assert GROUP in world.shard.groups


def test_an_empty_group_without_offsets_goes_with_the_next_look(world: World) -> None:
    _, (first,) = world.stable(1)
    world.leave((first, None))
    world.advance(CHECK_MS)
    assert GROUP not in world.shard.groups
    world.restart()
    assert GROUP not in world.shard.groups


def test_a_group_that_somebody_is_about_to_join_stays() -> None:
    world = World(offsets_retention_check_interval_ms="1000")
    member_id = world.join().value.member_id
    world.advance(5_000)
    assert not world.join(member_id).came


def test_what_cannot_be_written_expires_later(world: World) -> None:
    world.commit(1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.advance(RETENTION_MS + CHECK_MS)
    assert world.committed() == 1
    world.journal.refusal = None
    world.advance(CHECK_MS)
    assert world.committed() == -1


def beat(world: World, member_id: str, epoch: int) -> ErrorCode:
    """Of a member of the newer protocol, which reads nothing: it joins, or leaves."""
    joins = epoch == 0
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if joins else -1,
        subscribed_topic_names=[] if joins else None,
        topic_partitions=[] if joins else None,
    )
    answer: Answer[ConsumerGroupHeartbeatResponse] = Answer()
    world.shard.consumer_group_heartbeat(world.caller(1), request, answer)
    return answer.error


def about_to_be_forgotten() -> World:
    """A group of the newer protocol without members, the last of whose offsets have just expired."""
    world = World(offsets_retention_check_interval_ms=str(RETENTION_MS))
    assert [beat(world, "first", epoch) for epoch in (0, -1)] == [ErrorCode.NONE] * 2
    for number in range(STEPS_AT_ONCE_MAX):
        world.commit(1, partition=number)
    world.commit(1, group="other")
    world.advance(RETENTION_MS)
    assert not world.shard.state.offsets.of_group(GROUP)
    assert GROUP in world.shard.groups
    return world


def test_a_group_that_goes_before_it_is_forgotten_holds_up_no_other() -> None:
    """Somebody deletes it between two pieces. Nothing expired any more until the partition was loaded again."""
    world = about_to_be_forgotten()
    answer: Answer[ErrorCode] = Answer()
    at_once(world.shard.delete_group(world.caller(2), GROUP, answer))
    assert answer.value is ErrorCode.NONE
    world.advance(1)
    assert world.shard.groups == {}


@pytest.mark.parametrize("newer", [False, True])
def test_another_group_of_that_name_is_not_forgotten(newer: bool) -> None:
    world = about_to_be_forgotten()
    if newer:
        at_once(world.shard.delete_group(world.caller(2), GROUP, lambda _: None))
        assert beat(world, "second", 0) is ErrorCode.NONE
    else:
        member_id = world.join().value.member_id
    world.advance(1)
    if newer:
        assert beat(world, "second", 1) is ErrorCode.NONE
        world.restart()
        assert beat(world, "second", 1) is ErrorCode.NONE
    else:
        assert not world.join(member_id).came


def test_many_expire_some_at_a_time() -> None:
    world = World(offsets_retention_check_interval_ms=str(DAY_MS))
    for group in range(30):
        for number in range(50):
            world.commit(1, group=f"group-{group}", partition=number)
    for number in range(2_500):
        world.commit(1, group="large", partition=number)
    writes = world.journal.writes
    world.advance(RETENTION_MS + DAY_MS)
    assert world.shard.groups == {}
    assert world.shard.state.offsets.count == 0
    assert world.shard.state.counts.expired == 4_000
    assert world.journal.writes - writes >= 33


def test_groups_with_the_longest_names_expire_as_well() -> None:
    world = World(offsets_retention_check_interval_ms=str(DAY_MS))
    world.journal.bytes_max = 200_000
    names = ["a", "long" * 5_000, "z"]
    for name in names:
        for number in range(20):
            world.commit(1, group=name, partition=number)
    world.commit(1, group="deleted" * 4_000)
    world.commit(1, group="deleted" * 4_000, topic="other")
    answer: Answer[ErrorCode] = Answer()
    at_once(world.shard.delete_group(world.caller(2), "deleted" * 4_000, answer))
    assert answer.value is ErrorCode.NONE
    assert list(world.shard.groups) == names
    world.advance(RETENTION_MS + DAY_MS)
    assert world.shard.groups == {}


def test_a_group_that_cannot_be_written_holds_up_no_other() -> None:
    world = World(offsets_retention_check_interval_ms=str(DAY_MS))
    for name in ("a", "long" * 5_000, "z"):
        for number in range(20):
            world.commit(1, group=name, partition=number)
    world.journal.bytes_max = 10_000
    world.advance(RETENTION_MS + DAY_MS)
    assert list(world.shard.groups) == ["long" * 5_000]
    world.journal.bytes_max = None
    world.advance(DAY_MS)
    assert world.shard.groups == {}


def test_subscription_is_that_of_all_members(world: World) -> None:
    _, first = world.enter(protocols=[("range", subscription("a", "b"))])
    world.enter(protocols=[("range", subscription("b", "c"))])
    world.advance(9_000)
    assert first.came
    assert world.group().subscribed_topics == {"a", "b", "c"}
