"""How much of what there is one micro-batch reads."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from ottla.model import TopicPartition

Offsets = Mapping[TopicPartition, int]


def within_rows(starts: Offsets, ends: Offsets, rows_max: int) -> dict[TopicPartition, int]:
    """Where to end, so that about `rows_max` offsets are read: each partition gives in proportion to what it has.

    Every partition that has anything gives at least one, so that none waits for ever beside a large one.
    """
    total = sum(max(0, end - starts[tp]) for tp, end in ends.items())
    if total <= rows_max:
        return dict(ends)
    found = {}
    for tp, end in ends.items():
        share = (end - starts[tp]) * rows_max / total
        found[tp] = min(end, starts[tp] + (ceil(share) if share < 1 else floor(share))) if end > starts[tp] else end
    return found


def within_bytes(
    starts: Offsets, ends: Offsets, bytes_an_offset: Mapping[TopicPartition, float], bytes_max: int
) -> dict[TopicPartition, int]:
    """The same for bytes, at so many an offset in each partition."""
    total = sum(max(0, end - starts[tp]) * bytes_an_offset[tp] for tp, end in ends.items())
    if total <= bytes_max:
        return dict(ends)
    share = bytes_max / total
    return {
        tp: max(starts[tp], min(end, starts[tp] + max(1, floor((end - starts[tp]) * share))))
        for tp, end in ends.items()
    }


def between(starts: Offsets, ends: Offsets) -> int:
    return sum(max(0, end - starts.get(tp, end)) for tp, end in ends.items())


class MinimumWait:
    """`minOffsetsPerTrigger`: waits for so many offsets, but not longer than `maxTriggerDelay` after the last batch."""

    def __init__(self, least: int | None, delay_ms_max: int) -> None:
        self._least = least
        self._delay_ms_max = delay_ms_max
        #: When the last batch was planned; the first one does not wait.
        self._last_ms: int | None = None

    def waits(self, there: int, now_ms: int) -> bool:
        if self._least is None:
            return False
        if self._last_ms is not None and there < self._least and now_ms - self._last_ms < self._delay_ms_max:
            return True
        if there:
            self._last_ms = now_ms
        return False
