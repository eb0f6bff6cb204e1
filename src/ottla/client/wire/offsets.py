"""ListOffsets: first, last and by time, asked of the partitions' leaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.client.errors import BadAnswer, KafkaError, error_of
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.leaders import ask_leaders, by_topic
from ottla.client.wire.listed_offset import ListedOffset
from ottla.model import TopicPartition
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
#: Codes of special offsets and the version that knows them first: max timestamp, local log, tiered, next to be tiered.
_NEEDED_VERSION = {-3: 7, -4: 8, -5: 9, -6: 11}


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, ListedOffset]:
    """For each partition the offset that its timestamp, or code of one, asks for."""

    async def ask(
        leader: int,
        group: Sequence[TopicPartition],
        results: dict[TopicPartition, ListedOffset],
        errors: dict[TopicPartition, KafkaError],
    ) -> None:
        asked = {tp: timestamps[tp] for tp in group}
        found, failed = await list_offsets_of_leader(cluster, leader, asked, isolation_level=isolation_level)
        results |= found
        errors |= failed

    return await ask_leaders(cluster, timestamps, ask, timeout_ms)


async def list_offsets_of_leader(
    cluster: Cluster, leader: int, timestamps: Mapping[TopicPartition, int], *, isolation_level: int
) -> tuple[dict[TopicPartition, ListedOffset], dict[TopicPartition, KafkaError]]:
    """What one broker says of these, asked once, and what it refused; raises what befell the whole request."""
    at_least = max((_NEEDED_VERSION.get(asked, 1) for asked in timestamps.values()), default=1)
    if isolation_level:
        at_least = max(at_least, 2)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=timestamps[TopicPartition(topic, number)])
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(timestamps).items()
        ],
    )
    answer = await cluster.ask(leader, request, ListOffsetsResponse, at_least=at_least)
    results: dict[TopicPartition, ListedOffset] = {}
    errors: dict[TopicPartition, KafkaError] = {
        tp: BadAnswer(f"broker {leader} said nothing about {tp}") for tp in timestamps
    }
    for topic in answer.topics:
        for one in topic.partitions:
            tp = TopicPartition(topic.name, one.partition_index)
            if errors.pop(tp, None) is None:
                continue
            if one.error_code:
                errors[tp] = error_of(one.error_code, about=str(tp))
            else:
                results[tp] = ListedOffset(offset=one.offset, timestamp=one.timestamp, leader_epoch=one.leader_epoch)
    return results, errors
