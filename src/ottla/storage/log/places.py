"""Where in which segment an offset lies: remembered, or looked up.

Three ways, the cheapest first: places that were asked for or read up to a moment ago; the latest batches of the active
segment; the offset index and a walk of a few kilobytes from there. A reader that goes on where it stopped is served by
the first or second without a search in an index.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from ottla.storage.log.batch_walk import read_header
from ottla.storage.log.recent_batches import RecentBatches
from ottla.storage.log.segment import Segment

#: Enough for the readers of one partition; all are dropped when there would be more, which costs each one search.
SPOTS_MAX: Final = 64

#: Segment, position, size of the batch there (0: not looked at yet), and the offset behind it.
Spot = tuple[Segment, int, int, int]


class Places:
    __slots__ = ("_limit", "_spots", "bases", "known", "recent", "segments")

    def __init__(self, segments: list[Segment]) -> None:
        #: Oldest first, at least one; the last is the active one.
        self.segments = segments
        #: Their base offsets.
        self.bases = [segment.base_offset for segment in segments]
        #: Of the active segment.
        self.recent: RecentBatches | None = None
        #: By offset. Every one is true as long as the log is not cut.
        self._spots: dict[int, Spot] = {}
        #: By offset, what was remembered of it.
        self.known = self._spots.get
        #: The last limit that was asked for below the end: offset, segment, position.
        self._limit: tuple[int, Segment | None, int] = (-1, None, 0)

    def __contains__(self, segment: Segment) -> bool:
        """Whether it is part of the log, and neither removed nor replaced by now."""
        number = bisect_right(self.bases, segment.base_offset) - 1
        return number >= 0 and self.segments[number] is segment

    def find(self, offset: int, end_offset: int) -> Spot | None:
        """The first batch that ends at or above `offset`, which is below the log's end.

        None where all batches up to the end lie below: that is so only where compaction left a hole.
        """
        spot = self._spots.get(offset)
        if spot is None:
            spot = self._search(offset, end_offset)
            if spot is not None:
                self.remember(offset, spot)
        elif not spot[2]:
            segment, position, _, _ = spot
            header = read_header(segment.file, position, segment.size)
            spot = self._spots[offset] = (segment, position, header.size, header.next_offset)
        return spot

    def remember(self, offset: int, spot: Spot) -> None:
        spots = self._spots
        if len(spots) >= SPOTS_MAX:
            spots.clear()
        spots[offset] = spot

    def goes_on(self, offset: int, segment: Segment, position: int) -> None:
        """A read ended there: the next one likely begins with `offset`."""
        if offset not in self._spots and position < segment.size:
            self.remember(offset, (segment, position, 0, 0))

    def _search(self, offset: int, end_offset: int) -> Spot | None:
        recent = self.recent
        if recent is not None and recent.offsets and offset >= recent.offsets[0]:
            active = self.segments[-1]
            number = recent.find(offset)
            position = recent.positions[number]
            if number + 1 < len(recent.offsets):
                return active, position, recent.positions[number + 1] - position, recent.offsets[number + 1]
            return active, position, active.size - position, end_offset
        for segment in self.segments[max(bisect_right(self.bases, offset) - 1, 0) :]:
            if segment.size:
                place = segment.locate(offset)
                if place is not None:
                    return segment, place.position, place.size, place.next_offset
        return None

    def limit_position(self, segment: Segment, limit_offset: int, end_offset: int) -> int:
        """Where in `segment` the batches end that lie wholly below `limit_offset`, which is below the log's end."""
        known, known_segment, position = self._limit
        if known != limit_offset:
            spot = self.find(limit_offset, end_offset)
            if spot is None:
                return segment.size
            known_segment, position = spot[0], spot[1]
            self._limit = (limit_offset, known_segment, position)
        if known_segment is segment:
            return position
        assert known_segment is not None
        return segment.size if known_segment.base_offset > segment.base_offset else 0

    def written(self) -> RecentBatches:
        """The record of the active segment's latest batches, from now on kept."""
        if self.recent is None:
            self.recent = RecentBatches()
        return self.recent

    def forget(self) -> None:
        """Positions have changed: the log was cut, or segments are gone."""
        self._spots.clear()
        self._limit = (-1, None, 0)
        self.recent = None

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.bases.append(segment.base_offset)
        self.recent = None

    def replace(self, segments: list[Segment]) -> None:
        self.segments[:] = segments
        self.bases[:] = [segment.base_offset for segment in segments]
        self.forget()
