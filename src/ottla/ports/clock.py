"""Time, read in one place only: cores take it as an argument."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since 1970, as records carry them. It may jump: nothing is timed with it."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: for every time-out, session and delay."""
        ...
