"""Which source offset lies at which target offset: a pair for each place from where on both go up together.

    source   0 1 2 3 . 5 6 . . 9        copied are 0-3, 5, 6 and 9: the others were markers, or compacted away
    target   0 1 2 3   4 5     6        pairs: (0, 0), (5, 4), (9, 6)

A copy takes consecutive offsets, so a pair holds until the next one, or for ever. A source without gaps has one pair.
From the pairs follow, for every offset: where a group goes on that has committed it (`target_of`), and, from the end
of the target alone, which source record is next (`source_of`). A pair is known before the records behind it are
written, so the last pairs may lie beyond the target's end; they say what comes there, if it comes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

#: 32 MB for one partition. Beyond it the older half is forgotten, and groups that stand there are not translated.
PAIRS_MAX: Final = 1 << 21


class Pair(NamedTuple):
    source: int
    target: int


class OffsetPairs:
    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        #: Both rise, and a target less steeply than its source.
        self._sources = array("q")
        self._targets = array("q")
        #: Pairs that were forgotten because there were too many.
        self.forgotten = 0
        for pair in pairs:
            self.add(pair)

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[Pair]:
        return map(Pair, self._sources, self._targets)

    def __getitem__(self, number: int) -> Pair:
        return Pair(self._sources[number], self._targets[number])

    def between(self, first: int, end: int) -> list[Pair]:
        return list(map(Pair, self._sources[first:end], self._targets[first:end]))

    def add(self, pair: Pair, behind: int = 0) -> bool:
        """Says that the record at `pair.source` comes to lie at `pair.target`, and that both go up together to before
        the target offset `behind`; False where that is known.

        Where earlier pairs said something else, what they said of all that follows holds no more. What they said
        rightly is kept: others may have sent by it already what comes to lie there.
        """
        if self.source_of(pair.target) == pair.source and self._go_up_together(pair.target, behind):
            return False
        self.cut(pair.target)
        if self._sources:
            last = self[-1]
            assert last.target == pair.target or pair.source > last.source, (last, pair)
            if last == pair or pair.source - last.source == pair.target - last.target != 0:
                return True  # by what was cut off
            if last.target == pair.target:
                self._sources.pop()
                self._targets.pop()
        self._sources.append(pair.source)
        self._targets.append(pair.target)
        if len(self._sources) > PAIRS_MAX:
            half = len(self._sources) // 2
            del self._sources[:half]
            del self._targets[:half]
            self.forgotten += half
        return True

    def _go_up_together(self, target: int, behind: int) -> bool:
        """Whether no pair begins between these."""
        return bisect_left(self._targets, behind) <= bisect_right(self._targets, target)

    def cut(self, target: int) -> None:
        """Forgets what was to lie beyond a target offset; a pair at it stays."""
        kept = bisect_right(self._targets, target)
        del self._sources[kept:]
        del self._targets[kept:]

    def source_of(self, target: int) -> int | None:
        """The source offset of the record at a target offset; None where nothing was copied to that place."""
        number = bisect_right(self._targets, target) - 1
        if number < 0:
            return None
        return self._sources[number] + target - self._targets[number]

    def target_of(self, source: int, read: int, end: int) -> int | None:
        """Where a reader of the copy goes on that had to read the source's record at `source` next.

        The copy has everything below `read`, and ends at `end`. None where the record was not copied yet, or where its
        pair was forgotten.
        """
        if source > read or not self._sources:
            return None
        number = bisect_right(self._sources, source) - 1
        if number < 0:
            # Everything before the first pair is missing from the copy, which begins there. Each copy begins at 0:
            # where the first pair does not, there were others, which were forgotten by whoever recorded these.
            return None if self._targets[0] else 0
        reached = self._targets[number] + source - self._sources[number]
        if number + 1 < len(self._sources):
            # In the gap before the next pair a reader goes on with that.
            reached = min(reached, self._targets[number + 1])
        return min(reached, end)
