"""How far groups lie behind: what they committed against the ends of the partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin import topics as admin_topics
from ottla.client.admin.group_results import CommittedOffset, GroupDescription, MemberDescription
from ottla.client.admin.results import TopicDescription
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
    #: The partition is no more: there is no end to be behind of. Without a leader there is one that nobody says.
    gone: bool = False

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
    led, gone = await _led_and_gone(cluster, dict.fromkeys(tp for listed in wanted.values() for tp in listed))
    ends, went = await _ends_of_led(cluster, led, LATEST)
    gone |= went
    return {
        name: [
            PartitionLag(tp, committed.get(name, {}).get(tp), ends.get(tp), owners[name].get(tp), tp in gone)
            for tp in partitions
        ]
        for name, partitions in wanted.items()
    }


def _owners(group: GroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {tp: member for member in group.members for tp in member.assignment}


async def ends_of(
    cluster: Cluster, partitions: Iterable[TopicPartition], code: int = LATEST
) -> dict[TopicPartition, int]:
    """The ends (or what else `code` asks for) of those partitions that are there and have a leader now."""
    led, _ = await _led_and_gone(cluster, partitions)
    return (await _ends_of_led(cluster, led, code))[0]


async def _ends_of_led(
    cluster: Cluster, led: list[TopicPartition], code: int
) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
    """And those whose topics have gone meanwhile."""
    if not led:
        return {}, set()
    try:
        found = await list_offsets(cluster, dict.fromkeys(led, code))
    except SomeFailed as failed:
        if not all(isinstance(error, UnknownTopicOrPartition) for error in failed.errors.values()):
            raise
        found = failed.results
    except UnknownTopicOrPartition:
        return {}, set(led)
    return {tp: one.offset for tp, one in found.items()}, set(led).difference(found)


async def led_partitions(cluster: Cluster, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Those that could be asked: to ask for one without a leader would be to wait until it has one."""
    return (await _led_and_gone(cluster, partitions))[0]


async def _led_and_gone(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[list[TopicPartition], set[TopicPartition]]:
    """Those with a leader, and those that are no more. What is neither has no leader now."""
    wanted = list(partitions)
    topics = sorted({tp.topic for tp in wanted})
    if not topics:
        return [], set()
    errors: Mapping[str, BaseException] = {}
    described: Mapping[str, TopicDescription] = {}
    try:
        described = await admin_topics.describe(cluster, topics)
    except SomeFailed as failed:
        described, errors = failed.results, failed.errors
    except KafkaError as error:
        if error.retriable and not isinstance(error, UnknownTopicOrPartition):
            raise
        errors = dict.fromkeys(topics, error)
    leaders = {
        TopicPartition(topic.name, one.partition): one.leader
        for topic in described.values()
        for one in topic.partitions
    }
    unknown = {topic for topic, error in errors.items() if not isinstance(error, UnknownTopicOrPartition)}
    gone = {tp for tp in wanted if tp not in leaders and tp.topic not in unknown}
    return [tp for tp in wanted if leaders.get(tp) is not None], gone
