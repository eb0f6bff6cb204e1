"""Questions about partitions, which only their leaders can answer: grouped by leader, put again where one has moved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.client.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownBroker,
    UnknownTopicOrPartition,
    error_of,
    settled,
)
from ottla.client.wire.cluster import Cluster
from ottla.model import ErrorCode, TopicPartition

Result = TypeVar("Result")

#: A topic that was just made is made known to one broker after another: this long nobody is believed who has not heard
#: of it.
_HEARD_MS: Final = 2_000

#: Asks one leader about its partitions: fills in results and errors.
AskLeader = Callable[
    [int, Sequence[TopicPartition], dict[TopicPartition, Result], dict[TopicPartition, KafkaError]], Awaitable[None]
]


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: AskLeader[Result],
    timeout_ms: int | None = None,
) -> dict[TopicPartition, Result]:
    """All partitions' results, asked for until none has a retriable error left; a topic that nobody has heard of for a
    while fails."""
    results: dict[TopicPartition, Result] = {}
    open_ = list(dict.fromkeys(partitions))
    final: dict[TopicPartition, KafkaError] = {}
    loop = asyncio.get_running_loop()
    heard_until = loop.time() + _HEARD_MS / 1000

    async def attempt() -> None:
        nonlocal open_
        may_be_new = loop.time() < heard_until
        by_leader, errors = await _leaders(cluster, open_)
        await asyncio.gather(*(_one(leader, group, errors) for leader, group in by_leader.items()))
        open_ = []
        for tp, error in errors.items():
            if error.retriable and (may_be_new or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                open_.append(tp)
            else:
                final[tp] = error
        if open_:
            raise errors[open_[0]]

    async def _one(leader: int, group: Sequence[TopicPartition], errors: dict[TopicPartition, KafkaError]) -> None:
        try:
            await ask(leader, group, results, errors)
        except UnknownBroker as error:  # it has left the cluster meanwhile: somebody else leads, or will
            for tp in group:
                errors[tp] = NotLeaderOrFollower(f"{tp}: {error}")
        except KafkaError as error:
            if not error.retriable:
                raise
            for tp in group:
                errors[tp] = error

    with cluster.asking({tp.topic for tp in open_}):
        await cluster.retrying(attempt, timeout_ms)
    return settled(results, final)


async def _leaders(
    cluster: Cluster, partitions: Sequence[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, KafkaError]]:
    if any(cluster.metadata.leader(*tp) is None for tp in partitions):
        await cluster.updated()
    groups: dict[int, list[TopicPartition]] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for tp in partitions:
        found = cluster.metadata.leader(*tp)
        if found is not None:
            groups.setdefault(found.leader, []).append(tp)
            continue
        topic = cluster.metadata.topics.get(tp.topic)
        if topic is None:
            code = cluster.metadata.errors.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            errors[tp] = error_of(code, about=tp.topic)
        elif tp.partition >= len(topic.partitions):
            errors[tp] = UnknownTopicOrPartition(
                f"{tp.topic} has no partition {tp.partition}: it has {len(topic.partitions)}, numbered from 0"
            )
        else:
            errors[tp] = NotLeaderOrFollower(f"{tp} has no leader now")
    return groups, errors


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
