"""Admin's topics: described by any broker, changed by the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.admin.at_controller import longer, told_of_topics
from ottla.client.admin.results import (
    ClusterDescription,
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    TopicDescription,
)
from ottla.client.errors import KafkaError, NoBrokerReached, error_of, settled
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.metadata import Node, says_nothing
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.protocol.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

#: DeleteTopics names topics in a list of its own before this version.
_DELETE_BY_STATE: Final = 6


async def describe_cluster(cluster: Cluster) -> ClusterDescription:
    connection = await cluster.any_connection()
    timeout_ms = cluster.settings.request_timeout_ms
    if connection.serves(ApiKey.DESCRIBE_CLUSTER):
        answered = await connection.ask(DescribeClusterRequest(), DescribeClusterResponse, timeout_ms=timeout_ms)
        if answered.error_code:
            raise error_of(answered.error_code, answered.error_message)
        nodes = tuple(Node(one.broker_id, one.host, one.port, one.rack) for one in answered.brokers)
        cluster_id: str | None = answered.cluster_id
        controller = answered.controller_id
    else:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=True)
        answer = await connection.ask(request, MetadataResponse, timeout_ms=timeout_ms, at_least=1)
        nodes = tuple(Node(one.node_id, one.host, one.port, one.rack) for one in answer.brokers)
        cluster_id, controller = answer.cluster_id, answer.controller_id
    return ClusterDescription(
        cluster_id=cluster_id,
        controller_id=controller if controller >= 0 else None,
        brokers=tuple(sorted(nodes, key=lambda node: node.id)),
    )


async def describe(cluster: Cluster, names: Sequence[str] | None) -> dict[str, TopicDescription]:
    """These topics or all. One that is not there is an error at once: nobody is about to create it."""

    async def attempt() -> MetadataResponse:
        connection = await cluster.any_connection()
        version = connection.version(ApiKey.METADATA, at_least=1)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=version < 4,  # older brokers have no choice
        )
        timeout_ms = cluster.settings.request_timeout_ms
        answer = await connection.ask(request, MetadataResponse, timeout_ms=timeout_ms, at_most=version)
        if says_nothing(answer):
            raise NoBrokerReached(f"{connection.peer} knows no broker that is alive")
        return answer

    answer = await cluster.retrying(attempt)
    found: dict[str, TopicDescription] = {}
    errors: dict[str, KafkaError] = {}
    for topic in answer.topics:
        if topic.name is None:
            continue
        if topic.error_code:
            if names is not None:
                errors[topic.name] = error_of(topic.error_code, about=topic.name)
            continue
        partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
        found[topic.name] = TopicDescription(
            name=topic.name,
            topic_id=bytes(topic.topic_id),
            internal=topic.is_internal,
            partitions=tuple(_partition(topic.name, one) for one in partitions),
        )
    for name in names or ():
        if name not in found and name not in errors:
            errors[name] = error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, about=name)
    return settled(found, errors)


def _partition(topic: str, answered: MetadataResponsePartition) -> PartitionDescription:
    error = error_of(answered.error_code, about=f"{topic}-{answered.partition_index}") if answered.error_code else None
    return PartitionDescription(
        partition=answered.partition_index,
        leader=answered.leader_id if answered.leader_id >= 0 else None,
        leader_epoch=answered.leader_epoch,
        replicas=tuple(answered.replica_nodes),
        isr=tuple(answered.isr_nodes),
        offline_replicas=tuple(answered.offline_replicas),
        error=error,
    )


async def create(
    cluster: Cluster, topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool
) -> dict[str, CreatedTopic]:
    wanted = {topic.name: topic for topic in topics}

    async def ask(controller: int, names: Sequence[str]) -> Sequence[CreatableTopicResult]:
        request = CreateTopicsRequest(
            topics=[_creatable(wanted[name]) for name in names], timeout_ms=timeout_ms, validate_only=validate_only
        )
        answer = await cluster.ask(controller, request, CreateTopicsResponse, timeout_ms=longer(cluster, timeout_ms))
        return answer.topics

    return await told_of_topics(cluster, list(wanted), ask, _created)


def _created(told: CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(
        name=told.name,
        topic_id=bytes(told.topic_id),
        partitions=told.num_partitions,
        replication_factor=told.replication_factor,
        configs={config.name: config.value for config in told.configs or ()},
    )


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


async def delete(cluster: Cluster, names: Sequence[str], timeout_ms: int) -> None:
    async def ask(controller: int, left: Sequence[str]) -> Sequence[DeletableTopicResult]:
        connection = await cluster.control(controller)
        version = connection.version(ApiKey.DELETE_TOPICS)
        request = DeleteTopicsRequest(timeout_ms=timeout_ms)
        if version >= _DELETE_BY_STATE:
            request.topics = [DeleteTopicState(name=name) for name in left]
        else:
            request.topic_names = list(left)
        answer = await connection.ask(
            request, DeleteTopicsResponse, timeout_ms=longer(cluster, timeout_ms), at_most=version
        )
        return answer.responses

    await told_of_topics(cluster, names, ask, _nothing)
    cluster.forget(names)


async def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]],
    timeout_ms: int,
    *,
    validate_only: bool,
) -> None:
    def wanted(name: str, count: int) -> CreatePartitionsTopic:
        rows = assignments.get(name)
        placed = None if rows is None else [CreatePartitionsAssignment(broker_ids=list(row)) for row in rows]
        return CreatePartitionsTopic(name=name, count=count, assignments=placed)

    async def ask(controller: int, left: Sequence[str]) -> Sequence[CreatePartitionsTopicResult]:
        request = CreatePartitionsRequest(
            topics=[wanted(name, counts[name]) for name in left], timeout_ms=timeout_ms, validate_only=validate_only
        )
        answer = await cluster.ask(
            controller, request, CreatePartitionsResponse, timeout_ms=longer(cluster, timeout_ms)
        )
        return answer.results

    await told_of_topics(cluster, list(counts), ask, _nothing)


def _nothing(_: object) -> None:
    """It is done, and there is nothing to say of it."""
