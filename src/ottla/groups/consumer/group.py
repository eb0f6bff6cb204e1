"""A consumer group of the newer protocol: what its records say, and what follows from that.

Only replay changes it (`replay.py`), while a partition of the offsets topic is loaded and after each decision alike, so
that a restart finds exactly what was there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ottla.coordinators.journal import JournalRecord
from ottla.groups.consumer import records
from ottla.groups.consumer.embedded import CONSUMER
from ottla.groups.consumer.member import NO_PARTITIONS, Member, Owned, Partitions, ResolvedRegex
from ottla.groups.consumer.states import GROUP_STATE, GroupFinding, GroupState
from ottla.groups.group import Group
from ottla.metadata.cache import MetadataCache
from ottla.model import ErrorCode, TopicId
from ottla.protocol.generated.offset_commit import OffsetCommitRequestTopic

#: OffsetCommit's first version that says a member's epoch; members of the newer protocol must use it.
_COMMIT_WITH_EPOCH = 9


class ConsumerGroup:
    __slots__ = (
        "_metadata",
        "_owners",
        "assignment_epoch",
        "assignor_counts",
        "checked",
        "checked_names_version",
        "classic_members",
        "classic_protocols",
        "epoch",
        "has_partition_metadata",
        "heard",
        "id",
        "members",
        "metadata_hash",
        "name_counts",
        "regex_counts",
        "regexes",
        "static_members",
        "summed",
        "target",
        "topics_version",
    )

    def __init__(self, group_id: str, metadata: MetadataCache) -> None:
        self.id = group_id
        self._metadata = metadata
        #: Rises when members, subscriptions or topics change; 0 before the first member.
        self.epoch = 0
        #: Of the topics that `epoch` was reached with.
        self.metadata_hash = 0
        #: The epoch that `target` was computed for; -1 where none was. Not above `epoch`.
        self.assignment_epoch = -1
        #: What each member should have. No partition stands twice in it.
        self.target: dict[str, Partitions] = {}
        self.members: dict[str, Member] = {}
        #: Instance id -> the member that has it.
        self.static_members: dict[str, str] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        #: A coordinator before Kafka 4.1 stored the topics; a tombstone goes with the next epoch.
        self.has_partition_metadata = False
        # The owners: partitions assigned or asked back and not given up yet. A partition is in it once at most.
        self._owners: dict[TopicId, dict[int, str]] = {}
        #: Of each member the last request that was decided, as a token: what an earlier one reported is out of date,
        #: since the member may have been answered more meanwhile. Not stored.
        self.heard: dict[str, object] = {}
        #: How many members want each of these.
        self.name_counts: Counter[str] = Counter()
        self.regex_counts: Counter[str] = Counter()
        self.assignor_counts: Counter[str] = Counter()
        self.classic_members = 0
        self.classic_protocols: Counter[str] = Counter()
        #: A generation of the metadata, and the hash that the group's topics had in it. Not stored.
        self.checked = (-1, 0)
        #: Another one once the topics that are wanted have changed. Not stored.
        self.topics_version = 0
        #: A generation of the metadata, a version of the topics, and the hash of these topics in it: what it takes ten
        #: milliseconds to find for ten thousand topics. Not stored.
        self.summed = (-1, 0, 0)
        #: Of the topics' names, when all expressions were last found to stand for what is stored. Not stored.
        self.checked_names_version = -1

    # What the coordinator asks of both kinds of group.

    @property
    def type_name(self) -> str:
        return "consumer"

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        version: int,
        topics: Sequence[OffsetCommitRequestTopic],
        transactional: bool = False,
    ) -> ErrorCode:
        """An epoch that the member has left behind is good for what it has had since then or before."""
        if generation_or_epoch < 0 and not self.members:
            return ErrorCode.NONE
        if transactional and generation_or_epoch == -1 and not member_id and instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and member.classic is None and version < _COMMIT_WITH_EPOCH:
            return ErrorCode.UNSUPPORTED_VERSION
        if generation_or_epoch < member.epoch:
            had_all = all(
                self._had(member, topic, entry.partition_index, generation_or_epoch)
                for topic in topics
                for entry in topic.partitions
            )
            return ErrorCode.NONE if had_all else _wrong_epoch(member)
        return ErrorCode.NONE if generation_or_epoch == member.epoch else _wrong_epoch(member)

    def _had(self, member: Member, topic: OffsetCommitRequestTopic, partition: int, epoch: int) -> bool:
        known = self._metadata.topic(topic.name)
        if known is None:
            return False
        since = member.assigned.get(known.id, {}).get(partition)
        if since is None:
            since = member.pending_revocation.get(known.id, {}).get(partition)
        return since is not None and since <= epoch

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_epoch == member.epoch else _wrong_epoch(member)

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def may_vanish(self) -> bool:
        return not self.members

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.name_counts or any(topic in regex.topics for regex in self.regexes.values())

    def retention_base_ms(self, commit_ms: int) -> int | None:
        """From the commit: the caller has left out the topics that the group is subscribed to."""
        return commit_ms

    def tombstones(self) -> Sequence[JournalRecord]:
        return records.group_tombstones(self.id, self.members, self.regexes)

    def heard_from(self, member_id: str, monotonic_ms: int) -> int | None:
        return None  # here only heartbeats keep a session alive

    # What follows from the records.

    @property
    def state(self) -> GroupState:
        return GROUP_STATE[self._found()]

    def _found(self) -> GroupFinding:
        if not self.members:
            return GroupFinding.NO_MEMBERS
        if self.epoch > self.assignment_epoch:
            return GroupFinding.TARGET_BEHIND
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupFinding.ALL_THERE
        return GroupFinding.MEMBER_BEHIND

    def is_checked(self, generation: int) -> bool:
        """Whether `metadata_hash` is known to be that of the group's topics in this generation of the metadata."""
        return self.checked == (generation, self.metadata_hash)

    def known_hash(self, generation: int) -> int | None:
        """Of the group's topics in this generation of the metadata, where it was computed and holds."""
        if not self.name_counts and not self.regexes:
            return 0
        if self.is_checked(generation):
            return self.metadata_hash
        known_generation, version, hashed = self.summed
        return hashed if known_generation == generation and version == self.topics_version else None

    def wanted_topics(self) -> set[str]:
        """By name, or by an expression."""
        return self.name_counts.keys() | topics_of(self.regexes.values())

    def owner_of(self, topic: TopicId, partition: int) -> str | None:
        owners = self._owners.get(topic)
        return None if owners is None else owners.get(partition)

    def static_member(self, instance_id: str | None) -> Member | None:
        if instance_id is None or instance_id not in self.static_members:
            return None
        return self.members.get(self.static_members[instance_id])

    def target_of(self, member: Member) -> Partitions:
        """A static member that has come back under another member id has the target of the one before."""
        found = self.target.get(member.id)
        if found is None and member.instance_id is not None:
            found = self.target.get(self.static_members.get(member.instance_id, ""))
        return NO_PARTITIONS if found is None else found

    # Replay.

    def put_member(self, member: Member) -> None:
        before = self.members.get(member.id)
        self.members[member.id] = member
        # What stays as it was is not touched: ten thousand names, or a hundred thousand partitions, with each step
        # that the member takes.
        if before is None or before.topic_names is not member.topic_names:
            if before is not None:
                decrease(self.name_counts, before.topic_names)
            self.name_counts.update(member.topic_names)
            self.topics_version += 1
        if before is not None:
            self._uncount(before)
        self._count(member)
        kept = () if before is None else (before.assigned, before.pending_revocation)
        given = (member.assigned, member.pending_revocation)
        for owned in kept:
            self._disown(owned, member.id, except_for=given)
        for owned in given:
            self._own(owned, member.id, except_for=kept)

    def put_claimed(self, member: Member) -> None:
        """The same for a member of the group that has claimed all that it is given, and wants the topics that it
        wanted. What it does not have any more has to be let go.
        """
        before = self.members[member.id]
        assert member.topic_names is before.topic_names
        self._uncount(before)
        self.members[member.id] = member
        self._count(member)

    def claim(self, topic: TopicId, partitions: Iterable[int], member_id: str) -> None:
        """These have no owner: nobody else is given them from now on."""
        self._owners.setdefault(topic, {}).update(dict.fromkeys(partitions, member_id))

    def let_go(self, topic: TopicId, partitions: Iterable[int], member_id: str) -> None:
        """Of these partitions those that stand under the member and are not its own (any more)."""
        member = self.members.get(member_id)
        assigned = () if member is None else member.assigned.get(topic, ())
        pending = () if member is None else member.pending_revocation.get(topic, ())
        if partitions is assigned or partitions is pending:
            return
        owners = self._owners.get(topic, {})
        for partition in partitions:
            if partition not in assigned and partition not in pending and owners.get(partition) == member_id:
                del owners[partition]
        if not owners:
            self._owners.pop(topic, None)

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.heard.pop(member_id, None)
        if member is not None:
            self.topics_version += 1
            decrease(self.name_counts, member.topic_names)
            self._uncount(member)
            for owned in (member.assigned, member.pending_revocation):
                self._disown(owned, member_id)

    def _count(self, member: Member) -> None:
        if member.topic_regex:
            self.regex_counts[member.topic_regex] += 1
        if member.assignor is not None:
            self.assignor_counts[member.assignor] += 1
        if member.classic is not None:
            self.classic_members += 1
            self.classic_protocols.update({name for name, _ in member.classic.protocols})
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id

    def _uncount(self, member: Member) -> None:
        if member.topic_regex:
            decrease(self.regex_counts, (member.topic_regex,))
        if member.assignor is not None:
            decrease(self.assignor_counts, (member.assignor,))
        if member.classic is not None:
            self.classic_members -= 1
            decrease(self.classic_protocols, {name for name, _ in member.classic.protocols})
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.id:
            del self.static_members[member.instance_id]

    def _own(self, owned: Owned, member_id: str, except_for: Iterable[Owned] = ()) -> None:
        for topic, partitions in owned.items():
            if not any(other.get(topic) is partitions for other in except_for):
                self._owners.setdefault(topic, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, owned: Owned, member_id: str, except_for: Iterable[Owned] = ()) -> None:
        """What another member has taken over stays with that one: compaction may show a later record first."""
        for topic, partitions in owned.items():
            if any(other.get(topic) is partitions for other in except_for):
                continue
            owners = self._owners.get(topic, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self._owners.pop(topic, None)


def topics_of(regexes: Iterable[ResolvedRegex]) -> set[str]:
    return set().union(*[regex.topics for regex in regexes])


def decrease(counts: Counter[str], names: Iterable[str]) -> None:
    """Takes one off each, and forgets those at 0."""
    for name in names:
        if counts[name] > 1:
            counts[name] -= 1
        else:
            del counts[name]


def _wrong_epoch(member: Member) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def consumer_group(found: Group | None) -> ConsumerGroup | None:
    """For what is asked of consumer groups alone: None where it is none."""
    return found if isinstance(found, ConsumerGroup) else None
