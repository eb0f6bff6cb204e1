"""Targets of large groups: computed in steps beside requests, once for all who came before they began."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.groups.consumer.classic_consumer import ClassicConsumer
from tests.groups.consumer.room import GROUP, Room

from ottla.groups.consumer.heartbeat import FIRST_EPOCH
from ottla.groups.consumer.records import TARGET_EPOCH
from ottla.groups.consumer.target import WORK_AT_ONCE_MAX
from ottla.groups.records.kinds import kind_of
from ottla.model import ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

PARTITIONS = WORK_AT_ONCE_MAX + 1
#: More steps than are taken without a look at the clock.
STEPS_MIN = 64
Answers = list[ConsumerGroupHeartbeatResponse]


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    room.topic("t", PARTITIONS)
    yield room
    room.long_work()
    room.check()


def join(room: Room, name: str, epoch: int = 0, instance: str | None = None) -> Answers:
    """Where the answer will be."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=name,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    answers: Answers = []
    room.shard.consumer_group_heartbeat(room.caller(), request, answers.append)
    return answers


def beat(room: Room, name: str, epoch: int, owned: dict[TopicId, list[int]] | None = None) -> Answers:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=epoch)
    if owned is not None:
        request.topic_partitions = [TopicPartitions(topic_id=topic, partitions=parts) for topic, parts in owned.items()]
    answers: Answers = []
    room.shard.consumer_group_heartbeat(room.caller(), request, answers.append)
    return answers


def leave(room: Room, name: str, epoch: int = -1, instance: str | None = None) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=name, member_epoch=epoch, instance_id=instance)
    room.shard.consumer_group_heartbeat(room.caller(), request, lambda _: None)


def shares(answer: ConsumerGroupHeartbeatResponse) -> int:
    assert answer.assignment is not None
    return sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)


def targets_written(room: Room) -> int:
    return sum(kind_of(record.key) == TARGET_EPOCH for record in room.journal.records)


def test_a_small_group_has_its_target_at_once(room: Room) -> None:
    room.topic("small", 3)
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["small"],
        topic_partitions=[],
    )
    answers: Answers = []
    room.shard.consumer_group_heartbeat(room.caller(), request, answers.append)
    assert not room.beside
    assert (answers[0].member_epoch, shares(answers[0])) == (FIRST_EPOCH, 3)


def test_a_large_group_has_its_target_in_steps(room: Room) -> None:
    answers = join(room, "a")
    room.long_work(STEPS_MIN)
    assert not answers
    assert room.group.state_name == "Assigning"
    room.long_work()
    assert (answers[0].member_epoch, shares(answers[0])) == (FIRST_EPOCH, PARTITIONS)
    assert room.group.state_name == "Stable"


def test_members_who_join_meanwhile_are_assigned_together(room: Room) -> None:
    first = join(room, "a")
    room.long_work(STEPS_MIN)
    others = [join(room, f"b{number}") for number in range(99)]
    room.long_work()
    assert targets_written(room) == 2
    assert (first[0].member_epoch, shares(first[0])) == (FIRST_EPOCH, PARTITIONS)
    assert {len(answers) for answers in others} == {1}
    assert {answers[0].member_epoch for answers in others} == {FIRST_EPOCH + 99}
    assert {sum(map(len, target.values())) for target in room.group.target.values()} == {40, 41}


def test_who_only_says_that_it_is_alive_does_not_wait(room: Room) -> None:
    join(room, "a")
    room.long_work()
    joining = join(room, "b")
    told = beat(room, "a", FIRST_EPOCH)
    assert told[0].member_epoch == FIRST_EPOCH
    assert not joining
    room.long_work()
    assert joining[0].member_epoch == FIRST_EPOCH + 1
    revoked = beat(room, "a", FIRST_EPOCH)
    assert shares(revoked[0]) == (PARTITIONS + 1) // 2


