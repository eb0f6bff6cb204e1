"""What the controller counts: over all the times that this broker was it, since its start."""

from __future__ import annotations

from ottla.metrics.times import Times


class ControllerNumbers:
    def __init__(self) -> None:
        #: Leaders that were elected from outside the in-sync set.
        self.unclean_elections = 0
        #: Of sets of elections, from the decision to the tree's answer.
        self.elections = Times()
        #: Of events until their turn came.
        self.waits = Times()
