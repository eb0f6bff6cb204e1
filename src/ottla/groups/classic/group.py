"""A classic group: who is in it, and what they agreed on. It keeps its own numbers right; when to do what is decided
in `rebalance.py`, `joining.py`, `syncing.py` and `leaving.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final

from ottla.coordinators.journal import JournalRecord
from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.states import ClassicGroupEvent, ClassicGroupState, after
from ottla.groups.classic.subscription import CONSUMER, topics_of
from ottla.groups.records.group_records import group_key
from ottla.groups.state import Reply
from ottla.model import ErrorCode
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.protocol.generated.offset_commit import OffsetCommitRequestTopic
from ottla.protocol.generated.sync_group import SyncGroupResponse
from ottla.steps import Steps

UNKNOWN_TIME: Final = -1
#: Shared by all groups that have nothing of a kind: most of ten thousand groups are empty. Never changed.
_NO_IDS: Final[set[str]] = set()
_NONE_PENDING: Final[dict[str, None]] = {}
_NO_JOINS: Final[dict[str, Reply[JoinGroupResponse]]] = {}
_NO_SYNCS: Final[dict[str, Reply[SyncGroupResponse]]] = {}
#: Protocols that one member knows. Clients know two or three; each is looked at whenever the group votes.
PROTOCOLS_MAX: Final = 256
#: What one member says in all of its protocols together. Twice what a record of the group can hold of all its members,
#: unless the offsets topic takes larger batches than it does by default.
MEMBER_BYTES_MAX: Final = 2 * 1024 * 1024
#: What all members of a group say, which is in memory as long as they are members.
GROUP_BYTES_MAX: Final = 64 * 1024 * 1024
#: What a protocol of a member takes beside its name and metadata: two objects, and its places in the group's counts.
PROTOCOL_BYTES: Final = 512
#: Of one group, at the same time: a client that asks for ids and uses none would fill the memory for half an hour.
PENDING_IDS_MAX: Final = 10_000


class ClassicGroup:
    __slots__ = (
        "_preferences",
        "being_answered",
        "generation",
        "id",
        "is_completing",
        "join_replies",
        "leader_id",
        "members",
        "metadata_bytes",
        "new_member_came",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_members",
        "subscribed_topics",
        "supported",
        "sync_replies",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.id = group_id
        self.state = ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.DEAD
        #: Wall time of the last change of state; UNKNOWN_TIME where the record was written before Kafka 2.1.
        self.state_since_ms = now_ms
        #: Rises with each completed rebalance, so that members of an earlier one are told from those of today.
        self.generation = 0
        #: None until somebody joins: such a group only keeps offsets.
        self.protocol_type: str | None = None
        #: What the members of this generation voted for.
        self.protocol_name: str | None = None
        #: In members, unless there are none: the first that came, or the next one when it leaves.
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        #: Of all members' protocols.
        self.metadata_bytes = 0
        #: Instance id -> member id.
        self.static_members: dict[str, str] = {}
        #: Members that wait for all to join: only with one of these does a member take part in the next generation.
        self.join_replies: dict[str, Reply[JoinGroupResponse]] = _NO_JOINS
        #: Members that wait for the leader's assignment.
        self.sync_replies: dict[str, Reply[SyncGroupResponse]] = _NO_SYNCS
        #: Replies that were taken out of these two and are answered step by step: their members are alive.
        self.being_answered: tuple[Container[str], ...] = ()
        #: Whether a join is completed step by step, where some thousands of members have not come.
        self.is_completing = False
        #: Ids that were given out and not come back with yet, the oldest first. None of them is in members.
        self.pending_join: dict[str, None] = _NONE_PENDING
        #: Members of this generation that have not asked for their assignment.
        self.pending_sync: set[str] = _NO_IDS
        #: How many members know each protocol.
        self.supported: Counter[str] | None = None
        # How many members name the same protocols in the same order: most groups have one such list.
        self._preferences: Counter[tuple[str, ...]] | None = None
        #: Of all members; None where it cannot be known.
        self.subscribed_topics: frozenset[str] | None = None
        #: Whether somebody came since the first rebalance's delay was last prolonged.
        self.new_member_came = False

    def move(self, event: ClassicGroupEvent, now_ms: int) -> None:
        self.previous_state = self.state
        self.state = after(self.state, event)
        self.state_since_ms = now_ms

    # Membership.

    def add(self, member: ClassicMember) -> None:
        assert member.id not in self.members
        if not self.members:
            self.supported, self._preferences = Counter(), Counter()
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.id
        if self.leader_id is None:
            self.leader_id = member.id
        self.members[member.id] = member
        self._count(member, 1)
        self.pending_join.pop(member.id, None)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member_id not in self.join_replies
            assert member_id not in self.sync_replies
            self._count(member, -1)
            if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
                del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.pop(member_id, None)
        self.pending_sync.discard(member_id)

    def add_pending(self, member_id: str) -> str | None:
        """Returns the id that had to go: a member that comes with it is answered to ask for another one."""
        oldest = None
        if self.pending_join is _NONE_PENDING:
            self.pending_join = {}
        elif len(self.pending_join) >= PENDING_IDS_MAX:
            oldest = next(iter(self.pending_join))
            del self.pending_join[oldest]
        self.pending_join[member_id] = None
        return oldest

    def update(self, member: ClassicMember, protocols: Protocols, rebalance_ms: int, session_ms: int) -> None:
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_ms
        member.session_timeout_ms = session_ms

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """The static member goes on under another id; all else stays as it is, its place in the order too."""
        member = self.members[old_id]
        assert member.instance_id is not None
        assert old_id not in self.join_replies
        assert old_id not in self.sync_replies
        member.id = new_id
        self.members = {entry.id: entry for entry in self.members.values()}
        self.static_members[member.instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(new_id)
        return member

    def _count(self, member: ClassicMember, by: int) -> None:
        supported, preferences = self.supported, self._preferences
        assert supported is not None
        assert preferences is not None
        self.metadata_bytes += by * size_of(member.protocols)
        names = tuple([name for name, _ in member.protocols])
        for name in set(names):
            supported[name] += by
            if not supported[name]:
                del supported[name]
        preferences[names] += by
        if not preferences[names]:
            del preferences[names]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member, and a static one under the id that it has now."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # Joining.

    def await_join(self, member: ClassicMember, reply: Reply[JoinGroupResponse]) -> Reply[JoinGroupResponse] | None:
        """The member has joined and waits. Returns the call-back of its earlier attempt, to be answered so."""
        if self.join_replies is _NO_JOINS:
            self.join_replies = {}
        earlier = self.join_replies.get(member.id)
        self.join_replies[member.id] = reply
        return earlier

    def await_sync(self, member: ClassicMember, reply: Reply[SyncGroupResponse]) -> Reply[SyncGroupResponse] | None:
        """As `await_join`, for the leader's assignment."""
        if self.sync_replies is _NO_SYNCS:
            self.sync_replies = {}
        earlier = self.sync_replies.get(member.id)
        self.sync_replies[member.id] = reply
        return earlier

    def take_join_replies(self) -> dict[str, Reply[JoinGroupResponse]]:
        taken, self.join_replies = self.join_replies, _NO_JOINS
        return taken

    def take_sync_replies(self) -> dict[str, Reply[SyncGroupResponse]]:
        taken, self.sync_replies = self.sync_replies, _NO_SYNCS
        return taken

    def may_be_silent(self, member: ClassicMember) -> bool:
        """A member that waits for an answer of ours is alive, as far as one can know."""
        if any(member.id in replies for replies in self.being_answered):
            return True
        is_new = member.new_in == self.generation
        return not is_new and (member.id in self.join_replies or member.id in self.sync_replies)

    @property
    def all_joined(self) -> bool:
        return not self.pending_join and len(self.join_replies) == len(self.members)

    def not_joined(self) -> list[ClassicMember]:
        """Members that have not come. Static ones may be away for a session: they keep their place."""
        if len(self.join_replies) == len(self.members):
            return []
        joined = self.join_replies
        return [member for member in self.members.values() if member.instance_id is None and member.id not in joined]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def can_rebalance(self) -> bool:
        return self.state in {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can be in one group with all others."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type or self.supported is None:
            return False
        return any(self.supported[name] == len(self.members) for name, _ in protocols)

    def vote(self) -> str:
        """The protocol that most members like best, of those that all know; the first of several with equal votes."""
        assert self.supported is not None
        assert self._preferences is not None
        everybody = len(self.members)
        # What all know is among what any of them knows.
        candidates = {name for name in next(iter(self._preferences)) if self.supported[name] == everybody}
        votes: Counter[str] = Counter()
        for names, members in self._preferences.items():
            votes[first_of(names, candidates)] += members
        most = max(votes.values())
        liked = {name for name, count in votes.items() if count == most}
        for member in self.members.values():  # nearly always the first of them decides
            vote = first_of((name for name, _ in member.protocols), candidates)
            if vote in liked:
                return vote
        raise AssertionError("nobody has voted")

    def elect_joined_leader(self) -> bool:
        """The leader stays if it has joined; else the first that has takes its place. False if nobody has joined."""
        leader = self.members.get(self.leader_id or "")
        if leader is None:
            return False
        if leader.id not in self.join_replies:
            for member_id in self.members:
                if member_id in self.join_replies:
                    self.leader_id = member_id
                    return True
            return False
        return True

    def begin_generation(self, now_ms: int) -> None:
        """What its members are subscribed to is not known before somebody has looked (`subscription_of`)."""
        self.generation = 0 if self.generation == 0x7FFF_FFFF else self.generation + 1
        if self.members:
            self.protocol_name = self.vote()
            self.subscribed_topics = None
            self.move(ClassicGroupEvent.ALL_JOINED, now_ms)
            self.pending_sync = set(self.members)
        else:
            self.protocol_name = None
            self.subscribed_topics = frozenset() if self.protocol_type == CONSUMER else None
            self.move(ClassicGroupEvent.NOBODY_LEFT, now_ms)
            self.pending_sync = _NO_IDS

    def known_subscription(self) -> Steps[frozenset[str] | None]:
        """The topics that the members of this moment read, if they are consumers and say so in the consumers' own
        format.
        """
        said = [member.protocols for member in self.members.values()] if self.protocol_type == CONSUMER else None
        return topics_of(said, self.protocol_name)

    # What the coordinator asks of both kinds of group (`groups.group.Group`).

    @property
    def type_name(self) -> str:
        return "classic"

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        version: int,
        topics: Sequence[OffsetCommitRequestTopic],
        transactional: bool = False,
    ) -> ErrorCode:
        """Version and topics matter to consumer groups only."""
        if generation_or_epoch < 0 and self.state is ClassicGroupState.EMPTY:
            # An administrator, or a consumer with partitions from its program: welcome while nobody is in the group.
            return ErrorCode.NONE
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            if error := self.check_member(member_id, instance_id):
                return error
            if generation_or_epoch != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional and self.state is not ClassicGroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and self.state is ClassicGroupState.COMPLETING_REBALANCE:
            # It has heard of this generation, but not of its share in it: what it read belongs to the one before.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def check_offset_delete(self) -> ErrorCode:
        if self.state is not ClassicGroupState.EMPTY and self.protocol_type != CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.state is ClassicGroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def may_vanish(self) -> bool:
        return self.state is ClassicGroupState.EMPTY and not self.pending_join

    def is_subscribed(self, topic: str) -> bool:
        """A consumer group whose members' subscriptions cannot be read counts as subscribed to everything."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def retention_base_ms(self, commit_ms: int) -> int | None:
        if self.protocol_type is None:
            return commit_ms
        if self.state is ClassicGroupState.EMPTY:
            return commit_ms if self.state_since_ms == UNKNOWN_TIME else self.state_since_ms
        if (
            self.state is ClassicGroupState.STABLE
            and self.protocol_type == CONSUMER
            and self.subscribed_topics is not None
        ):
            return commit_ms
        return None

    def heard_from(self, member_id: str, monotonic_ms: int) -> int | None:
        if self.state is ClassicGroupState.STABLE or self.state is ClassicGroupState.PREPARING_REBALANCE:
            member = self.members.get(member_id)
            if member is not None:
                return monotonic_ms + member.session_timeout_ms
        return None

    def tombstones(self) -> Sequence[JournalRecord]:
        return (JournalRecord(group_key(self.id), None),)


def first_of(names: Iterable[str], candidates: Container[str]) -> str:
    return next(name for name in names if name in candidates)


def size_of(protocols: Protocols) -> int:
    return sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in protocols)
