"""How long the loads of a coordinator's partitions took that have ended lately, as Kafka's sensors say it."""

from __future__ import annotations

from collections import deque
from math import nan
from typing import Final

#: Kafka's: so long a load is spoken of.
WINDOW_MS: Final = 30_000
#: Of a broker that leads more than these the earlier ones are forgotten sooner.
LOADS_MAX: Final = 1_000


class LoadTimes:
    __slots__ = ("_ended",)

    def __init__(self) -> None:
        #: When each has ended, by the monotonic clock, and how long it took.
        self._ended: deque[tuple[int, int]] = deque(maxlen=LOADS_MAX)

    def add(self, now_ms: int, took_ms: int) -> None:
        self._ended.append((now_ms, took_ms))

    def longest_ms(self, now_ms: int) -> float:
        """NaN where there was none."""
        return max(self._lately(now_ms), default=nan)

    def average_ms(self, now_ms: int) -> float:
        """NaN where there was none."""
        found = self._lately(now_ms)
        return sum(found) / len(found) if found else nan

    def _lately(self, now_ms: int) -> list[int]:
        return [took_ms for ended_ms, took_ms in self._ended if ended_ms > now_ms - WINDOW_MS]
