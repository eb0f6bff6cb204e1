"""The states of a classic group, and what leads from one to the next. What is not in the table cannot happen.

Empty               nobody is in it; offsets may be there
PreparingRebalance  waits for all members to join (again)
CompletingRebalance waits for the leader to say who gets what
Stable              every member has, or can fetch, its assignment
Dead                deleted, or another broker's; not in the coordinator any more
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class ClassicGroupState(Enum):
    """The values are the names by which Kafka's tools know the states."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroupEvent(Enum):
    #: A member came, left, or wants another assignment.
    REBALANCE_NEEDED = "rebalance needed"
    #: All members that are left have joined: a generation begins.
    ALL_JOINED = "all joined"
    #: The time to join was over, or the last one left, and nobody is in the group.
    NOBODY_LEFT = "nobody left"
    #: The leader's assignment is stored.
    ASSIGNED = "assigned"
    #: The group was deleted, or this broker is not its coordinator any more.
    REMOVED = "removed"


NEXT: Final = {
    (ClassicGroupState.EMPTY, ClassicGroupEvent.REBALANCE_NEEDED): ClassicGroupState.PREPARING_REBALANCE,
    (ClassicGroupState.STABLE, ClassicGroupEvent.REBALANCE_NEEDED): ClassicGroupState.PREPARING_REBALANCE,
    (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupEvent.REBALANCE_NEEDED): ClassicGroupState.PREPARING_REBALANCE,
    (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupEvent.ALL_JOINED): ClassicGroupState.COMPLETING_REBALANCE,
    (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupEvent.NOBODY_LEFT): ClassicGroupState.EMPTY,
    (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupEvent.ASSIGNED): ClassicGroupState.STABLE,
    (ClassicGroupState.EMPTY, ClassicGroupEvent.REMOVED): ClassicGroupState.DEAD,
    (ClassicGroupState.PREPARING_REBALANCE, ClassicGroupEvent.REMOVED): ClassicGroupState.DEAD,
    (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupEvent.REMOVED): ClassicGroupState.DEAD,
    (ClassicGroupState.STABLE, ClassicGroupEvent.REMOVED): ClassicGroupState.DEAD,
}


def after(state: ClassicGroupState, event: ClassicGroupEvent) -> ClassicGroupState:
    """KeyError where the table has no entry: a fault of ours."""
    return NEXT[state, event]
