"""Admin's offsets of groups: what they committed, and what is changed or forgotten while nobody is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import KafkaError, error_of, said_nothing, settled
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.coordinators import PASSING, ask_coordinators
from ottla.client.wire.leaders import by_topic
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated import offset_commit as committing
from ottla.protocol.generated import offset_delete as deleting
from ottla.protocol.generated import offset_fetch as fetching

Committed = dict[TopicPartition, CommittedOffset]

#: Newer versions of OffsetFetch and OffsetCommit name topics by their ids. Positions in topics that are no more can
#: be asked for and shown by name only.
_BY_NAME_MAX = 9
#: OffsetFetch asks for several groups at once since; for all topics of one; for what no open transaction may change.
_SEVERAL_SINCE = 8
_ALL_TOPICS_SINCE = 2
_STABLE_SINCE = 7
#: What stands for "nothing was committed".
_NONE = -1


async def list_group_offsets(
    cluster: Cluster, wanted: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool
) -> dict[str, Committed]:
    """By group and partition; with None all partitions of a group. What nobody has committed is not there."""
    asked = {group: None if tps is None else by_topic(tps) for group, tps in wanted.items()}

    async def ask(
        node: int, groups: Sequence[str], results: dict[str, Committed], errors: dict[str, KafkaError]
    ) -> None:
        connection = await cluster.control(node)
        if connection.serves(ApiKey.OFFSET_FETCH, _SEVERAL_SINCE):
            answered = await _fetch_several(
                cluster, connection, {group: asked[group] for group in groups}, require_stable
            )
        else:
            answered = [await _fetch_one(cluster, connection, group, asked[group], require_stable) for group in groups]
        for group, code, partitions in answered:
            try:
                results[group] = _committed(group, asked[group], code, partitions)
            except KafkaError as error:
                errors[group] = error

    return await ask_coordinators(cluster, wanted, ask)


FetchedOffsets = tuple[str, int, list[tuple[TopicPartition, int, CommittedOffset]]]


async def _fetch_several(
    cluster: Cluster,
    connection: BrokerConnection,
    asked: Mapping[str, dict[str, list[int]] | None],
    require_stable: bool,
) -> list[FetchedOffsets]:
    request = fetching.OffsetFetchRequest(
        groups=[
            fetching.OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    fetching.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                    for name, numbers in topics.items()
                ],
            )
            for group, topics in asked.items()
        ],
        require_stable=require_stable,
    )
    answer = await connection.ask(
        request,
        fetching.OffsetFetchResponse,
        timeout_ms=cluster.settings.request_timeout_ms,
        at_least=_SEVERAL_SINCE,
        at_most=_BY_NAME_MAX,
    )
    return [
        (
            one.group_id,
            one.error_code,
            [_position(topic.name, answered) for topic in one.topics for answered in topic.partitions],
        )
        for one in answer.groups
    ]


async def _fetch_one(
    cluster: Cluster,
    connection: BrokerConnection,
    group: str,
    topics: dict[str, list[int]] | None,
    require_stable: bool,
) -> FetchedOffsets:
    request = fetching.OffsetFetchRequest(
        group_id=group,
        topics=None
        if topics is None
        else [
            fetching.OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()
        ],
        require_stable=require_stable,
    )
    answer = await connection.ask(
        request,
        fetching.OffsetFetchResponse,
        timeout_ms=cluster.settings.request_timeout_ms,
        at_least=_STABLE_SINCE if require_stable else _ALL_TOPICS_SINCE,
        at_most=_SEVERAL_SINCE - 1,
    )
    partitions = [_position(topic.name, answered) for topic in answer.topics for answered in topic.partitions]
    return group, answer.error_code, partitions


def _position(
    topic: str, answered: fetching.OffsetFetchResponsePartition | fetching.OffsetFetchResponsePartitions
) -> tuple[TopicPartition, int, CommittedOffset]:
    position = CommittedOffset(answered.committed_offset, answered.metadata or "", answered.committed_leader_epoch)
    return TopicPartition(topic, answered.partition_index), answered.error_code, position


def _committed(
    group: str,
    asked: Mapping[str, Sequence[int]] | None,
    code: int,
    partitions: list[tuple[TopicPartition, int, CommittedOffset]],
) -> Committed:
    if code:
        raise error_of(code, about=group)
    found: Committed = {}
    answered = {tp for tp, _, _ in partitions}
    named = [TopicPartition(topic, number) for topic, numbers in (asked or {}).items() for number in numbers]
    errors: dict[TopicPartition, KafkaError] = {
        tp: said_nothing(f"{group} in {tp}") for tp in named if tp not in answered
    }
    for tp, fault, position in partitions:
        if fault:
            errors[tp] = error_of(fault, about=f"{group} in {tp}")
        elif position.offset != _NONE:
            found[tp] = position
    passing = next((error for error in errors.values() if error.code in PASSING), None)
    if passing is not None:
        raise passing  # then the whole group is asked for again
    return settled(found, errors)


async def alter_group_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """As a simple consumer commits, which is refused while the group has members."""

    def partition(topic: str, number: int) -> committing.OffsetCommitRequestPartition:
        wanted = offsets[TopicPartition(topic, number)]
        return committing.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=wanted.offset,
            committed_leader_epoch=wanted.leader_epoch,
            committed_metadata=wanted.metadata,
        )

    request = committing.OffsetCommitRequest(
        group_id=group,
        topics=[
            committing.OffsetCommitRequestTopic(name=topic, partitions=[partition(topic, one) for one in numbers])
            for topic, numbers in by_topic(offsets).items()
        ],
    )

    async def ask(node: int, groups: Sequence[str], results: dict[str, None], errors: dict[str, KafkaError]) -> None:
        assert list(groups) == [group]
        connection = await cluster.control(node)
        timeout_ms = cluster.settings.request_timeout_ms
        answer = await connection.ask(
            request, committing.OffsetCommitResponse, timeout_ms=timeout_ms, at_most=_BY_NAME_MAX
        )
        codes = {
            TopicPartition(topic.name, one.partition_index): one.error_code
            for topic in answer.topics
            for one in topic.partitions
        }
        _settle(group, offsets, codes, results, errors)

    if offsets:
        await ask_coordinators(cluster, [group], ask)


async def delete_group_offsets(cluster: Cluster, group: str, partitions: Iterable[TopicPartition]) -> None:
    wanted = list(partitions)
    request = deleting.OffsetDeleteRequest(
        group_id=group,
        topics=[
            deleting.OffsetDeleteRequestTopic(
                name=topic, partitions=[deleting.OffsetDeleteRequestPartition(partition_index=one) for one in numbers]
            )
            for topic, numbers in by_topic(wanted).items()
        ],
    )

    async def ask(node: int, groups: Sequence[str], results: dict[str, None], errors: dict[str, KafkaError]) -> None:
        assert list(groups) == [group]
        answer = await cluster.ask(node, request, deleting.OffsetDeleteResponse)
        if answer.error_code:
            errors[group] = error_of(answer.error_code, about=group)
            return
        codes = {
            TopicPartition(topic.name, one.partition_index): one.error_code
            for topic in answer.topics
            for one in topic.partitions
        }
        _settle(group, wanted, codes, results, errors)

    await ask_coordinators(cluster, [group], ask)


def _settle(
    group: str,
    wanted: Iterable[TopicPartition],
    codes: Mapping[TopicPartition, int],
    results: dict[str, None],
    errors: dict[str, KafkaError],
) -> None:
    """One group's partitions: done if all are; the error that passes, or else all errors as one."""
    faults = {tp: error_of(code, about=f"{group} in {tp}") for tp, code in codes.items() if code}
    faults |= {tp: said_nothing(f"{group} in {tp}") for tp in wanted if tp not in codes}
    passing = next((error for error in faults.values() if error.code in PASSING), None)
    if passing is not None:
        errors[group] = passing
        return
    try:
        settled({tp: None for tp, code in codes.items() if not code}, faults)
    except KafkaError as error:
        errors[group] = error
    else:
        results[group] = None
