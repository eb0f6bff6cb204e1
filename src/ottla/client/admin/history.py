"""What one broker has seen of a partition: its past, and, from its leader, where the followers are.

Ottla's brokers answer it in a tagged field of DescribeTopicPartitions, which Kafka's skip: of these nothing is known.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.errors import error_of, said_nothing
from ottla.client.wire.cluster import Cluster
from ottla.protocol.generated.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.partition_history import HISTORY_TAG, PartitionHistory, history_in

#: Of a partition's leader epochs those that are looked up, from the last one back.
EPOCHS_MAX: Final = 20


class SeenPartition(NamedTuple):
    """As one broker knows it."""

    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    #: None where the broker keeps none.
    history: PartitionHistory | None


class EpochStart(NamedTuple):
    leader_epoch: int
    offset: int


async def seen_partition(
    cluster: Cluster, broker: int, topic: str, partition: int, timeout_ms: int
) -> SeenPartition | None:
    """None where this broker does not know the partition."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=topic)],
        response_partition_limit=1,
        cursor=Cursor(topic_name=topic, partition_index=partition),
        unknown_tags={HISTORY_TAG: b""},
    )
    answer = await cluster.ask(broker, request, DescribeTopicPartitionsResponse, timeout_ms=timeout_ms)
    for found in answer.topics:
        for one in found.partitions:
            if (found.name, one.partition_index) != (topic, partition):
                continue
            tag = one.unknown_tags.get(HISTORY_TAG)
            leader = one.leader_id if one.leader_id >= 0 else None
            return SeenPartition(
                leader, one.leader_epoch, tuple(one.isr_nodes), None if tag is None else history_in(tag)
            )
    return None


async def leader_epochs(
    cluster: Cluster, leader: int, topic: str, partition: int, last: int, timeout_ms: int
) -> list[EpochStart]:
    """Where the leaderships begin that are in the leader's log, the last one first. Raises KafkaError."""
    found: list[EpochStart] = []
    epoch = last
    for _ in range(EPOCHS_MAX):
        # The last epoch up to this one, and where it ends: that is where the one after it begins.
        ended_epoch, end = await _end_of(cluster, leader, topic, partition, epoch, last, timeout_ms)
        if found:
            found[-1] = found[-1]._replace(offset=max(0, end))
        if ended_epoch < 0 or ended_epoch > epoch:
            break
        found.append(EpochStart(ended_epoch, 0))
        epoch = ended_epoch - 1
        if epoch < 0:
            break
    return found


async def _end_of(
    cluster: Cluster, leader: int, topic: str, partition: int, epoch: int, current: int, timeout_ms: int
) -> tuple[int, int]:
    wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    )
    answer = await cluster.ask(leader, request, OffsetForLeaderEpochResponse, timeout_ms=timeout_ms)
    about = f"{topic}-{partition}"
    for one in (one for told in answer.topics if told.topic == topic for one in told.partitions):
        if one.partition != partition:
            continue
        if one.error_code:
            raise error_of(one.error_code, about=about)
        return one.leader_epoch, one.end_offset
    raise said_nothing(about)
