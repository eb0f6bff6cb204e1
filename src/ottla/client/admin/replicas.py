"""Admin's replicas: who leads a partition, and on which brokers it is. The controller decides and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.admin.at_controller import at_controller, refuse_elsewhere
from ottla.client.admin.results import ElectionKind, Reassignment
from ottla.client.errors import KafkaError, error_of, said_nothing, settled
from ottla.client.wire.cluster import Cluster
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.generated.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


async def elect_leaders(
    cluster: Cluster, kind: ElectionKind, partitions: Sequence[TopicPartition] | None, timeout_ms: int
) -> dict[TopicPartition, KafkaError | None]:
    asked = None
    if partitions is not None:
        asked = [TopicPartitions(topic=name, partitions=numbers) for name, numbers in _by_topic(partitions).items()]
    request = ElectLeadersRequest(election_type=int(kind), topic_partitions=asked, timeout_ms=timeout_ms)

    async def attempt(controller: int) -> ElectLeadersResponse:
        wait_ms = cluster.settings.request_timeout_ms + timeout_ms
        answer = await cluster.ask(controller, request, ElectLeadersResponse, timeout_ms=wait_ms)
        results = [one for topic in answer.replica_election_results for one in topic.partition_result]
        refuse_elsewhere([answer.error_code, *(one.error_code for one in results)])
        return answer

    answer = await at_controller(cluster, attempt)
    if answer.error_code:
        raise error_of(answer.error_code)
    results: dict[TopicPartition, KafkaError | None] = {}
    for topic in answer.replica_election_results:
        for one in topic.partition_result:
            tp = TopicPartition(topic.topic, one.partition_id)
            results[tp] = error_of(one.error_code, one.error_message, about=str(tp)) if one.error_code else None
    for tp in partitions or ():
        if tp not in results:
            results[tp] = said_nothing(str(tp))
    return results


async def alter_reassignments(
    cluster: Cluster, wanted: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: int
) -> None:
    topics: dict[str, ReassignableTopic] = {}
    for tp, replicas in wanted.items():
        listed = None if replicas is None else list(replicas)
        topic = topics.setdefault(tp.topic, ReassignableTopic(name=tp.topic, partitions=[]))
        topic.partitions.append(ReassignablePartition(partition_index=tp.partition, replicas=listed))
    request = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=list(topics.values()))

    async def attempt(controller: int) -> AlterPartitionReassignmentsResponse:
        wait_ms = cluster.settings.request_timeout_ms + timeout_ms
        answer = await cluster.ask(controller, request, AlterPartitionReassignmentsResponse, timeout_ms=wait_ms)
        refuse_elsewhere([answer.error_code])
        return answer

    answer = await at_controller(cluster, attempt)
    if answer.error_code:
        raise error_of(answer.error_code, answer.error_message)
    done: dict[TopicPartition, None] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for answered in answer.responses:
        for one in answered.partitions:
            tp = TopicPartition(answered.name, one.partition_index)
            if one.error_code:
                errors[tp] = error_of(one.error_code, one.error_message, about=str(tp))
            else:
                done[tp] = None
    for tp in wanted:
        if tp not in done and tp not in errors:
            errors[tp] = said_nothing(str(tp))
    settled(done, errors)


async def list_reassignments(
    cluster: Cluster, partitions: Sequence[TopicPartition] | None, timeout_ms: int
) -> dict[TopicPartition, Reassignment]:
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
            for name, numbers in _by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)

    async def attempt(controller: int) -> ListPartitionReassignmentsResponse:
        wait_ms = cluster.settings.request_timeout_ms + timeout_ms
        answer = await cluster.ask(controller, request, ListPartitionReassignmentsResponse, timeout_ms=wait_ms)
        refuse_elsewhere([answer.error_code])
        return answer

    answer = await at_controller(cluster, attempt)
    if answer.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise error_of(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): Reassignment(
            tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
        )
        for topic in answer.topics
        for one in topic.partitions
    }


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for tp in partitions:
        found.setdefault(tp.topic, []).append(tp.partition)
    return found
