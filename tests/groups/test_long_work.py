"""What grows with a request, a group or an offset store goes in steps, each of them small; and what has a bound."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest
from tests.groups.world import GROUP, Answer, World

from ottla.coordinators.caller import Now
from ottla.coordinators.timers import DUE_AT_ONCE_MAX, Timers
from ottla.groups.classic.group import GROUP_BYTES_MAX, MEMBER_BYTES_MAX, PROTOCOL_BYTES, PROTOCOLS_MAX
from ottla.groups.consumer.checks import PARTITIONS_OF_A_MEMBER_MAX, TOPICS_OF_A_MEMBER_MAX
from ottla.groups.offsets.committing import PARTITIONS_COMMITTED_MAX, WRITTEN_AT_ONCE_MAX
from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.generated.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.steps import PIECE, at_once

T = TypeVar("T")
MANY = 2_000
NONE = ErrorCode.NONE
DAY_MS = 24 * 60 * 60 * 1000


def counted(steps: Generator[None, None, T]) -> tuple[int, T]:
    """How many steps it took, and the result."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return count, result
        count += 1


def commit_request(topics: dict[str, list[int]], metadata: str = "") -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number, committed_offset=number, committed_metadata=metadata
                    )
                    for number in numbers
                ],
            )
            for name, numbers in topics.items()
        ],
    )


def commit(world: World, topics: dict[str, list[int]], metadata: str = "") -> tuple[int, Answer[OffsetCommitResponse]]:
    answer: Answer[OffsetCommitResponse] = Answer()
    steps, _ = counted(world.shard.offset_commit(world.caller(9), commit_request(topics, metadata), answer))
    return steps, answer


@pytest.fixture
def world() -> World:
    return World()


def test_a_small_commit_is_one_piece(world: World) -> None:
    steps, answer = commit(world, {f"t{number}": [0] for number in range(10)})
    assert steps == 0
    assert answer.came


@pytest.mark.parametrize(
    "topics", [{"t": list(range(MANY))}, {f"t{number}": [0] for number in range(MANY)}], ids=["partitions", "topics"]
)
def test_a_long_commit(world: World, topics: dict[str, list[int]]) -> None:
    steps, answer = commit(world, topics)
    assert steps >= MANY // PIECE
    assert answer.came
    assert world.shard.state.offsets.count == MANY


def test_a_long_commit_of_which_nothing_is_taken(world: World) -> None:
    """Each refused entry cost as much as all before it."""
    steps, answer = commit(world, {"t": list(range(MANY))}, metadata="m" * 5_000)
    assert steps >= 2 * MANY // PIECE
    errors = {partition.error_code for partition in answer.value.topics[0].partitions}
    assert errors == {ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert len(answer.value.topics[0].partitions) == MANY


def test_a_long_commit_is_written_in_pieces_and_answered_once(world: World) -> None:
    long = 4 * WRITTEN_AT_ONCE_MAX + 1
    answers: list[OffsetCommitResponse] = []
    steps = world.shard.offset_commit(world.caller(9), commit_request({"t": list(range(long))}), answers.append)
    written = []
    for _ in steps:
        assert not answers
        written.append(world.shard.state.offsets.count)
    assert {WRITTEN_AT_ONCE_MAX, 2 * WRITTEN_AT_ONCE_MAX, 3 * WRITTEN_AT_ONCE_MAX} < set(written)
    assert len(answers) == 1
    assert answers[0].topics == []  # all are committed
    assert world.journal.writes == 5
    assert world.shard.state.offsets.count == long


def begun_long_commit(world: World) -> tuple[Generator[None, None, None], Answer[OffsetCommitResponse]]:
    """Its first piece is written."""
    answer: Answer[OffsetCommitResponse] = Answer()
    request = commit_request({"t": list(range(3 * WRITTEN_AT_ONCE_MAX))})
    steps = world.shard.offset_commit(world.caller(9), request, answer)
    while not world.journal.writes:
        next(steps)
    return steps, answer


def test_a_group_that_gets_members_between_two_pieces_of_a_long_commit(world: World) -> None:
    steps, answer = begun_long_commit(world)
    world.stable(1)
    at_once(steps)
    assert {partition.error_code for partition in answer.value.topics[0].partitions} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert world.shard.state.offsets.count == WRITTEN_AT_ONCE_MAX


def test_a_coordinator_that_resigns_between_two_pieces_writes_no_more(world: World) -> None:
    """The same journal may be loaded again already: what were written now would be missed."""
    steps, answer = begun_long_commit(world)
    writes = world.journal.writes
    world.shard.unload(ErrorCode.NOT_COORDINATOR, world.now)
    at_once(steps)
    assert {partition.error_code for partition in answer.value.topics[0].partitions} == {ErrorCode.NOT_COORDINATOR}
    assert world.journal.writes == writes


def test_more_than_fits_in_a_batch_is_refused_before_it_is_made(world: World) -> None:
    _, answer = commit(world, {"t": [0] * PARTITIONS_COMMITTED_MAX, "u": [0]})
    errors = {partition.error_code for topic in answer.value.topics for partition in topic.partitions}
    assert errors == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert world.journal.writes == 0


def test_a_group_that_gets_members_while_a_long_commit_is_made_ready(world: World) -> None:
    answer: Answer[OffsetCommitResponse] = Answer()
    steps = world.shard.offset_commit(world.caller(9), commit_request({"t": list(range(MANY))}), answer)
    next(steps)
    world.stable(1)
    at_once(steps)
    assert {partition.error_code for partition in answer.value.topics[0].partitions} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert world.shard.state.offsets.count == 0


def test_a_long_fetch_of_offsets(world: World) -> None:
    commit(world, {"t": list(range(MANY)), "u": [1]})
    for topics in (
        None,
        [OffsetFetchRequestTopics(name="t", partition_indexes=list(range(MANY)))],
        [OffsetFetchRequestTopics(name="t", partition_indexes=[number]) for number in range(MANY)],
    ):
        steps, found = counted(world.shard.offset_fetch(OffsetFetchRequestGroup(group_id=GROUP, topics=topics), False))
        assert steps >= MANY // PIECE
        offsets = [partition.committed_offset for topic in found.topics for partition in topic.partitions]
        assert offsets[:MANY] == list(range(MANY))


def test_a_partition_that_is_asked_for_again_takes_no_memory(world: World) -> None:
    commit(world, {"t": [0, 1]})
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1] * MANY)]
    found = at_once(world.shard.offset_fetch(OffsetFetchRequestGroup(group_id=GROUP, topics=topics), False))
    partitions = found.topics[0].partitions
    assert len(partitions) == 2 * MANY
    assert len({id(partition) for partition in partitions}) == 2


