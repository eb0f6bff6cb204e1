"""Where the latest batches of the active segment lie: readers at the end of a log find their place without the disk.

Nearly all reads are of what was just written, and the high watermark lies there too. Some hundred batches cost a few
kilobytes for a log that is written to, and nothing for one that is not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from ottla.records.batch import OFFSET_MAX

#: Twice this many are kept at most, then the older half goes: dropping one at a time would move them all.
KEPT: Final = 512


class RecentBatches:
    __slots__ = ("begin", "ends", "positions")

    def __init__(self) -> None:
        #: From this offset on the batches are known; above all offsets where none is.
        self.begin = OFFSET_MAX + 1
        #: The offset behind each batch, rising. The next one may begin above it: a follower copies compaction's holes.
        self.ends = array("q")
        #: The batches follow one another in the file, up to its end.
        self.positions = array("q")

    def extend(self, position: int, batches: Sequence[tuple[int, int, int, int]]) -> None:
        """Takes up batches (size, first offset, last offset, timestamp) that follow one another from `position` on."""
        ends, positions = self.ends, self.positions
        if not ends:
            self.begin = batches[0][1]
        for size, _, last, _ in batches:
            ends.append(last + 1)
            positions.append(position)
            position += size
        if len(ends) > 2 * KEPT:
            self.begin = ends[KEPT - 1]
            del ends[:KEPT]
            del positions[:KEPT]

    def find(self, offset: int) -> int:
        """The number of the first batch that ends above `offset`, which is at or above `begin` and below the log's
        end."""
        return bisect_right(self.ends, offset)
