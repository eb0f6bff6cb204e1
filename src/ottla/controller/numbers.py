"""What the controller counts: over all the times that this broker was it, since its start."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

#: Of one set of elections, from the decision to the tree's answer, and of an event until its turn comes; in
#: milliseconds.
TIME_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class Times:
    """How often something took how long."""

    def __init__(self) -> None:
        #: By the bounds; the last one is above all of them.
        self.counts = [0] * (len(TIME_BOUNDS_MS) + 1)
        self.total_ms = 0

    def took(self, milliseconds: int) -> None:
        self.counts[bisect_left(TIME_BOUNDS_MS, milliseconds)] += 1
        self.total_ms += milliseconds


class ControllerNumbers:
    def __init__(self) -> None:
        #: Leaders that were elected from outside the in-sync set.
        self.unclean_elections = 0
        #: Of sets of elections.
        self.elections = Times()
        #: Of events until their turn came.
        self.waits = Times()
