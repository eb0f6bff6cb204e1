"""How often the sessions with the tree were connected, lost their connection, and ended; how long answers took."""

from __future__ import annotations

from ottla.coordination.interface import SessionEvent
from ottla.metrics.times import Times


class SessionCounts:
    """Only rise. A tree in this process has no connection: of it nothing is ever counted but its end."""

    __slots__ = ("connects", "disconnects", "expires", "requests")

    def __init__(self) -> None:
        self.connects = 0
        self.disconnects = 0
        self.expires = 0
        #: From what was sent to its answer.
        self.requests = Times()

    def heard(self, event: SessionEvent) -> None:
        if event is SessionEvent.CONNECTED:
            self.connects += 1
        elif event is SessionEvent.DISCONNECTED:
            self.disconnects += 1
        elif event is SessionEvent.EXPIRED:
            self.expires += 1
