"""What the controller counts: over all the times that this broker was it, since its start."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

#: Of one set of elections, from the decision to the tree's answer, in milliseconds.
ELECTION_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class ControllerNumbers:
    def __init__(self) -> None:
        #: Leaders that were elected from outside the in-sync set.
        self.unclean_elections = 0
        #: Sets of elections, by how long they took. The last one is above all bounds.
        self.elections = [0] * (len(ELECTION_BOUNDS_MS) + 1)
        self.elections_ms = 0

    def elected(self, took_ms: int) -> None:
        self.elections[bisect_left(ELECTION_BOUNDS_MS, took_ms)] += 1
        self.elections_ms += took_ms
