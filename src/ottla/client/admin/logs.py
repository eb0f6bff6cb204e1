"""Admin's view of logs: records deleted, directories, what partitions remember of producers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin.at_controller import longer
from ottla.client.admin.results import LogDirDescription, ProducerDescription, ReplicaSize
from ottla.client.errors import KafkaError, error_of, said_nothing, settled
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.leaders import ask_leaders, by_topic
from ottla.model import TopicPartition
from ottla.protocol.generated import alter_replica_log_dirs as moving
from ottla.protocol.generated import delete_records as deleting
from ottla.protocol.generated import describe_log_dirs as directories
from ottla.protocol.generated import describe_producers as producers


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, int]:
    async def ask(
        leader: int,
        group: Sequence[TopicPartition],
        results: dict[TopicPartition, int],
        errors: dict[TopicPartition, KafkaError],
    ) -> None:
        request = deleting.DeleteRecordsRequest(
            topics=[
                deleting.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        deleting.DeleteRecordsPartition(
                            partition_index=number, offset=before[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(group).items()
            ],
            timeout_ms=timeout_ms,
        )
        answer = await cluster.ask(leader, request, deleting.DeleteRecordsResponse, timeout_ms=patience_ms)
        for topic in answer.topics:
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                if one.error_code:
                    errors[tp] = error_of(one.error_code, about=str(tp))
                else:
                    results[tp] = one.low_watermark

    # Asked again before its time is over, -1 would delete what was written meanwhile.
    patience_ms = longer(cluster, timeout_ms)
    return await ask_leaders(cluster, before, ask, max(cluster.settings.default_api_timeout_ms, patience_ms))


async def describe_log_dirs(
    cluster: Cluster, brokers: Iterable[int] | None, topics: Mapping[str, Sequence[int]] | None
) -> dict[int, dict[str, LogDirDescription]]:
    if brokers is None:
        await cluster.retrying(cluster.updated)
        brokers = sorted(cluster.metadata.nodes)
    wanted = None
    if topics is not None:
        wanted = [
            directories.DescribableLogDirTopic(topic=name, partitions=list(numbers)) for name, numbers in topics.items()
        ]
    request = directories.DescribeLogDirsRequest(topics=wanted)

    async def ask(broker: int) -> dict[str, LogDirDescription]:
        answer = await cluster.ask(broker, request, directories.DescribeLogDirsResponse)
        if answer.error_code:
            raise error_of(answer.error_code, about=f"broker {broker}")
        return {one.log_dir: _directory(one) for one in answer.results}

    results: dict[int, dict[str, LogDirDescription]] = {}
    errors: dict[int, KafkaError] = {}
    for broker in brokers:
        try:
            results[broker] = await cluster.retrying(lambda broker=broker: ask(broker))  # type: ignore[misc]
        except KafkaError as error:  # what other brokers say is not lost with it
            errors[broker] = error
    return settled(results, errors)


def _directory(answered: directories.DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        path=answered.log_dir,
        error=error_of(answered.error_code, about=answered.log_dir) if answered.error_code else None,
        replicas={
            TopicPartition(topic.name, one.partition_index): ReplicaSize(
                size=one.partition_size, offset_lag=one.offset_lag, is_future=one.is_future_key
            )
            for topic in answered.topics
            for one in topic.partitions
        },
        total_bytes=answered.total_bytes if answered.total_bytes >= 0 else None,
        usable_bytes=answered.usable_bytes if answered.usable_bytes >= 0 else None,
    )


async def alter_replica_log_dirs(cluster: Cluster, moves: Mapping[int, Mapping[TopicPartition, str]]) -> None:
    results: dict[tuple[int, TopicPartition], None] = {}
    errors: dict[tuple[int, TopicPartition], KafkaError] = {}
    for broker, wanted in moves.items():
        by_path: dict[str, list[TopicPartition]] = {}
        for tp, path in wanted.items():
            by_path.setdefault(path, []).append(tp)
        request = moving.AlterReplicaLogDirsRequest(
            dirs=[
                moving.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        moving.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in by_topic(group).items()
                    ],
                )
                for path, group in by_path.items()
            ]
        )
        try:
            answer = await cluster.retrying(
                lambda broker=broker, request=request: cluster.ask(broker, request, moving.AlterReplicaLogDirsResponse)  # type: ignore[misc]
            )
        except KafkaError as error:
            errors |= {(broker, tp): error for tp in wanted}
            continue
        for topic in answer.results:
            for one in topic.partitions:
                tp = TopicPartition(topic.topic_name, one.partition_index)
                if one.error_code:
                    errors[broker, tp] = error_of(one.error_code, about=f"{tp} on broker {broker}")
                else:
                    results[broker, tp] = None
        for tp in wanted:
            if (broker, tp) not in results and (broker, tp) not in errors:
                errors[broker, tp] = said_nothing(f"{tp} on broker {broker}")
    settled(results, errors)


async def describe_producers(
    cluster: Cluster, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, list[ProducerDescription]]:
    async def ask(
        leader: int,
        group: Sequence[TopicPartition],
        results: dict[TopicPartition, list[ProducerDescription]],
        errors: dict[TopicPartition, KafkaError],
    ) -> None:
        request = producers.DescribeProducersRequest(
            topics=[
                producers.TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(group).items()
            ]
        )
        answer = await cluster.ask(leader, request, producers.DescribeProducersResponse)
        for topic in answer.topics:
            for one in topic.partitions:
                tp = TopicPartition(topic.name, one.partition_index)
                if one.error_code:
                    errors[tp] = error_of(one.error_code, one.error_message, about=str(tp))
                else:
                    results[tp] = [_producer(state) for state in one.active_producers]

    return await ask_leaders(cluster, partitions, ask)


def _producer(answered: producers.ProducerState) -> ProducerDescription:
    return ProducerDescription(
        producer_id=answered.producer_id,
        producer_epoch=answered.producer_epoch,
        last_sequence=answered.last_sequence,
        last_timestamp=answered.last_timestamp,
        coordinator_epoch=answered.coordinator_epoch if answered.coordinator_epoch >= 0 else None,
        transaction_start_offset=answered.current_txn_start_offset if answered.current_txn_start_offset >= 0 else None,
    )
