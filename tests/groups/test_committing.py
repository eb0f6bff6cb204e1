"""OffsetCommit and OffsetFetch: what is taken, what is refused, what is found again."""

from __future__ import annotations

import pytest
from tests.groups.world import GROUP, TOPIC, Answer, World, commit_error

from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.steps import at_once

ID = b"7" * 16
OTHER_ID = b"8" * 16


@pytest.fixture
def world() -> World:
    return World()


def test_a_consumer_without_membership(world: World) -> None:
    assert commit_error(world.commit(5)) is ErrorCode.NONE
    assert commit_error(world.commit(6, partition=1, metadata="here", epoch=3)) is ErrorCode.NONE
    assert world.group().protocol_type is None
    assert world.group().state_name == "Empty"
    for _ in range(2):
        (topic,) = world.fetch().value.topics
        found = [
            (entry.partition_index, entry.committed_offset, entry.committed_leader_epoch, entry.metadata)
            for entry in topic.partitions
        ]
        assert (topic.name, found) == (TOPIC, [(0, 5, -1, ""), (1, 6, 3, "here")])
        world.restart()


def test_a_group_without_a_name_keeps_offsets(world: World) -> None:
    assert commit_error(world.commit(5, group="")) is ErrorCode.NONE
    assert world.committed(group="") == 5


def test_not_while_the_group_has_members(world: World) -> None:
    _, (first,) = world.stable(1)
    assert commit_error(world.commit(5)) is ErrorCode.UNKNOWN_MEMBER_ID
    world.leave((first, None))
    assert commit_error(world.commit(5)) is ErrorCode.NONE


@pytest.mark.parametrize(("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_a_group_that_is_not(world: World, version: int, error: ErrorCode) -> None:
    assert commit_error(world.commit(5, member_id="m", generation=1, version=version)) is error
    assert GROUP not in world.shard.groups


def test_members_of_other_generations(world: World) -> None:
    generation, (first,) = world.stable(1)

    def error(member_id: str, of: int, instance: str | None = None) -> ErrorCode:
        return commit_error(world.commit(9, member_id=member_id, generation=of, instance=instance))

    assert error(first, generation) is ErrorCode.NONE
    assert error(first, generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert error(first, generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert error(first, -1) is ErrorCode.ILLEGAL_GENERATION
    assert error("nobody", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error("", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(first, generation, "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("m" * 4096, ErrorCode.NONE),
        ("m" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("ö" * 4096, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        (None, ErrorCode.NONE),
    ],
    ids=["as much as may be", "more", "two bytes each", "two units each", "none"],
)
def test_metadata_has_a_bound(world: World, metadata: str | None, error: ErrorCode) -> None:
    assert commit_error(world.commit(5, metadata=metadata)) is error
    assert world.committed() == (-1 if error else 5)


def test_one_bad_partition_does_not_spoil_the_others(world: World) -> None:
    entries = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=10 + number, committed_metadata=metadata)
        for number, metadata in enumerate(["", "m" * 5000, "fine"])
    ]
    request = OffsetCommitRequest(group_id=GROUP, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=entries)])
    answer: Answer[OffsetCommitResponse] = Answer()
    at_once(world.shard.offset_commit(world.caller(9), request, answer))
    errors = [entry.error_code for entry in answer.value.topics[0].partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert [world.committed(number) for number in range(3)] == [10, -1, 12]


def test_a_partition_twice_in_one_request(world: World) -> None:
    """Each entry has its own answer, and the last that is good counts."""
    entries = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
        for offset, metadata in [(1, ""), (2, "m" * 5000), (3, ""), (4, "m" * 5000)]
    ]
    request = OffsetCommitRequest(group_id=GROUP, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=entries)])
    answer: Answer[OffsetCommitResponse] = Answer()
    at_once(world.shard.offset_commit(world.caller(9), request, answer))
    errors = [entry.error_code for entry in answer.value.topics[0].partitions]
    large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert errors == [ErrorCode.NONE, large, ErrorCode.NONE, large]
    assert world.committed(0) == 3


def test_names_that_no_record_can_hold(world: World) -> None:
    assert commit_error(world.commit(5, group="g" * 65_000)) is ErrorCode.INVALID_GROUP_ID
    assert world.shard.groups == {}


def test_the_bytes_of_the_request_are_not_kept(world: World) -> None:
    """A request may lie in a buffer that the next one overwrites."""
    protocol = bytearray(b"metadata")
    member_id, _ = world.enter(protocols=[("range", memoryview(protocol))])
    protocol[:] = bytes(len(protocol))
    world.advance(3_000)
    share = bytearray(b"share")
    world.sync(member_id, 1, {member_id: memoryview(share)})  # type: ignore[dict-item]
    share[:] = bytes(len(share))
    member = world.group().members[member_id]
    assert (member.metadata("range"), member.assignment) == (b"metadata", b"share")


def test_answered_when_it_is_safe(world: World) -> None:
    world.commit(1)
    world.journal.held = True
    answer = world.commit(2)
    reading = world.fetch()
    assert not answer.came
    assert not reading.came
    world.journal.commit()
    assert commit_error(answer) is ErrorCode.NONE
    assert reading.value.topics[0].partitions[0].committed_offset == 2


def test_a_commit_that_is_lost(world: World) -> None:
    world.commit(1)
    world.journal.held = True
    answer, reading = world.commit(2), world.fetch()
    world.journal.lose(ErrorCode.NOT_COORDINATOR)
    assert commit_error(answer) is ErrorCode.NOT_COORDINATOR
    assert reading.error is ErrorCode.NOT_COORDINATOR
    world.restart()
    world.journal.held = False
    assert world.committed() == 1


def test_a_commit_that_is_refused_changes_nothing(world: World) -> None:
    world.commit(1)
    world.journal.refusal = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit_error(world.commit(2)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert commit_error(world.commit(2, group="new")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.committed() == 1
    assert "new" not in world.shard.groups


def test_nothing_is_found_where_nothing_is(world: World) -> None:
    assert world.fetch(group="none").value.topics == []
    assert world.fetch(group="none").error is ErrorCode.NONE
    (topic,) = world.fetch({TOPIC: [0, 7]}, group="none").value.topics
    assert [(entry.committed_offset, entry.error_code) for entry in topic.partitions] == [(-1, 0), (-1, 0)]


def test_a_topic_that_was_created_anew_has_no_offsets(world: World) -> None:
    world.commit(5, topic_id=ID)

    def found(topic_id: bytes) -> int:
        answer = world.fetch({TOPIC: [0]}, topic_id=topic_id).value
        return answer.topics[0].partitions[0].committed_offset

    assert found(ID) == 5
    assert found(OTHER_ID) == -1
    assert found(bytes(16)) == 5


def test_offsets_in_doubt(world: World) -> None:
    world.commit(5)
    world.commit(6, partition=1)
    world.shard.state.offsets.put_pending(9, GROUP, TOPIC, 1, b"")
    for asked in ({TOPIC: [0, 1]}, None):
        (topic,) = world.fetch(asked, stable=True).value.topics
        found = [(entry.committed_offset, ErrorCode(entry.error_code)) for entry in topic.partitions]
        assert found == [(5, ErrorCode.NONE), (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
        (topic,) = world.fetch(asked).value.topics
        assert [entry.committed_offset for entry in topic.partitions] == [5, 6]
    world.shard.end_transaction(9, committed=False)
    assert world.fetch(stable=True).value.topics[0].partitions[1].committed_offset == 6
