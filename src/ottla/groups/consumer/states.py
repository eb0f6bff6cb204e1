"""The states of members and groups of the newer protocol, as tables. What is missing in them raises.

A member is on its way from the assignment that it has to the one that it should have. It first gives up what it must
(UNREVOKED_PARTITIONS: still in its old epoch), then enters the new epoch and takes what is free; while others hold
a part of it, it is UNRELEASED_PARTITIONS; in the end STABLE. UNKNOWN is a state that a later coordinator stored.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final


class MemberState(IntEnum):
    """As stored in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def stored(cls, value: int) -> MemberState:
        return cls(value) if value in _MEMBER_STATES else cls.UNKNOWN


_MEMBER_STATES: Final = frozenset(int(state) for state in MemberState)


class Step(Enum):
    """What a look at a member's target found."""

    #: It has something that is not its own any more.
    MUST_REVOKE = "must revoke"
    #: It has given up all that it had to; something of its own is still held by another member.
    MUST_WAIT = "must wait"
    #: It has all that it should have.
    ARRIVED = "arrived"


_S = MemberState

#: A member whose state is UNKNOWN has come back without partitions, so that it has nothing to revoke.
NEXT_MEMBER_STATE: Final[dict[tuple[MemberState, Step], MemberState]] = {
    (_S.STABLE, Step.MUST_REVOKE): _S.UNREVOKED_PARTITIONS,
    (_S.STABLE, Step.MUST_WAIT): _S.UNRELEASED_PARTITIONS,
    (_S.STABLE, Step.ARRIVED): _S.STABLE,
    (_S.UNREVOKED_PARTITIONS, Step.MUST_REVOKE): _S.UNREVOKED_PARTITIONS,
    (_S.UNREVOKED_PARTITIONS, Step.MUST_WAIT): _S.UNRELEASED_PARTITIONS,
    (_S.UNREVOKED_PARTITIONS, Step.ARRIVED): _S.STABLE,
    (_S.UNRELEASED_PARTITIONS, Step.MUST_REVOKE): _S.UNREVOKED_PARTITIONS,
    (_S.UNRELEASED_PARTITIONS, Step.MUST_WAIT): _S.UNRELEASED_PARTITIONS,
    (_S.UNRELEASED_PARTITIONS, Step.ARRIVED): _S.STABLE,
    (_S.UNKNOWN, Step.MUST_WAIT): _S.UNRELEASED_PARTITIONS,
    (_S.UNKNOWN, Step.ARRIVED): _S.STABLE,
}


class GroupState(Enum):
    EMPTY = "Empty"
    #: The group's epoch is ahead of its target assignment's.
    ASSIGNING = "Assigning"
    #: A member has not reached the target assignment.
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class GroupFinding(Enum):
    """What a look at a group found: the first of these that holds."""

    NO_MEMBERS = "no members"
    TARGET_BEHIND = "target behind"
    MEMBER_BEHIND = "member behind"
    ALL_THERE = "all there"


GROUP_STATE: Final[dict[GroupFinding, GroupState]] = {
    GroupFinding.NO_MEMBERS: GroupState.EMPTY,
    GroupFinding.TARGET_BEHIND: GroupState.ASSIGNING,
    GroupFinding.MEMBER_BEHIND: GroupState.RECONCILING,
    GroupFinding.ALL_THERE: GroupState.STABLE,
}


class Migration(Enum):
    """Which ways a group may go between the protocols while it has members: `group.consumer.migration.policy`."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"


MAY_UPGRADE: Final = {
    Migration.BIDIRECTIONAL: True,
    Migration.UPGRADE: True,
    Migration.DOWNGRADE: False,
    Migration.DISABLED: False,
}
MAY_DOWNGRADE: Final = {
    Migration.BIDIRECTIONAL: True,
    Migration.UPGRADE: False,
    Migration.DOWNGRADE: True,
    Migration.DISABLED: False,
}
