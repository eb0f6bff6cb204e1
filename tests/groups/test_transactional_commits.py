"""Offsets of a transaction whose end comes while they are written."""

from __future__ import annotations

import pytest
from tests.groups.world import groups_config
from tests.replication.journal_world import NOW, JournalWorld

from ottla.coordinators.caller import Caller, Now
from ottla.coordinators.journal import EndMarker, TransactionalProducer
from ottla.groups.offsets.committing import PARTITIONS_COMMITTED_MAX, WRITTEN_AT_ONCE_MAX, TransactionalWriter
from ottla.groups.shard import GroupShard
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.steps import PIECE, Steps, at_once

PRODUCER = TransactionalProducer(producer_id=7, producer_epoch=1)
AT = Now(NOW, 0)
#: Partitions that are looked up in several steps.
MANY = 4 * PIECE


class World(JournalWorld):
    def __init__(self) -> None:
        super().__init__()
        settings = groups_config()
        self.shard = GroupShard(3, self.journal, lambda: settings, MetadataCache(), self.ports.entropy)
        self.answers: list[OffsetCommitResponse] = []

    def commit(self, first: int, end: int, writer: TransactionalWriter, offset: int = 1) -> Steps[None]:
        partitions = [
            OffsetCommitRequestPartition(partition_index=n, committed_offset=offset) for n in range(first, end)
        ]
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)],
        )
        return self.shard.txn_offset_commit(Caller("c", "/h", 4, AT), writer, request, self.answers.append)

    def end(self, *, committed: bool) -> None:
        end = EndMarker(*PRODUCER, coordinator_epoch=0, is_commit=committed)
        self.shard.write_marker(AT, end, lambda error: self.told.append(("marker", error)))

    def fetch(self, *, stable: bool, of_all: bool = False) -> Steps[OffsetFetchResponseGroup]:
        asked = None if of_all else [OffsetFetchRequestTopics(name="t", partition_indexes=list(range(MANY)))]
        return self.shard.offset_fetch(OffsetFetchRequestGroup(group_id="g", topics=asked), stable)

    def codes(self) -> set[int]:
        answer = self.answers.pop()
        return {each.error_code for topic in answer.topics for each in topic.partitions}


@pytest.mark.parametrize("parts_before", [0, 1])
def test_nothing_is_written_behind_the_end_of_its_transaction(parts_before: int) -> None:
    """A marker of the classic protocol has the epoch of its transaction: what comes behind it would begin another one,
    which nobody ends."""
    world = World()
    with world.round():
        verification = world.shard.begin_verifying(PRODUCER)
        steps = world.commit(0, 2 * WRITTEN_AT_ONCE_MAX, TransactionalWriter(PRODUCER, verification))
        while parts_before and not world.shard.has_open(PRODUCER):
            next(steps)
        end = EndMarker(*PRODUCER, coordinator_epoch=0, is_commit=False)
        world.shard.write_marker(AT, end, lambda error: world.told.append(("marker", error)))
        at_once(steps)
    assert world.told_names() == ["marker"]
    assert world.codes() == {ErrorCode.INVALID_TXN_STATE}
    assert world.leader.log.first_unstable_offset is None
    assert not world.shard.state.offsets.has_open("g")


def test_more_offsets_than_a_marker_may_have_take_effect() -> None:
    """It does that in one piece."""
    world = World()
    writer, most = TransactionalWriter(PRODUCER), PARTITIONS_COMMITTED_MAX
    answered = []
    for first, end in ((0, most), (0, most), (most, most + 1), (0, 1)):
        with world.round():
            at_once(world.commit(first, end, writer))
        while not world.answers:
            world.empty_round()
        answered.append(world.codes())
    assert answered == [set(), set(), set(), {ErrorCode.UNKNOWN_SERVER_ERROR}]
    assert world.shard.state.offsets.count_of(PRODUCER.producer_id) == most + 1


def found(response: OffsetFetchResponseGroup) -> list[tuple[int, int]]:
    """Error and offset of each partition, without those that are alike."""
    (topic,) = response.topics
    assert len(topic.partitions) == MANY
    return sorted({(each.error_code, each.committed_offset) for each in topic.partitions})


@pytest.mark.parametrize("of_all", [False, True])
@pytest.mark.parametrize("steps_before_commit", [0, 1])
def test_a_long_look_up_shows_a_transaction_whole_or_not_at_all(steps_before_commit: int, of_all: bool) -> None:
    world = World()
    with world.round():
        at_once(world.commit(0, MANY, TransactionalWriter(PRODUCER)))
        world.end(committed=True)
    assert found(at_once(world.fetch(stable=False))) == [(0, 1)]
    with world.round():
        if not steps_before_commit:
            at_once(world.commit(0, MANY, TransactionalWriter(PRODUCER), 2))
        steps = world.fetch(stable=False, of_all=of_all)
        next(steps)
        if steps_before_commit:
            at_once(world.commit(0, MANY, TransactionalWriter(PRODUCER), 2))
        world.end(committed=True)
        assert found(at_once(steps)) == [(0, 1)]
    assert found(at_once(world.fetch(stable=False))) == [(0, 2)]


def test_a_long_look_up_of_what_is_stable_shows_nothing_that_a_transaction_has_replaced() -> None:
    world = World()
    with world.round():
        at_once(world.commit(0, MANY, TransactionalWriter(PRODUCER)))
        steps = world.fetch(stable=True)
        next(steps)
        world.end(committed=True)
        assert found(at_once(steps)) == [(ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)]
    assert found(at_once(world.fetch(stable=True))) == [(0, 1)]


def test_a_transaction_that_is_aborted_changes_no_long_look_up() -> None:
    world = World()
    with world.round():
        at_once(world.commit(0, MANY, TransactionalWriter(PRODUCER)))
        steps = world.fetch(stable=False)
        next(steps)
        world.end(committed=False)
        assert found(at_once(steps)) == [(0, -1)]
