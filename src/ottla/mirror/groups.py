"""What groups have committed on the source, translated: into MirrorMaker 2's checkpoints, and into their offsets there.

Each process does it for the partitions that it copies, whose pairs it has. An offset that is not copied yet waits for
the next time; one that is translated is exact: the record there is the one that the group had to read next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from ottla.client.admin.admin import Admin
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import GroupIdNotFound, KafkaError, SomeFailed, UnknownTopicOrPartition
from ottla.client.producing.producer import Producer
from ottla.logs import logger
from ottla.mirror.pairs import OffsetPairs
from ottla.mirror.partition import differ
from ottla.mirror.properties import FlowSettings
from ottla.mirror.record_forms import Checkpoint
from ottla.model import TopicPartition

#: The id of no topic.
_GONE: Final = b"\xff" * 16


class KnownCopy(Protocol):
    """What is known of a partition's copy: `PartitionCopy`, or whatever else says it."""

    @property
    def target(self) -> TopicPartition: ...

    @property
    def pairs(self) -> OffsetPairs: ...

    @property
    def source_id(self) -> bytes:
        """Of the topic that the pairs are about, as `target_id`."""

    @property
    def target_id(self) -> bytes: ...

    @property
    def copied(self) -> int:
        """Below it the source is copied."""

    @property
    def end(self) -> int: ...


Copies = Callable[[], Mapping[TopicPartition, KnownCopy]]


class GroupFollower:
    """Of one flow."""

    def __init__(
        self, settings: FlowSettings, own_group: str, source: Admin, target: Admin, producer: Producer, copies: Copies
    ) -> None:
        self._settings = settings
        self._own_group = own_group
        self._source = source
        self._target = target
        self._producer = producer
        self._copies = copies
        #: What was last written of each group's place.
        self._written: dict[tuple[str, TopicPartition], Checkpoint] = {}
        self._log = logger("mirror").bind(flow=settings.name)

    async def checkpoint(self) -> int:
        """Writes checkpoints of all groups that moved; returns how many. Raises KafkaError where one was not taken."""
        topic = self._settings.policy.checkpoints_topic
        fresh: dict[tuple[str, TopicPartition], Checkpoint] = {}
        current: set[tuple[str, TopicPartition]] = set()
        for one in await self._translated():
            place = (one.group, TopicPartition(one.topic, one.partition))
            current.add(place)
            if self._written.get(place) != one:
                fresh[place] = one
        deliveries = {
            place: await self._producer.send(topic, one.value(), one.key(), partition=0) for place, one in fresh.items()
        }
        await self._producer.flush()
        self._written = {place: one for place, one in self._written.items() if place in current}
        faults: list[KafkaError] = []
        for place, delivery in deliveries.items():
            try:
                await delivery
            except KafkaError as error:
                faults.append(error)
            else:
                self._written[place] = fresh[place]
        if faults:
            raise faults[0]
        return len(fresh)

    async def commit(self) -> int:
        """Commits on the target for groups that have no members there; returns for how many.

        A group is never moved back: it may have read on there.
        """
        by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        for one in await self._translated():
            offsets = by_group.setdefault(one.group, {})
            offsets[TopicPartition(one.topic, one.partition)] = CommittedOffset(one.downstream, one.metadata)
        moved = 0
        for group, known in (await self._there(by_group)).items():
            ahead = {tp: one for tp, one in by_group[group].items() if tp not in known or known[tp].offset < one.offset}
            if not ahead:
                continue
            try:
                await self._target.alter_group_offsets(group, ahead)
            except KafkaError as error:
                self._log.warning_limited("a group could not be moved", group, group=group, why=str(error))
            else:
                moved += 1
        return moved

    async def _there(
        self, by_group: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """Of those that may be moved: where they are on the target. One of which that cannot be said is not moved."""
        wanted = {group: list(by_group[group]) for group in await self._idle(by_group)}
        if not wanted:
            return {}
        try:
            return await self._target.list_groups_offsets(wanted)
        except SomeFailed as error:
            for group, why in error.errors.items():
                self._log.warning_limited("a group could not be moved", str(group), group=group, why=str(why))
            return error.results

    async def _idle(self, groups: Iterable[str]) -> list[str]:
        """Those without members on the target, or without existence there."""
        wanted = list(groups)
        if not wanted:
            return []
        try:
            described = await self._target.describe_groups(wanted)
            missing: set[str] = set()
        except SomeFailed as error:
            described = error.results
            missing = {group for group, why in error.errors.items() if isinstance(why, GroupIdNotFound)}
        except GroupIdNotFound:
            described, missing = {}, set(wanted)
        return [
            group for group in wanted if group in missing or (group in described and not described[group].is_active)
        ]

    async def _translated(self) -> list[Checkpoint]:
        copies = self._copies()
        listed = await self._source.list_groups()
        groups = [one.group_id for one in listed if self._takes(one.group_id)]
        if not groups or not copies:
            return []
        try:
            committed = await self._source.list_groups_offsets(groups)
        except SomeFailed as error:
            committed = error.results
        known = {tp: copies[tp] for offsets in committed.values() for tp in offsets if tp in copies}
        # Behind the offsets: those of a topic that was made again are none of its copy's.
        sources = await _ids(self._source, {tp.topic for tp in known})
        targets = await _ids(self._target, {copy.target.topic for copy in known.values()})
        known = {
            tp: copy
            for tp, copy in known.items()
            if not differ(copy.source_id, sources.get(tp.topic, _GONE))
            and not differ(copy.target_id, targets.get(copy.target.topic, _GONE))
        }
        return [
            checkpoint
            for group, offsets in committed.items()
            for tp, place in offsets.items()
            if (checkpoint := _translated(group, place, known.get(tp))) is not None
        ]

    def _takes(self, group: str) -> bool:
        return bool(group) and group != self._own_group and self._settings.groups.takes(group)


async def _ids(admin: Admin, topics: Iterable[str]) -> dict[str, bytes]:
    """Of those that are there."""
    names = sorted(topics)
    if not names:
        return {}
    try:
        described = await admin.describe_topics(names)
    except SomeFailed as error:
        described = error.results
    except UnknownTopicOrPartition:
        return {}
    return {name: bytes(one.topic_id) for name, one in described.items()}


def _translated(group: str, place: CommittedOffset, copy: KnownCopy | None) -> Checkpoint | None:
    if copy is None or copy.copied < 0:
        return None
    downstream = copy.pairs.target_of(place.offset, copy.copied, copy.end)
    if downstream is None:
        return None
    return Checkpoint(group, *copy.target, place.offset, downstream, place.metadata)
