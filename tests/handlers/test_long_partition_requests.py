"""Requests about partitions with arrays as long as a frame carries: small steps, and one look at what is named again.

The steps are counted, and what they look at; a slow machine changes neither.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.handlers.test_long_admin_requests import Admin
from tests.server.conftest import BrokerThread

from ottla.handlers import (
    alter_replica_log_dirs,
    delete_records,
    describe_log_dirs,
    describe_producers,
    list_offsets,
    offset_for_leader_epoch,
)
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated import alter_replica_log_dirs as move
from ottla.protocol.generated import delete_records as delete
from ottla.protocol.generated import describe_log_dirs as directories
from ottla.protocol.generated import list_offsets as offsets
from ottla.protocol.generated import offset_for_leader_epoch as epochs
from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.steps import Steps
from ottla.storage.log.log import Log
from ottla.storage.log.producers.producer_state import ActiveProducer

MANY = 20_000
#: Of elements in one step, at the most.
A_STEP = 64
PRODUCERS = 3


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    with BrokerThread(str(tmp_path_factory.mktemp("partitions"))) as running:
        running.create_topic("t", partitions=2)
        yield Admin(running)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[TopicPartition]:
    """The logs whose producers were described: each has some."""
    seen: list[TopicPartition] = []

    def describing(log: Log) -> Steps[list[ActiveProducer]]:
        seen.append(log.tp)
        yield
        return [ActiveProducer(number, 0, 7, 1000, -1, -1) for number in range(PRODUCERS)]

    monkeypatch.setattr(Log, "describing_producers", describing)
    return seen


def producers_of(*topics: tuple[str, list[int]]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics]
    )


# -- DescribeProducers


def test_a_partition_whose_producers_are_asked_for_many_times_is_looked_at_once(
    admin: Admin, looked_at: list[TopicPartition]
) -> None:
    request = producers_of(("t", [0, 1] * (MANY // 2)), *[("t", [1])] * MANY)
    answer: DescribeProducersResponse = admin.ask(describe_producers.handle, request, 0)
    assert looked_at == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert admin.steps > 2 * MANY / A_STEP
    first = answer.topics[0].partitions
    assert [each.partition_index for each in first] == [0, 1] * (MANY // 2)
    assert {len(each.active_producers) for each in first} == {PRODUCERS}
    assert len({id(each) for topic in answer.topics for each in topic.partitions}) == 2


def test_producers_beyond_an_answers_bound_are_refused_and_not_looked_at(
    admin: Admin, looked_at: list[TopicPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_producers, "PRODUCERS_TOLD_MAX", 2 * PRODUCERS)
    answer = admin.ask(describe_producers.handle, producers_of(("t", [0, 0, 0, 1, 0]), ("none", [0])), 0)
    told, none = answer.topics
    errors = [each.error_code for each in told.partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.NONE, *[ErrorCode.POLICY_VIOLATION] * 3]
    assert [each.error_message for each in told.partitions[2:]] == [describe_producers.TOO_MANY] * 3
    assert [each.active_producers for each in told.partitions[2:]] == [[]] * 3
    assert [each.error_code for each in none.partitions] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert looked_at == [TopicPartition("t", 0)]


def test_the_producers_of_a_single_partition_are_told_however_many(
    admin: Admin, looked_at: list[TopicPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_producers, "PRODUCERS_TOLD_MAX", PRODUCERS - 1)
    answer = admin.ask(describe_producers.handle, producers_of(("t", [1, 1])), 0)
    first, second = answer.topics[0].partitions
    assert (first.error_code, len(first.active_producers)) == (ErrorCode.NONE, PRODUCERS)
    assert second.error_code == ErrorCode.POLICY_VIOLATION
    assert looked_at == [TopicPartition("t", 1)]


def test_partitions_without_producers_share_their_answers(admin: Admin) -> None:
    answer = admin.ask(describe_producers.handle, producers_of(("t", [0, 9] * MANY)), 0)
    assert len({id(each) for each in answer.topics[0].partitions}) == 2
    assert [each.error_code for each in answer.topics[0].partitions[:2]] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


# -- ListOffsets


def listed(*topics: tuple[str, list[int]]) -> offsets.ListOffsetsRequest:
    return offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            offsets.ListOffsetsTopic(
                name=name,
                partitions=[
                    offsets.ListOffsetsPartition(partition_index=index, timestamp=list_offsets.LATEST)
                    for index in indexes
                ],
            )
            for name, indexes in topics
        ],
    )


def test_offsets_of_many_partitions_are_listed_in_steps(admin: Admin) -> None:
    request = listed(("t", list(range(MANY))), *[("none", [])] * MANY)
    answer = admin.ask(list_offsets.handle, request, 11)
    assert admin.steps > 2 * MANY / A_STEP
    assert request.topics == []
    assert [len(topic.partitions) for topic in answer.topics] == [MANY] + [0] * MANY
    partitions = answer.topics[0].partitions
    assert [each.partition_index for each in partitions] == list(range(MANY))
    assert [(each.error_code, each.offset) for each in partitions[:3]] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.NONE, 0),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_a_partition_that_is_listed_twice_is_refused_both_times_and_others_are_not(admin: Admin) -> None:
    answer = admin.ask(list_offsets.handle, listed(("t", [0, 1]), ("other", [0]), ("t", [1])), 11)
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == [
        [ErrorCode.NONE, ErrorCode.INVALID_REQUEST],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.INVALID_REQUEST],
    ]


# -- others


def test_ends_of_epochs_are_answered_in_steps(admin: Admin) -> None:
    def asked(name: str, count: int) -> epochs.OffsetForLeaderTopic:
        partitions = [epochs.OffsetForLeaderPartition(partition=number, leader_epoch=0) for number in range(count)]
        return epochs.OffsetForLeaderTopic(topic=name, partitions=partitions)

    request = epochs.OffsetForLeaderEpochRequest(topics=[asked("t", MANY), *[asked("none", 0) for _ in range(MANY)]])
    answer = admin.ask(offset_for_leader_epoch.handle, request, 4)
    assert admin.steps > 2 * MANY / A_STEP
    assert len(answer.topics) == MANY + 1
    partitions = answer.topics[0].partitions
    assert [each.partition for each in partitions] == list(range(MANY))
    assert [each.error_code for each in partitions[:3]] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_records_of_many_topics_are_deleted_in_steps(admin: Admin) -> None:
    one = [delete.DeleteRecordsPartition(partition_index=0, offset=0)]
    topics = [delete.DeleteRecordsTopic(name=f"none-{number}", partitions=one) for number in range(MANY)]
    request = delete.DeleteRecordsRequest(topics=topics)
    answer = admin.ask(delete_records.handle, request, 2)
    assert admin.steps > 2 * MANY / A_STEP
    assert len(answer.topics) == MANY


def test_replicas_are_moved_in_steps_and_each_has_its_result(admin: Admin) -> None:
    path = admin.running.look(lambda broker: broker.services.config.storage.log_dirs[0])
    here = move.AlterReplicaLogDir(
        path=path, topics=[move.AlterReplicaLogDirTopic(name="t", partitions=[0, 7, 1] + [0] * MANY)]
    )
    nowhere = move.AlterReplicaLogDir(
        path="/nowhere", topics=[move.AlterReplicaLogDirTopic(name="none", partitions=list(range(MANY)))]
    )
    empty = [move.AlterReplicaLogDir(path="/nowhere") for _ in range(MANY)]
    request = move.AlterReplicaLogDirsRequest(dirs=[here, nowhere, *empty])
    answer = admin.ask(alter_replica_log_dirs.handle, request, 2)
    assert admin.steps > 2 * MANY / A_STEP
    found = {
        topic.topic_name: [(each.partition_index, each.error_code) for each in topic.partitions]
        for topic in answer.results
    }
    assert found == {
        "t": [(0, ErrorCode.NONE), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, ErrorCode.NONE)],
        "none": [(number, ErrorCode.LOG_DIR_NOT_FOUND) for number in range(MANY)],
    }


def test_log_directories_hold_few_of_the_partitions_that_are_asked_for(admin: Admin) -> None:
    asked = [
        directories.DescribableLogDirTopic(topic="t", partitions=[1, *range(10, MANY)]),
        directories.DescribableLogDirTopic(topic="none", partitions=[0]),
    ]
    answer = admin.ask(describe_log_dirs.handle, directories.DescribeLogDirsRequest(topics=asked), 5)
    assert admin.steps > MANY / A_STEP
    (told,) = answer.results
    assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in told.topics] == [("t", [1])]
    assert asked == []
