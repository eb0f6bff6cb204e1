"""How dirty a log is: how much of it nobody has cleaned, and whether it is worth a pass.

Clean is what lies below the checkpointed offset. What can be cleaned ends before the active segment, before a record
that a consumer of committed records may not see yet, before one that is younger than min.compaction.lag.ms, and before
one that is not on the medium: it must not supersede one that is. Only whole segments are cleaned.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.config.log import LONG_MAX
from ottla.steps import DiskSteps
from ottla.storage.log.file_changes import loading
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment


class Dirt(NamedTuple):
    first_dirty_offset: int
    #: The base offset of the first segment that is not cleaned. first_dirty_offset <= end_offset
    end_offset: int
    clean_bytes: int
    #: Between the two.
    dirty_bytes: int
    #: By how much max.compaction.lag.ms is passed; 0 where it is not.
    overdue_ms: int
    #: Whether the checkpoint cannot be true of this log.
    was_misplaced: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_worth(self, ratio_min: float) -> bool:
        return self.dirty_bytes > 0 and (self.overdue_ms > 0 or self.ratio > ratio_min)


def looking_for_dirt(log: Log, stable_offset: int, now_ms: int) -> DiskSteps[Dirt]:
    """Looks at nothing but what is known of the segments, and their times where a lag is set. Raises StorageFault."""
    first, was_misplaced = log.start_offset, False
    if log.cleaned_to > log.end_offset:
        was_misplaced = True
    elif log.cleaned_to >= first:
        first = log.cleaned_to
    with log.naming_faults():
        end = yield from _end(log, first, stable_offset, now_ms)
        clean_bytes = dirty_bytes = 0
        for segment, following in _sealed(log):
            if following <= first:
                clean_bytes += segment.size
            elif segment.base_offset < end:
                dirty_bytes += segment.size
        overdue_ms = yield from _overdue_ms(log, first, now_ms)
        return Dirt(first, max(first, end), clean_bytes, dirty_bytes, overdue_ms, was_misplaced)


def _sealed(log: Log) -> list[tuple[Segment, int]]:
    """The sealed segments, each with the offset at which the next one begins."""
    return list(zip(log.segments[:-1], log.places.bases[1:], strict=True))


def _end(log: Log, first: int, stable_offset: int, now_ms: int) -> DiskSteps[int]:
    limit = min(stable_offset, log.recovery_point)
    youngest_ms = now_ms - log.config.min_compaction_lag_ms
    for segment, following in _sealed(log):
        if following > limit:
            return segment.base_offset
        if following <= first or log.config.min_compaction_lag_ms <= 0 or segment not in log.places:
            continue
        if segment.known_largest_timestamp is None:
            yield from loading(log, segment)
        known_ms = segment.known_largest_timestamp
        if known_ms is None or known_ms > youngest_ms:
            return segment.base_offset
        yield None
    return log.active.base_offset


def _overdue_ms(log: Log, first: int, now_ms: int) -> DiskSteps[int]:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return 0
    oldest_ms = now_ms
    for segment, following in _sealed(log):
        if following > first and segment in log.places:
            if not segment.knows_first_timestamp:
                yield from loading(log, segment)
            if segment.knows_first_timestamp and 0 < (timestamp := segment.first_timestamp()) < oldest_ms:
                oldest_ms = timestamp
            yield None
    return max(0, now_ms - lag_ms - oldest_ms)
