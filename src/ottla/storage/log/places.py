"""What of a log is written: its segments, the offsets that they hold, and where in which segment an offset lies.

An offset's place is remembered, or looked up. Three ways, the cheapest first: places that were asked for or read up to
a moment ago; the latest batches of the active segment; the offset index and a walk of a few kilobytes from there. A
reader that goes on where it stopped is served by the first or second without a search in an index.

    bases[0] <= start_offset <= end_offset      bases[n] < bases[n + 1]      size == the sum of the segments' sizes

A segment's batches lie between its own base and the next one's; those of the last, which is the active one, end at
`end_offset`. (An active segment without batches may begin above that: a replica's next batch may lie behind a hole.)
All changes of that are made here: batches are written behind the others (`wrote`), a segment is added
behind them (`add`), segments go or are replaced (`replace`), the end is cut (`cut_at`), the start moves up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ottla.model import TopicPartition
from ottla.records.batch import INT32_MAX
from ottla.storage.errors import BadBatch, CorruptLog, DamagedIndex, StorageFault
from ottla.storage.log.batch_walk import read_header
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.recent_batches import RecentBatches
from ottla.storage.log.segment import Segment

#: Enough for the readers of one partition; the oldest goes when there would be more, which costs its reader a search.
SPOTS_MAX: Final = 64

#: Segment, position, size of the batch there (0: not looked at yet), and the offset behind it.
Spot = tuple[Segment, int, int, int]


class Places:
    __slots__ = (
        *(
            "_aborted",
            "_limit",
            "_spots",
            "around",
            "bases",
            "end_offset",
            "known",
            "may_have_gaps",
            "recent",
            "segments",
            "size",
            "start_offset",
        ),
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        around: LogContext,
        segments: list[Segment],
        start_offset: int,
        end_offset: int,
        *,
        may_have_gaps: bool,
    ) -> None:
        self.tp = tp
        #: Whether offsets may be missing between two segments, as compaction leaves them.
        self.may_have_gaps = may_have_gaps
        #: For the segments that are begun from now on.
        self.around = around
        #: Oldest first, at least one; the last is the active one, and the others are sealed.
        self.segments = segments
        #: Their base offsets, rising.
        self.bases = [segment.base_offset for segment in segments]
        #: The first offset that is read; whole segments below it go with retention. It never falls, but for a cut.
        self.start_offset = start_offset
        #: Behind the last batch that is written.
        self.end_offset = end_offset
        #: Bytes in all segments.
        self.size = sum(segment.size for segment in segments)
        #: Of the active segment; None until it is written to.
        self.recent: RecentBatches | None = None
        #: By offset. Every one is true as long as the log is not cut.
        self._spots: dict[int, Spot] = {}
        #: By offset, what was remembered of it.
        self.known = self._spots.get
        #: The last limit that was asked for below the end: offset, segment, position.
        self._limit: tuple[int, Segment | None, int] = (-1, None, 0)
        #: What was last looked for of aborted transactions: the range of offsets, and what was found.
        self._aborted: tuple[int, int, list[tuple[int, int]]] | None = None

    @property
    def directory(self) -> str:
        return self.around.directory

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @contextmanager
    def naming_faults(self) -> Iterator[None]:
        """Whatever is wrong with the files is raised as storage's own faults: callers of a log catch StorageFault."""
        try:
            yield
        except BadBatch as bad:
            raise CorruptLog(self.tp, self.directory, bad.position, bad.reason) from bad
        except OSError as error:
            raise StorageFault.of(self.directory, error) from error

    # -- finding

    def __contains__(self, segment: Segment) -> bool:
        """Whether it is part of the log, and neither removed nor replaced by now."""
        number = bisect_right(self.bases, segment.base_offset) - 1
        return number >= 0 and self.segments[number] is segment

    def find(self, offset: int) -> Spot | None:
        """The first batch that ends at or above `offset`, which is below the log's end.

        None where all batches up to the end lie below: that is so only where compaction left a hole.
        """
        spot = self._spots.get(offset)
        if spot is None:
            spot = self._search(offset)
            if spot is not None:
                self.remember(offset, spot)
        elif not spot[2]:
            segment, position, _, _ = spot
            header = read_header(segment.file, position, segment.size)
            spot = self._spots[offset] = (segment, position, header.size, header.next_offset)
        return spot

    def remember(self, offset: int, spot: Spot) -> None:
        spots = self._spots
        if len(spots) >= SPOTS_MAX and offset not in spots:
            del spots[next(iter(spots))]
        spots[offset] = spot

    def goes_on(self, offset: int, segment: Segment, position: int) -> None:
        """A read ended there: the next one likely begins with `offset`."""
        if offset not in self._spots and position < segment.size:
            self.remember(offset, (segment, position, 0, 0))

    def _search(self, offset: int) -> Spot | None:
        recent = self.recent
        if recent is not None and offset >= recent.begin:
            active, positions = self.segments[-1], recent.positions
            number = recent.find(offset)
            position = positions[number]
            behind = positions[number + 1] if number + 1 < len(positions) else active.size
            return active, position, behind - position, recent.ends[number]
        for segment in self.segments[max(bisect_right(self.bases, offset) - 1, 0) :]:
            if segment.size:
                place = segment.locate(offset)
                if place is not None:
                    if self._is_missed(offset, segment):
                        missing = f"there is nothing from offset {offset} to {segment.base_offset}"
                        raise BadBatch(0, f"{missing}: a segment is missing")
                    return segment, place.position, place.size, place.next_offset
        return None

    def _is_missed(self, offset: int, found: Segment) -> bool:
        """Whether the next batch is in a segment that begins behind `offset`. Each begins where the one before it ends
        (but for a follower's behind a hole that no index can tell): a reader would pass over the records of one whose
        file is gone, and nobody would notice."""
        if found.base_offset <= offset or self.may_have_gaps:
            return False
        before = self.bases[max(bisect_right(self.bases, offset) - 1, 0)]
        return found.base_offset - before <= INT32_MAX

    def far_segment(self, offset: int) -> Segment | None:
        """The segment for which a disk may have to be waited for to find an offset below the log's end; None: none.

        It is not always the one in whose range the offset is: where compaction left a hole at that one's end, the batch
        is in the next. What is found on the way is remembered.
        """
        spot = self._spots.get(offset)
        if spot is not None and spot[2]:
            return None
        recent = self.recent
        if recent is not None and offset >= recent.begin:
            return None
        for segment in self.segments[max(bisect_right(self.bases, offset) - 1, 0) :]:
            if self._is_missed(offset, segment):
                return None  # as below
            if segment.would_wait_for(offset):
                return segment
            if segment.size:
                try:
                    place = segment.locate_unmended(offset)
                except DamagedIndex:
                    return segment  # where a worker looks, it is made anew
                except (BadBatch, OSError, StorageFault):
                    return None  # the read meets it again, and says so
                if place is not None:
                    self.remember(offset, (segment, place.position, place.size, place.next_offset))
                    return None
        return None

    def aborted_are(self, first: int, last_exclusive: int, found: list[tuple[int, int]]) -> None:
        """A worker has looked for the aborted transactions of a range, for the read that asks for them next."""
        self._aborted = (first, last_exclusive, found)

    def known_aborted(self, first: int, last_exclusive: int) -> list[tuple[int, int]] | None:
        known = self._aborted
        return known[2] if known is not None and known[:2] == (first, last_exclusive) else None

    def limit_position(self, segment: Segment, limit_offset: int) -> int:
        """Where in `segment` the batches end that lie wholly below `limit_offset`, which is below the log's end."""
        known, known_segment, position = self._limit
        if known != limit_offset:
            spot = self.find(limit_offset)
            if spot is None:
                return segment.size
            known_segment, position = spot[0], spot[1]
            self._limit = (limit_offset, known_segment, position)
        if known_segment is segment:
            return position
        assert known_segment is not None
        return segment.size if known_segment.base_offset > segment.base_offset else 0

    def keep_recent(self) -> RecentBatches:
        """The record of the active segment's latest batches, from now on kept."""
        if self.recent is None:
            self.recent = RecentBatches()
        return self.recent

    def forget(self) -> None:
        """Positions have changed: the log was cut, or segments are gone."""
        self._spots.clear()
        self._limit = (-1, None, 0)
        self._aborted = None
        self.recent = None

    # -- change

    def wrote(self, batches: Sequence[tuple[int, int, int, int]], end_offset: int) -> int:
        """Batches (size, first offset, last offset, timestamp) stand behind the others in the active segment's file.

        `end_offset` lies behind them. Returns how large the segment is.
        """
        segment = self.segments[-1]
        begun = segment.size
        (self.recent or self.keep_recent()).extend(begun, batches)
        size = segment.note_batches(batches)
        self.size += size - begun
        self.end_offset = end_offset
        return size

    def add(self, segment: Segment) -> None:
        """The log goes on in this one, behind the others."""
        assert segment.base_offset >= self.end_offset > self.bases[-1]
        self.segments.append(segment)
        self.bases.append(segment.base_offset)
        self.recent = None

    def replace(self, segments: list[Segment]) -> None:
        """Some segments have gone, or others stand for them."""
        recent = self.recent if segments[-1] is self.segments[-1] else None
        self.segments[:] = segments
        self.bases[:] = [segment.base_offset for segment in segments]
        self.size = sum(segment.size for segment in segments)
        self.forget()
        # Whatever went before it, the active one is as it was.
        self.recent = recent

    def cut_at(self, offset: int) -> None:
        """The last batch that is left ends at `offset`, and the segments are those that hold what is left."""
        assert self.bases[-1] <= offset
        self.size = sum(segment.size for segment in self.segments)
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.forget()

    def begin_anew_at(self, segment: Segment) -> None:
        """All that was in the log is gone, and it begins with this empty segment."""
        self.replace([segment])
        self.start_offset = self.end_offset = segment.base_offset

    def start_moved(self, offset: int) -> None:
        """Nothing below `offset` is read any more."""
        assert self.start_offset <= offset <= self.end_offset
        self.start_offset = offset

    def cleaned(self) -> None:
        """Batches between others may be gone from now on."""
        self.may_have_gaps = True

    def reconfigure(self, index_interval_bytes: int, *, may_have_gaps: bool) -> None:
        """The interval from the next segment on."""
        self.may_have_gaps = may_have_gaps
        if index_interval_bytes != self.around.index_interval_bytes:
            self.around = self.around._replace(index_interval_bytes=index_interval_bytes)
