"""Time that moves only when the virtual loop has nothing left to do.

One `Timeline` serves a whole simulated cluster; each machine reads it through a clock of its own, whose wall time may
start elsewhere, run fast or slow, and jump, as wall clocks do. Monotonic time is the timeline's on every machine.
"""

from __future__ import annotations

from typing import Final

#: 2026-01-01T00:00:00Z. A fixed start: traces of two runs can then be compared byte for byte.
WALL_START_MS: Final = 1_767_225_600_000


class Timeline:
    """Since the simulation began. It is read four times as often as it moves."""

    __slots__ = ("milliseconds", "seconds", "whole_milliseconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.milliseconds = 0.0
        self.whole_milliseconds = 0

    def move_to(self, seconds: float) -> None:
        assert seconds >= self.seconds, "time does not go back"
        self.seconds = seconds
        # Rounded to whole microseconds: 0.29 s must be 290 ms and not 289.99999999999994.
        self.milliseconds = round(seconds * 1_000_000) / 1_000
        self.whole_milliseconds = int(self.milliseconds)


class VirtualClock:
    __slots__ = ("_drift", "_since_ms", "_timeline", "_wall_ms")

    def __init__(self, timeline: Timeline, *, wall_start_ms: int = WALL_START_MS, drift: float = 0.0) -> None:
        self._timeline = timeline
        #: Wall time at `_since_ms` of the timeline; from there it runs at 1 + drift.
        self._wall_ms = float(wall_start_ms)
        self._since_ms = timeline.milliseconds
        self._drift = drift

    def wall_ms(self) -> int:
        return int(self._wall())

    def monotonic_ms(self) -> int:
        return self._timeline.whole_milliseconds

    def jump(self, milliseconds: int) -> None:
        """Sets the wall clock forward or, with a negative number, back."""
        self._rebase()
        self._wall_ms += milliseconds

    def drift(self, rate: float) -> None:
        """From now on the wall clock gains `rate` seconds a second."""
        self._rebase()
        self._drift = rate

    def _wall(self) -> float:
        return self._wall_ms + (self._timeline.milliseconds - self._since_ms) * (1 + self._drift)

    def _rebase(self) -> None:
        self._wall_ms = self._wall()
        self._since_ms = self._timeline.milliseconds
