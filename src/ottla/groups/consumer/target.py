"""The target assignment: what each member should have, once all have caught up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.consumer import records
from ottla.groups.consumer.assignors import ASSIGNORS, Candidate, Demand
from ottla.groups.consumer.member import NO_PARTITIONS, Member, Partitions, ResolvedRegex
from ottla.groups.consumer.topics import topic_ids
from ottla.groups.journal import JournalRecord
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId

_NO_TARGET: Partitions = {}


class NewTarget(NamedTuple):
    by_member: Mapping[str, Partitions]
    #: For the members whose target is another than before, and for its epoch.
    records: list[JournalRecord]


class Basis(NamedTuple):
    """What a target is computed from: the group as it will be."""

    group_id: str
    epoch: int
    members: Iterable[Member]
    regexes: Mapping[str, ResolvedRegex]
    before: Mapping[str, Partitions]
    assignor: str


def compute(basis: Basis, metadata: MetadataCache, wall_ms: int) -> NewTarget:
    members = list(basis.members)
    candidates = _candidates(members, basis, metadata)
    counts: dict[TopicId, int] = {}
    for candidate in candidates:
        for topic in candidate.topics:
            if topic not in counts:
                found = metadata.topic_by_id(topic)
                counts[topic] = 0 if found is None else len(found.partitions)
    targets = ASSIGNORS[basis.assignor](Demand(candidates, counts))
    by_member: dict[str, Partitions] = {}
    changed = []
    for member in members:
        target = by_member[member.id] = targets.get(member.id, _NO_TARGET)
        if basis.before.get(member.id) != target:
            changed.append(records.target(basis.group_id, member.id, target))
    changed.append(records.target_epoch(basis.group_id, basis.epoch, wall_ms))
    return NewTarget(by_member, changed)


def _candidates(members: list[Member], basis: Basis, metadata: MetadataCache) -> list[Candidate]:
    """Most members of a group want the same topics: each subscription is looked up once."""
    looked_up: dict[tuple[frozenset[str], str], frozenset[TopicId]] = {}
    candidates = []
    for member in members:
        key = (member.topic_names, member.topic_regex)
        topics = looked_up.get(key)
        if topics is None:
            topics = looked_up[key] = subscribed_ids(member, basis.regexes, metadata)
        before = basis.before.get(member.id, NO_PARTITIONS)
        candidates.append(Candidate(member.id, member.instance_id, topics, before))
    return candidates


def subscribed_ids(member: Member, regexes: Mapping[str, ResolvedRegex], metadata: MetadataCache) -> frozenset[TopicId]:
    """The topics that exist of those that the member wants, by name or by expression."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    names = member.topic_names if resolved is None else member.topic_names | resolved.topics
    return topic_ids(names, metadata)
