"""Which partitions there are of what is subscribed to, and the ids of their topics."""

from __future__ import annotations

import re
from typing import NamedTuple

from ottla.client.admin.results import TopicDescription
from ottla.client.admin.topics import describe
from ottla.client.errors import KafkaError, SomeFailed
from ottla.client.wire.cluster import Cluster
from ottla.model import ErrorCode, TopicPartition
from ottla.spark.source.errors import TopicMissing
from ottla.spark.source.settings import ASSIGN, SUBSCRIBE, Subscription


class FoundPartitions(NamedTuple):
    partitions: list[TopicPartition]
    ids: dict[str, bytes]
    #: What was named and is not there, as a message says it.
    missing: list[str]

    def check_whole(self) -> None:
        if self.missing:
            raise TopicMissing("; ".join(self.missing))


async def find_partitions(cluster: Cluster, subscription: Subscription) -> FoundPartitions:
    """All partitions of it that there are now, in order. What is named and is not there is in `missing`."""
    if subscription.pattern is not None:
        # Spark's own source takes a topic that has a match anywhere in its name, and so does whoever comes from it.
        pattern = re.compile(subscription.pattern)
        every = await describe(cluster, None)
        return _found([one for name, one in every.items() if pattern.search(name) and not one.internal])
    if subscription.topics:
        topics, missing = await _described(cluster, subscription.topics, SUBSCRIBE)
        return _found(topics)._replace(missing=missing)
    names = tuple(dict.fromkeys(tp.topic for tp in subscription.partitions))
    topics, missing = await _described(cluster, names, ASSIGN)
    found = _found(topics)
    there = set(found.partitions)
    for tp in subscription.partitions:
        if tp.topic in found.ids and tp not in there:
            missing.append(f"{tp.topic} has no partition {tp.partition}: change {ASSIGN}")
    return FoundPartitions([tp for tp in subscription.partitions if tp in there], found.ids, missing)


def _found(topics: list[TopicDescription]) -> FoundPartitions:
    partitions = sorted(TopicPartition(topic.name, one.partition) for topic in topics for one in topic.partitions)
    return FoundPartitions(partitions, {topic.name: topic.topic_id for topic in topics}, [])


async def _described(cluster: Cluster, names: tuple[str, ...], option: str) -> tuple[list[TopicDescription], list[str]]:
    try:
        return list((await describe(cluster, list(names))).values()), []
    except SomeFailed as error:
        errors, found = error.errors, list(error.results.values())
    except KafkaError as error:
        if len(names) != 1:
            raise
        errors, found = {names[0]: error}, []
    missing = []
    for name, fault in errors.items():
        if fault.code not in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}:
            raise fault
        missing.append(f"topic {name} does not exist: create it, or change {option}")
    return found, missing
