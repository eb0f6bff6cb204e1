"""Members that name thousands of topics, or have a hundred thousand partitions: what takes long of a heartbeat goes in
steps, before the decision and behind it, and what happens between changes nothing of what it says.
"""

from __future__ import annotations

from collections import deque

import pytest
from tests.groups.consumer.room import GROUP, Consumer, Room

from ottla.groups.consumer.heartbeat_answer import PARTITIONS_A_STEP
from ottla.groups.consumer.prepared import SORTED_MAX
from ottla.groups.state import STEPS_AT_ONCE_MAX
from ottla.model import ErrorCode, TopicId
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.steps import PIECE, Steps

MANY = 2_000


class SteppedRoom(Room):
    """Answers, too, are made when the test wants it."""

    def _new_shard(self):  # type: ignore[no-untyped-def]
        self.later: deque[Steps[None]] = deque()
        shard = super()._new_shard()
        shard.state._beside = self.later.append
        return shard

    def step(self) -> int:
        count = 0
        while self.later:
            steps = self.later.popleft()
            try:
                next(steps)
                self.later.append(steps)
            except StopIteration:
                pass
            count += 1
        return count


@pytest.fixture
def room() -> SteppedRoom:
    return SteppedRoom()


def topics(room: Room, count: int = MANY) -> list[str]:
    names = [f"topic-{number}" for number in range(count)]
    for name in names:
        room.topic(name, 1)
    return names


def joining(names: list[str], member: str = "m", epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=names,
        topic_partitions=[],
    )


def beat(room: SteppedRoom, request: ConsumerGroupHeartbeatRequest) -> tuple[int, ConsumerGroupHeartbeatResponse]:
    """How many steps there were before the decision, and the answer."""
    answers: list[ConsumerGroupHeartbeatResponse] = []
    steps, count = room.shard.prepare_heartbeat(request), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            prepared = end.value
            break
        count += 1
    room.shard.consumer_group_heartbeat(room.caller(), request, answers.append, prepared)
    while not answers:
        room.long_work(1)
        room.step()
    return count, answers[0]


def test_what_a_member_names_is_looked_through_before_the_decision(room: SteppedRoom) -> None:
    names = topics(room)
    steps, answer = beat(room, joining(names + names))
    assert steps >= 2 * MANY // PIECE
    assert answer.error_code == ErrorCode.NONE
    owned = answer.assignment.topic_partitions if answer.assignment is not None else []
    assert len(owned) == MANY
    steps, answer = beat(
        room,
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id="m", member_epoch=answer.member_epoch, topic_partitions=owned + owned
        ),
    )
    assert steps >= 2 * MANY // PIECE
    assert answer.assignment is None


def test_a_short_heartbeat_is_one_piece(room: SteppedRoom) -> None:
    steps, answer = beat(room, joining(topics(room, 10)))
    assert steps == 0
    assert answer.assignment is not None
    assert not room.later


def test_long_records_that_are_not_read_back_say_what_the_member_is(room: SteppedRoom) -> None:
    names = topics(room)
    _, answer = beat(room, joining(names))
    owned = answer.assignment.topic_partitions if answer.assignment is not None else []
    fewer = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=answer.member_epoch,
        subscribed_topic_names=names[: SORTED_MAX + 1],
        topic_partitions=owned,
    )
    beat(room, fewer)
    before = (room.group.members, room.group.name_counts, room.group._owners, room.group.metadata_hash)
    assert len(room.group.members["m"].topic_names) == SORTED_MAX + 1
    room.restart()
    after = (room.group.members, room.group.name_counts, room.group._owners, room.group.metadata_hash)
    assert after == before


def test_a_share_of_many_partitions_is_said_in_steps_and_stays_what_it_was() -> None:
    class DecidedAtOnce(SteppedRoom):
        work_at_once_max = 1 << 30

    room = DecidedAtOnce()
    names = [f"large-{number}" for number in range(20)]
    for name in names:
        room.topic(name, PARTITIONS_A_STEP)
    beat(room, joining(names))
    room.step()
    # It asks for all again; before it is answered another member joins, and it is asked to give up half.
    request = joining(names, epoch=room.group.members["m"].epoch)
    request.topic_partitions = [
        TopicPartitions(topic_id=topic, partitions=list(numbers))
        for topic, numbers in room.group.members["m"].assigned.items()
    ]
    answers: list[ConsumerGroupHeartbeatResponse] = []
    room.shard.consumer_group_heartbeat(room.caller(), request, answers.append)
    assert not answers
    held = room.group.members["m"].assigned
    room.shard.consumer_group_heartbeat(room.caller(), joining(names, "other"), lambda _: None)
    room.long_work()
    room.shard.consumer_group_heartbeat(
        room.caller(),
        ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=request.member_epoch),
        lambda _: None,
    )
    assert room.group.members["m"].assigned != held
    assert room.step() > 20 - STEPS_AT_ONCE_MAX
    assert answers[0].assignment is not None
    said = {TopicId(bytes(one.topic_id)): one.partitions for one in answers[0].assignment.topic_partitions}
    assert said == {topic: sorted(numbers) for topic, numbers in held.items()}


def test_topics_that_change_are_noticed_whatever_was_remembered_of_them() -> None:
    room = Room()
    names = topics(room)
    consumer = Consumer(room, "m", names)
    consumer.beat()
    consumer.beat()
    epoch = room.group.epoch
    assert room.group.is_checked(room.metadata.generation)
    room.topic("of-somebody-else", 1)
    consumer.beat()
    assert room.group.epoch == epoch
    room.topic(names[7], 2)
    consumer.beat()
    assert room.group.epoch == epoch + 1
    room.delete_topic(names[8])
    room.topic(names[8], 1)  # with another id
    consumer.beat()
    assert room.group.epoch == epoch + 2
    room.restart()
    consumer.beat()
    assert room.group.epoch == epoch + 2


@pytest.mark.parametrize("leaves", [True, False])
def test_members_that_come_and_go_while_a_target_is_put_into_a_batch(leaves: bool) -> None:
    class LargeRoom(Room):
        work_at_once_max = 0

    room = LargeRoom()
    room.topic("t", 300)
    for number in range(100):
        room.shard.consumer_group_heartbeat(room.caller(), joining(["t"], f"m{number}"), lambda _: None)
    writes = len(room.journal.writes)
    # The batch is made at the end: somebody goes, or comes, in each of its steps.
    number = 0
    while room.group.assignment_epoch < 2:
        room.long_work(1)
        if room.group.assignment_epoch < 2:
            if leaves and number < 50:
                leave = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=f"m{number}", member_epoch=-1)
                room.shard.consumer_group_heartbeat(room.caller(), leave, lambda _: None)
            elif not leaves and number < 50:
                room.shard.consumer_group_heartbeat(room.caller(), joining(["t"], f"new{number}"), lambda _: None)
            number += 1
    room.check()
    assert len(room.journal.writes) > writes
    room.long_work()
    last = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id="m99", member_epoch=room.group.members["m99"].epoch, subscribed_topic_names=["t"]
    )
    room.shard.consumer_group_heartbeat(room.caller(), last, lambda _: None)
    room.long_work()
    room.check()
    shares = [len(numbers) for target in room.group.target.values() for numbers in target.values()]
    assert sum(shares) == 300
    assert room.group.assignment_epoch == room.group.epoch
