"""Requests a second over the last minute, as Kafka's meters say it: an average that forgets, with a tick each 5 s."""

from __future__ import annotations

import math
from typing import Final

from ottla.ports import Clock

_TICK_MS: Final = 5_000
_KEPT: Final = math.exp(-_TICK_MS / 60_000)
#: Behind so many ticks without a request nothing is left to see.
_TICKS_MAX: Final = 200


class MinuteRate:
    __slots__ = ("_clock", "_counted", "_rate", "_ticked_ms", "total")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counted = 0
        #: Since the beginning.
        self.total = 0
        #: None before the first tick, which sets it.
        self._rate: float | None = None
        self._ticked_ms = clock.monotonic_ms()

    def count(self) -> None:
        self._counted += 1
        self.total += 1

    def a_second(self) -> float:
        ticks = (self._clock.monotonic_ms() - self._ticked_ms) // _TICK_MS
        if ticks:
            # Nobody has looked for some ticks: what was counted is spread over them.
            rate = self._counted / (ticks * _TICK_MS / 1000)
            self._rate = rate if self._rate is None else rate + (self._rate - rate) * _KEPT ** min(ticks, _TICKS_MAX)
            self._ticked_ms += ticks * _TICK_MS
            self._counted = 0
        return self._rate or 0.0
