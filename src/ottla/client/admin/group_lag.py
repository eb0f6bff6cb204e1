"""How far groups lie behind: what they committed against the ends of the partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin import topics as admin_topics
from ottla.client.admin.group_results import CommittedOffset, GroupDescription, MemberDescription
from ottla.client.errors import KafkaError, SomeFailed, UnknownTopicOrPartition
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition


class PartitionLag(NamedTuple):
    partition: TopicPartition
    #: None where nothing was committed.
    committed: CommittedOffset | None
    #: Behind the last record; None where the partition is no more, or has no leader now.
    end: int | None
    #: The member that has it, where one does.
    member: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """Offsets between the group and the end: records at most. None where one of the two is not known."""
        if self.committed is None or self.end is None:
            return None
        return self.end - self.committed.offset


async def group_lags(
    cluster: Cluster,
    groups: Mapping[str, GroupDescription],
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> dict[str, list[PartitionLag]]:
    """For each group all partitions that it committed or has assigned, in order."""
    owners = {name: _owners(group) for name, group in groups.items()}
    wanted = {name: sorted({*owners[name], *committed.get(name, ())}) for name in groups}
    ends = await ends_of(cluster, {tp for partitions in wanted.values() for tp in partitions})
    return {
        name: [
            PartitionLag(tp, committed.get(name, {}).get(tp), ends.get(tp), owners[name].get(tp)) for tp in partitions
        ]
        for name, partitions in wanted.items()
    }


def _owners(group: GroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {tp: member for member in group.members for tp in member.assignment}


async def ends_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], code: int = LATEST
) -> dict[TopicPartition, int]:
    """The ends (or what else `code` asks for) of those partitions that are there and have a leader now."""
    led = await led_partitions(cluster, partitions)
    if not led:
        return {}
    try:
        found = await list_offsets(cluster, dict.fromkeys(led, code))
    except SomeFailed as failed:  # a topic that has gone meanwhile
        if not all(isinstance(error, UnknownTopicOrPartition) for error in failed.errors.values()):
            raise
        found = failed.results
    except UnknownTopicOrPartition:
        return {}
    return {tp: one.offset for tp, one in found.items()}


async def led_partitions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Those that could be asked: to ask for one without a leader would be to wait until it has one."""
    wanted = list(partitions)
    topics = sorted({tp.topic for tp in wanted})
    if not topics:
        return []
    try:
        described = await admin_topics.describe(cluster, topics)
    except SomeFailed as failed:
        described = failed.results
    except KafkaError as error:
        if error.retriable and not isinstance(error, UnknownTopicOrPartition):
            raise
        return []
    led = {
        TopicPartition(topic.name, one.partition)
        for topic in described.values()
        for one in topic.partitions
        if one.leader is not None
    }
    return [tp for tp in wanted if tp in led]
