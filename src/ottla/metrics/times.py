"""How often something took how long, as Kafka shows it: quantiles of the last minutes, and the sum of all."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from ottla.metrics.buckets import RecentBuckets, Summary, quantile

#: From a write to another machine's disk to the longest that somebody waits; in milliseconds.
TIME_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
#: Kafka's names for them.
_QUANTILES: Final = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}


class Times:
    """Of one thing, since the start."""

    def __init__(self) -> None:
        #: By the bounds; the last one is above all of them.
        self.counts = [0] * (len(TIME_BOUNDS_MS) + 1)
        self.total_ms = 0

    def took(self, milliseconds: int) -> None:
        self.counts[bisect_left(TIME_BOUNDS_MS, milliseconds)] += 1
        self.total_ms += milliseconds


class RecentTimes:
    """Their quantiles of the last five minutes."""

    def __init__(self, now_ms: int) -> None:
        self._recent = RecentBuckets(len(TIME_BOUNDS_MS) + 1, now_ms)

    def summary(self, times: Times, now_ms: int) -> Summary:
        recent = self._recent.since(times.counts, now_ms)
        quantiles = {name: quantile(TIME_BOUNDS_MS, recent, share) for name, share in _QUANTILES.items()}
        return Summary(quantiles, sum(times.counts), times.total_ms)