def test_a_long_deletion_of_offsets(world: World) -> None:
    commit(world, {"t": list(range(MANY))})
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequestTopic(
                name="t",
                partitions=[OffsetDeleteRequestPartition(partition_index=number % MANY) for number in range(2 * MANY)],
            )
        ],
    )
    answer: Answer[OffsetDeleteResponse] = Answer()
    steps, _ = counted(world.shard.offset_delete(world.caller(0), request, answer))
    assert steps >= 2 * MANY // PIECE
    assert {partition.error_code for partition in answer.value.topics[0].partitions} == {NONE}
    assert world.shard.state.offsets.count == 0
    assert world.shard.state.counts.deletions == MANY


def test_a_group_with_many_offsets_is_deleted_in_steps(world: World) -> None:
    commit(world, {"t": list(range(MANY))})
    answer: Answer[ErrorCode] = Answer()
    steps, _ = counted(world.shard.delete_group(world.caller(2), GROUP, answer))
    assert steps >= MANY // 100
    assert answer.value is NONE
    assert GROUP not in world.shard.groups


def test_somebody_joins_a_group_that_is_being_deleted(world: World) -> None:
    commit(world, {"t": list(range(MANY))})
    answer: Answer[ErrorCode] = Answer()
    steps = world.shard.delete_group(world.caller(2), GROUP, answer)
    next(steps)
    world.stable(1)
    at_once(steps)
    assert answer.value is ErrorCode.NON_EMPTY_GROUP
    assert GROUP in world.shard.groups


def test_a_group_that_is_deleted_twice_at_the_same_time(world: World) -> None:
    commit(world, {"t": list(range(MANY))})
    answers: list[ErrorCode] = []
    first = world.shard.delete_group(world.caller(2), GROUP, answers.append)
    next(first)
    at_once(world.shard.delete_group(world.caller(2), GROUP, answers.append))
    at_once(first)
    assert sorted(answers) == [NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def test_many_leave_at_once(world: World) -> None:
    _, ids = world.stable(90)
    names = [*ids, *(f"unknown-{number}" for number in range(MANY))]
    request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=name) for name in names])
    answer: Answer[LeaveGroupResponse] = Answer()
    steps, _ = counted(world.shard.leave_group(world.caller(5), request, answer))
    assert steps > MANY // PIECE
    errors = [member.error_code for member in answer.value.members]
    assert errors == [NONE] * 90 + [ErrorCode.UNKNOWN_MEMBER_ID] * MANY
    assert not world.group().members


def test_a_group_with_many_members_is_described_in_steps(world: World) -> None:
    world.stable(90)
    steps, found = counted(world.shard.describe_group(GROUP, 6))
    assert steps == 2
    assert len(found.members) == 90


def test_many_groups_are_listed_in_steps(world: World) -> None:
    for number in range(500):
        world.commit(1, group=f"group-{number}")
    steps, found = counted(world.shard.list_groups(set(), set()))
    assert steps >= 500 // PIECE
    assert len(found) == 500


# Beside requests.


