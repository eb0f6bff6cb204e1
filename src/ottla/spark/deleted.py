"""Offsets of partitions of which some are gone: a topic may be deleted between two questions."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.errors import KafkaError, SomeFailed
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import list_offsets
from ottla.model import ErrorCode, TopicPartition


async def list_offsets_there(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], isolation_level: int
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
    """Of those partitions that are there; and what brokers have said of the others, for so long that it is believed.

    Raises what else is wrong.
    """
    if not timestamps:
        return {}, {}
    missing: Mapping[TopicPartition, KafkaError] = {}
    try:
        found = await list_offsets(cluster, timestamps, isolation_level=isolation_level)
    except SomeFailed as error:
        found, missing = error.results, error.errors
    except KafkaError as error:
        found, missing = {}, dict.fromkeys(timestamps, error)
    for fault in missing.values():
        if fault.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise fault
    return {tp: one.offset for tp, one in found.items()}, dict(missing)
