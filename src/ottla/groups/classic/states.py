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


class State(Enum):
    """The values are the names by which Kafka's tools know the states."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
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
    (State.EMPTY, Event.REBALANCE_NEEDED): State.PREPARING_REBALANCE,
    (State.STABLE, Event.REBALANCE_NEEDED): State.PREPARING_REBALANCE,
    (State.COMPLETING_REBALANCE, Event.REBALANCE_NEEDED): State.PREPARING_REBALANCE,
    (State.PREPARING_REBALANCE, Event.ALL_JOINED): State.COMPLETING_REBALANCE,
    (State.PREPARING_REBALANCE, Event.NOBODY_LEFT): State.EMPTY,
    (State.COMPLETING_REBALANCE, Event.ASSIGNED): State.STABLE,
    (State.EMPTY, Event.REMOVED): State.DEAD,
    (State.PREPARING_REBALANCE, Event.REMOVED): State.DEAD,
    (State.COMPLETING_REBALANCE, Event.REMOVED): State.DEAD,
    (State.STABLE, Event.REMOVED): State.DEAD,
}


def after(state: State, event: Event) -> State:
    """KeyError where the table has no entry: a fault of ours."""
    return NEXT[state, event]
