"""The target assignment: what each member should have, once all have caught up.

To compute it takes the longer the more members and partitions there are, up to seconds. It goes in steps, from what the
group was when they began.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer import long_records
from ottla.groups.consumer.assignors import ASSIGNORS, Candidate, Demand
from ottla.groups.consumer.member import NO_PARTITIONS, Member, Partitions, ResolvedRegex
from ottla.groups.consumer.topics import topic_ids
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.steps import PIECE, Steps, pieces

_NO_TARGET: Partitions = {}
#: Work (`is_large`) that is done at once, as part of the heartbeat that needs it: two milliseconds or so.
WORK_AT_ONCE_MAX: Final = 4_000
#: Hand-overs between members who want different topics, as many as are partitions, look at so many members each in the
#: time in which one partition is given to somebody.
_MEMBERS_A_UNIT: Final = 8


class NewTarget(NamedTuple):
    by_member: dict[str, Partitions]
    #: For the members whose target is another than before.
    records: dict[str, JournalRecord]


class Basis(NamedTuple):
    """What a target is computed from: the group as it will be. Nothing of it changes while that goes on."""

    group_id: str
    members: Sequence[Member]
    regexes: Mapping[str, ResolvedRegex]
    before: Mapping[str, Partitions]
    assignor: str


def is_large(members: int, names: Mapping[str, int], metadata: MetadataCache, work_max: int) -> bool:
    """Whether the target of so many members is more work than this; `names` says how many of them want each topic."""
    if members + len(names) > work_max:
        return True
    partitions = 0
    for name in names:
        topic = metadata.topic(name)
        partitions += 0 if topic is None else len(topic.partitions)
    work = members + sum(names.values()) + partitions
    if any(wanted != members for wanted in names.values()):
        work += partitions * members // _MEMBERS_A_UNIT
    return work > work_max


def compute(basis: Basis, metadata: MetadataCache) -> Steps[NewTarget]:
    candidates = yield from _candidates(basis, metadata)
    counts = yield from _counts(candidates, metadata)
    targets = yield from ASSIGNORS[basis.assignor](Demand(candidates, counts))
    by_member: dict[str, Partitions] = {}
    changed: dict[str, JournalRecord] = {}
    work = 0
    for member in basis.members:
        target = by_member[member.id] = targets.get(member.id, _NO_TARGET)
        if basis.before.get(member.id) != target:
            changed[member.id] = yield from long_records.target(basis.group_id, member.id, target)
            work += 4 * len(target)
        work += 4 + len(target)
        if work >= PIECE:
            work = 0
            yield
    return NewTarget(by_member, changed)


def _counts(candidates: list[Candidate], metadata: MetadataCache) -> Steps[dict[TopicId, int]]:
    """How many partitions there are of each topic."""
    counts: dict[TopicId, int] = {}
    for subscription in {candidate.topics for candidate in candidates}:
        for topics in pieces(subscription):
            for topic in topics:
                if topic not in counts:
                    found = metadata.topic_by_id(topic)
                    counts[topic] = 0 if found is None else len(found.partitions)
            if len(topics) == PIECE:
                yield
    return counts


def _candidates(basis: Basis, metadata: MetadataCache) -> Steps[list[Candidate]]:
    """Most members of a group want the same topics: each subscription is looked up once."""
    looked_up: dict[tuple[frozenset[str], str], frozenset[TopicId]] = {}
    candidates = []
    work = 0
    for member in basis.members:
        key = (member.topic_names, member.topic_regex)
        topics = looked_up.get(key)
        if topics is None:
            topics = looked_up[key] = yield from _looked_up(member, basis.regexes, metadata)
        before = basis.before.get(member.id, NO_PARTITIONS)
        candidates.append(Candidate(member.id, member.instance_id, topics, before))
        # Sets that are equal and not the same are compared name by name.
        work += 8 + len(member.topic_names)
        if work >= 16 * PIECE:
            work = 0
            yield
    return candidates


def _looked_up(
    member: Member, regexes: Mapping[str, ResolvedRegex], metadata: MetadataCache
) -> Steps[frozenset[TopicId]]:
    found: set[TopicId] = set()
    for names in pieces(_names(member, regexes)):
        found |= topic_ids(names, metadata)
        if len(names) == PIECE:
            yield
    return frozenset(found)


class TopicsWanted(Container[TopicId]):
    """The topics that exist of those that the member wants, by name or by expression. Not looked up before somebody
    asks: a member may want ten thousand and have three."""

    __slots__ = ("_metadata", "_names")

    def __init__(self, member: Member, regexes: Mapping[str, ResolvedRegex], metadata: MetadataCache) -> None:
        self._names = _names(member, regexes)
        self._metadata = metadata

    def __contains__(self, topic: object) -> bool:
        return isinstance(topic, bytes) and self._metadata.topic_name(topic) in self._names


def _names(member: Member, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names | resolved.topics
