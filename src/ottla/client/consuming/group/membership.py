"""A member's own state: a table, in which a missing entry raises.

    OUT ── join ──> JOINING ── joined ──> SYNCING ── synced ──> STABLE
     ^                 │  ^                  │                    │ join
     │                 │  └──── join ────────┴────────────────────┘
     └──── out ────────┴── and from everywhere

The generation is the coordinator's number for one distribution of the partitions. A member with an older one is fenced:
its heartbeats and commits are refused, and what it had may belong to others. That is `out` here: the generation is
forgotten, and with UNKNOWN_MEMBER_ID the member id as well. `identity` forgets neither: offsets that a transaction
brings for this member are fenced by what it was when it read them, not taken as nobody's.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ottla.client.consuming.group.wire import NO_GENERATION

NO_MEMBER: Final = ""
#: Why a member is out that has slept too long.
POLLED_TOO_LATE: Final = "max.poll.interval.ms passed without a poll"


class MembershipState(Enum):
    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


class MembershipEvent(Enum):
    JOIN = "join"
    JOINED = "joined"
    SYNCED = "synced"
    OUT = "out"


NEXT: Final = {
    (MembershipState.OUT, MembershipEvent.JOIN): MembershipState.JOINING,
    (MembershipState.STABLE, MembershipEvent.JOIN): MembershipState.JOINING,
    (MembershipState.SYNCING, MembershipEvent.JOIN): MembershipState.JOINING,
    (MembershipState.JOINING, MembershipEvent.JOIN): MembershipState.JOINING,
    (MembershipState.JOINING, MembershipEvent.JOINED): MembershipState.SYNCING,
    (MembershipState.SYNCING, MembershipEvent.SYNCED): MembershipState.STABLE,
    **{(state, MembershipEvent.OUT): MembershipState.OUT for state in MembershipState},
}


class GroupMetadata(NamedTuple):
    """The identity of a consumer in its group: a transaction's coordinator is sent it, too."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


class Membership:
    def __init__(self, group_id: str, instance_id: str | None) -> None:
        self.group_id = group_id
        self.instance_id = instance_id
        self.state = MembershipState.OUT
        self.member_id = NO_MEMBER
        #: As what it joined last; nobody before that, and for a consumer that chooses its partitions by itself.
        self.identity = GroupMetadata(group_id, NO_GENERATION, NO_MEMBER, instance_id)
        #: -1 while there is none: what is still assigned then may belong to others.
        self.generation = NO_GENERATION
        self.is_leader = False
        #: Why the group is to be joined (again), in the words that the coordinator is sent; None: it is not.
        self.rejoin: str | None = None
        #: Why the member went out, for a caller that wants to commit.
        self.gone_because: str | None = None

    @property
    def heartbeats(self) -> bool:
        """Whether the coordinator expects to hear of this member: not while it keeps a JoinGroup of it unanswered."""
        return self.state in {MembershipState.SYNCING, MembershipState.STABLE}

    @property
    def is_joining(self) -> bool:
        return self.state in {MembershipState.JOINING, MembershipState.SYNCING}

    @property
    def is_member(self) -> bool:
        return self.generation != NO_GENERATION

    def _on(self, event: MembershipEvent) -> None:
        self.state = NEXT[self.state, event]

    def want(self, reason: str) -> None:
        """Asks for a rebalance; the first reason stands."""
        if self.rejoin is None:
            self.rejoin = reason

    def join(self) -> None:
        self._on(MembershipEvent.JOIN)
        self.is_leader = False

    def named(self, member_id: str) -> None:
        """The coordinator wants to hear from us under this name: one who has only knocked is no member yet."""
        self.member_id = member_id

    def joined(self, member_id: str, generation: int, *, is_leader: bool) -> None:
        self._on(MembershipEvent.JOINED)
        self.member_id = member_id
        self.generation = generation
        self.is_leader = is_leader
        self.gone_because = None
        self.identity = GroupMetadata(self.group_id, generation, member_id, self.instance_id)

    def synced(self) -> None:
        self._on(MembershipEvent.SYNCED)

    def out(self, reason: str, *, forget_member: bool) -> None:
        """Is no member of any generation now; joins again with the next poll."""
        self._on(MembershipEvent.OUT)
        self.generation = NO_GENERATION
        self.is_leader = False
        self.gone_because = reason
        if forget_member:
            self.member_id = NO_MEMBER
        self.want(reason)

    def left(self) -> None:
        """Has unsubscribed: nothing is to be joined. What it has read before is fenced by its name still."""
        self._on(MembershipEvent.OUT)
        self.generation = NO_GENERATION
        self.member_id = NO_MEMBER
        self.is_leader = False
        self.rejoin = None
        self.gone_because = None

    def stand_alone(self) -> None:
        """What is read from here on was chosen by the caller: no member's."""
        self.identity = GroupMetadata(self.group_id, NO_GENERATION, NO_MEMBER, self.instance_id)