def test_a_member_that_leaves_meanwhile_gets_nothing(room: Room) -> None:
    first, second = join(room, "a"), join(room, "b")
    room.long_work(STEPS_MIN)
    leave(room, "a")
    room.long_work()
    assert first[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert second[0].error_code == ErrorCode.NONE
    assert set(room.group.target) == {"b"}
    # What the one that left was to have is given away with the next target.
    beat(room, "b", second[0].member_epoch)
    room.long_work()
    assert sum(map(len, room.group.members["b"].assigned.values())) == PARTITIONS


def test_an_instance_that_comes_back_meanwhile_gets_its_predecessors_share(room: Room) -> None:
    join(room, "a", instance="i")
    room.long_work()
    join(room, "b")
    room.long_work(STEPS_MIN)
    leave(room, "a", epoch=-2, instance="i")
    again = join(room, "c", instance="i")
    room.long_work()
    assert again[0].error_code == ErrorCode.NONE
    assert set(room.group.target) == {"b", "c"}
    assert sum(len(numbers) for target in room.group.target.values() for numbers in target.values()) == PARTITIONS


def test_a_topic_that_is_deleted_meanwhile(room: Room) -> None:
    answers = join(room, "a")
    room.long_work(STEPS_MIN)
    room.delete_topic("t")
    room.long_work()
    assert answers[0].error_code == ErrorCode.NONE
    beat(room, "a", answers[0].member_epoch)
    room.long_work()
    assert not room.group.target["a"]


def test_a_group_that_is_deleted_meanwhile(room: Room) -> None:
    answers = join(room, "a")
    room.long_work(STEPS_MIN)
    leave(room, "a")
    gone: list[ErrorCode] = []
    for _ in room.shard.delete_group(room.caller(), GROUP, gone.append):
        pass
    room.long_work()
    assert gone == [ErrorCode.NONE]
    assert answers[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert GROUP not in room.shard.groups


def test_a_coordinator_that_resigns_meanwhile_answers_and_writes_nothing_more(room: Room) -> None:
    answers = join(room, "a")
    room.long_work(STEPS_MIN)
    later = join(room, "b")
    written = len(room.journal.records)
    room.shard.unload(ErrorCode.NOT_COORDINATOR, room.now)
    assert [one.error_code for one in (*answers, *later)] == [ErrorCode.NOT_COORDINATOR] * 2
    room.long_work()
    assert (len(answers), len(later), len(room.journal.records)) == (1, 1, written)


def test_a_target_that_cannot_be_written(room: Room) -> None:
    answers = join(room, "a")
    room.journal.refuses_with = ErrorCode.NOT_COORDINATOR
    room.long_work()
    assert answers[0].error_code == ErrorCode.NOT_COORDINATOR
    assert room.group.state_name == "Assigning"
    room.journal.refuses_with = ErrorCode.NONE
    again = join(room, "a")
    room.long_work()
    assert again[0].member_epoch == FIRST_EPOCH


def test_another_coordinator_finds_a_group_without_its_target(room: Room) -> None:
    join(room, "a")
    room.restart()
    assert room.group.state_name == "Assigning"
    again = join(room, "a")
    room.long_work()
    assert (again[0].member_epoch, shares(again[0])) == (FIRST_EPOCH, PARTITIONS)


def test_an_answer_waits_until_the_target_is_committed(room: Room) -> None:
    room.journal.holds = True
    answers = join(room, "a")
    room.long_work()
    assert not answers
    room.journal.settle()
    assert answers[0].member_epoch == FIRST_EPOCH


def test_a_write_that_is_lost_is_answered_once(room: Room) -> None:
    room.journal.holds = True
    answers = join(room, "a")
    room.journal.settle(ErrorCode.NOT_COORDINATOR)
    assert [one.error_code for one in answers] == [ErrorCode.NOT_COORDINATOR]
    room.journal.holds = False
    room.long_work()
    assert len(answers) == 1


def test_a_member_of_the_classic_protocol_waits_too(room: Room) -> None:
    join(room, "a")
    room.long_work()
    classic = ClassicConsumer(room, ["t"])
    classic.beat()
    room.deliver()
    assert room.beside
    room.long_work()
    room.deliver()
    assert classic.generation == FIRST_EPOCH + 1
