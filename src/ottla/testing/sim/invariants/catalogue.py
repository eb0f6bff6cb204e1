"""All invariants, in the order in which they are called: what later ones rely on stands first."""

from __future__ import annotations

from typing import Final

from ottla.testing.sim.invariants.fencing import EpochsNeverFall, FencedChangesNothing, OneOwnerPerSession
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.invariants.isr import (
    DeadLeaveAtOnce,
    ElectedFromIsr,
    JoinsAtTheEnd,
    LeaderInIsr,
    MaximalIsr,
    StrongIsr,
    WeakIsr,
)
from ottla.testing.sim.invariants.leaders import (
    LeaderCandidateCompleteness,
    LeaderCompleteness,
    LeadsOn,
    OneLeaderPerEpoch,
)
from ottla.testing.sim.invariants.logs import (
    AcknowledgedIsCommitted,
    ConsistentRead,
    LogMatching,
    WatermarkInLog,
    WatermarkKeepsMinimum,
    WatermarksNeverFall,
)
from ottla.testing.sim.invariants.transactions import (
    CommitIsDecided,
    NothingBehindTheMarker,
    OldCoordinatorsMarkNothing,
    OneOutcome,
    StableBelowOpen,
)

ALL: Final[tuple[type[Invariant], ...]] = (
    LogMatching,
    OneLeaderPerEpoch,
    LeadsOn,
    # From here on it is known what is committed.
    ConsistentRead,
    WatermarksNeverFall,
    WatermarkInLog,
    WatermarkKeepsMinimum,
    LeaderInIsr,
    ElectedFromIsr,
    MaximalIsr,
    DeadLeaveAtOnce,
    JoinsAtTheEnd,
    EpochsNeverFall,
    FencedChangesNothing,
    OneOwnerPerSession,
    WeakIsr,
    StrongIsr,
    LeaderCompleteness,
    LeaderCandidateCompleteness,
    AcknowledgedIsCommitted,
    OldCoordinatorsMarkNothing,
    NothingBehindTheMarker,
    OneOutcome,
    StableBelowOpen,
    CommitIsDecided,
)


def every_invariant() -> list[Invariant]:
    return [kind() for kind in ALL]
