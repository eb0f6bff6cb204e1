"""Distributions: how many amounts fell into each of some fixed buckets, and what quantiles that gives.

    bounds      1    2    5   10
    buckets   0 |  1 |  2 |  3 |  4      the last one is above all bounds

Prometheus adds the buckets of several brokers up and works quantiles out itself. Dashboards made for Kafka ask for
quantiles that are worked out already, of what came lately: `RecentBuckets` says what was added since about then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

#: Quantiles are of what came since then at least. Kafka's own forget what came five minutes ago.
WINDOW_MS: Final = 5 * 60_000
#: A reading this long after the last one that was kept is kept too, so that so many of them stand there at most.
STEP_MS: Final = 60_000
KEPT_MAX: Final = WINDOW_MS // STEP_MS + 2


class Buckets(NamedTuple):
    """A histogram: `counts` has one more than there are bounds, for what is above them all."""

    bounds: Sequence[float]
    counts: Sequence[int]
    #: Of all amounts.
    total: float

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each bound, and how many amounts were no larger; infinity at last."""
        below = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            below += count
            yield bound, below


class Summary(NamedTuple):
    quantiles: Mapping[str, float]
    #: How many amounts, and their sum.
    observed: int
    total: float


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The amount that this share of all amounts does not pass, as if they were spread evenly inside of their bucket.

    NaN where there are none. What lies above all bounds counts as the highest of them, as Prometheus has it.
    """
    rank = share * sum(counts)
    if not rank:
        return float("nan")
    below, lower = 0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count and below + count >= rank:
            return lower + (bound - lower) * (rank - below) / count
        below += count
        lower = bound
    return lower


class RecentBuckets:
    """What was added to buckets within the last minutes: the difference to what they were when somebody looked then."""

    __slots__ = ("_kept",)

    def __init__(self, size: int, now_ms: int) -> None:
        #: Earlier counts, oldest first, and when they were read. The first is as old as the window where there is one.
        self._kept: deque[tuple[int, tuple[int, ...]]] = deque([(now_ms, (0,) * size)], KEPT_MAX)

    def since(self, counts: Sequence[int], now_ms: int) -> list[int]:
        kept = self._kept
        while len(kept) > 1 and kept[1][0] <= now_ms - WINDOW_MS:
            kept.popleft()
        then = kept[0][1]
        recent = [count - before for count, before in zip(counts, then, strict=True)]
        if now_ms - kept[-1][0] >= STEP_MS:
            kept.append((now_ms, tuple(counts)))
        return recent