def test_timers_that_are_due_together_go_off_some_at_a_time() -> None:
    timers = Timers()
    called: list[int] = []
    for number in range(3 * DUE_AT_ONCE_MAX):
        timers.set(number, 10, lambda _, number=number: called.append(number))
    for times in (1, 2, 3):
        timers.expire(Now(0, 10))
        assert len(called) == times * DUE_AT_ONCE_MAX
    assert called == sorted(called)
    assert timers.next_deadline_ms() is None


def test_many_offsets_of_one_group_expire_some_at_a_time() -> None:
    world = World(offsets_retention_check_interval_ms=str(DAY_MS))
    commit(world, {"t": list(range(MANY))})
    written: list[int] = []
    while world.shard.state.offsets.count:
        before = world.shard.state.offsets.count
        due = world.shard.timers.next_deadline_ms()
        assert due is not None
        world.advance(due - world.now.monotonic_ms)
        written.append(before - world.shard.state.offsets.count)
    assert max(written) <= 500
    assert world.shard.state.counts.expired == MANY


def test_what_is_committed_while_its_group_is_swept_stays() -> None:
    world = World(offsets_retention_check_interval_ms=str(DAY_MS), offsets_retention_minutes="1440")
    commit(world, {"t": list(range(MANY))})
    while world.shard.state.offsets.count == MANY:
        due = world.shard.timers.next_deadline_ms()
        assert due is not None
        world.advance(due - world.now.monotonic_ms)
    assert world.shard.state.offsets.count
    last = MANY - 1
    world.commit(7, topic="t", partition=last)
    world.advance(1_000)
    assert world.shard.state.offsets.count == 1
    assert world.committed(last, topic="t") == 7


def test_offsets_of_a_deleted_topic_are_dropped_some_at_a_time(world: World) -> None:
    commit(world, {"t": list(range(MANY)), "u": [1]})
    world.shard.topics_deleted(["t"], world.now)
    assert MANY - 600 <= world.shard.state.offsets.count < MANY
    world.advance(1_000)
    assert world.shard.state.offsets.count == 1


# Bounds.


def test_a_member_knows_no_more_protocols_than_it_may(world: World) -> None:
    names = [(f"p{number}", b"") for number in range(PROTOCOLS_MAX + 1)]
    assert world.join(protocols=names).error is ErrorCode.INVALID_REQUEST
    assert world.join(protocols=names[:-1]).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_says_no_more_than_it_may(world: World) -> None:
    assert world.join(protocols=[("p", bytes(MEMBER_BYTES_MAX))]).error is ErrorCode.INVALID_REQUEST
    assert world.join(protocols=[("p", bytes(MEMBER_BYTES_MAX - 1))]).error is ErrorCode.MEMBER_ID_REQUIRED


def test_all_members_together_say_no_more_than_they_may(world: World) -> None:
    large = [("p", bytes(MEMBER_BYTES_MAX - PROTOCOL_BYTES - 1))]
    fitting = GROUP_BYTES_MAX // MEMBER_BYTES_MAX
    waiting = [world.enter(protocols=large) for _ in range(fitting)]
    assert world.join(protocols=large).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.group().metadata_bytes == fitting * MEMBER_BYTES_MAX
    world.leave((waiting[0][0], None))
    assert world.group().metadata_bytes == (fitting - 1) * MEMBER_BYTES_MAX


def test_a_member_that_loses_its_place_in_a_stable_group_leaves_its_share_to_the_others(world: World) -> None:
    """It says more than there is room for: the group shares out anew without it, and waits for nothing."""
    fitting = GROUP_BYTES_MAX // MEMBER_BYTES_MAX
    large, small = [("range", bytes(MEMBER_BYTES_MAX - PROTOCOL_BYTES - 100))], [("range", b"")]
    waiting = [world.enter(protocols=large) for _ in range(fitting)]
    waiting.append(world.enter(protocols=small))
    for _ in range(3):
        world.advance(world.settings.initial_rebalance_delay_ms)
    ids = [member_id for member_id, _ in waiting]
    generation = waiting[0][1].value.generation_id
    world.share_out(generation, ids)
    refused = world.join(ids[-1], protocols=large)
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert ids[-1] not in world.group().members
    assert world.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    "fields",
    [
        {"subscribed_topic_names": ["t"] * (TOPICS_OF_A_MEMBER_MAX + 1)},
        {"topic_partitions": [TopicPartitions()] * (TOPICS_OF_A_MEMBER_MAX + 1)},
        {"topic_partitions": [TopicPartitions(partitions=[1] * (PARTITIONS_OF_A_MEMBER_MAX + 1))]},
    ],
    ids=["names", "topics", "partitions"],
)
def test_a_heartbeat_names_no_more_than_it_may(world: World, fields: dict[str, list[object]]) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=1, **fields)  # type: ignore[arg-type]
    answers: list = []
    world.shard.consumer_group_heartbeat(world.caller(1), request, answers.append)
    assert answers[0].error_code == ErrorCode.INVALID_REQUEST
