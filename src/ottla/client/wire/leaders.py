"""Questions about partitions, which only their leaders can answer: grouped by leader, put again where one has moved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from ottla.client.errors import (
    BadAnswer,
    ClientClosed,
    KafkaError,
    NotLeaderOrFollower,
    UnknownBroker,
    UnknownTopicOrPartition,
    error_of,
)
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.settling import asked_until_settled
from ottla.model import ErrorCode, TopicPartition

Result = TypeVar("Result")

#: A topic that was just made is made known to one broker after another: this long nobody is believed who has not heard
#: of it.
_HEARD_MS: Final = 2_000

#: So many partitions are named where their leader has gone.
_NAMED_MAX: Final = 3

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
    while fails. What one leader says, or leaves unsaid until the time is up, hides nothing of what others said."""
    results: dict[TopicPartition, Result] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    wanted = list(dict.fromkeys(partitions))
    open_ = wanted
    loop = asyncio.get_running_loop()
    heard_until = loop.time() + _HEARD_MS / 1000

    async def attempt() -> None:
        nonlocal open_
        may_be_new = loop.time() < heard_until
        by_leader, unled = await _leaders(cluster, open_)
        errors.update(unled)
        await asyncio.gather(*(_one(leader, group) for leader, group in by_leader.items()))
        open_ = [tp for tp in open_ if tp not in results and _passes(errors[tp], may_be_new=may_be_new)]
        if open_:
            raise errors[open_[0]]

    async def _one(leader: int, group: Sequence[TopicPartition]) -> None:
        refused: dict[TopicPartition, KafkaError] = {}
        missing: KafkaError = BadAnswer(f"broker {leader} says nothing about all that it was asked")
        try:
            await ask(leader, group, results, refused)
        except ClientClosed:
            raise
        except UnknownBroker as error:  # it has left the cluster meanwhile: somebody else leads, or will
            missing = NotLeaderOrFollower(f"{', '.join(map(str, group[:_NAMED_MAX]))}: {error}")
        except KafkaError as error:
            missing = error
        errors.update({tp: refused.get(tp, missing) for tp in group if tp not in results})

    with cluster.asking({tp.topic for tp in wanted}):
        return await asked_until_settled(cluster, attempt, timeout_ms, wanted, results, errors)


def _passes(error: KafkaError, *, may_be_new: bool) -> bool:
    return error.retriable and (may_be_new or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


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
