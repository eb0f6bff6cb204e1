"""Where the latest batches of the active segment lie: readers at the end of a log find their place without the disk.

Nearly all reads are of what was just written, and the high watermark lies there too. Some hundred batches cost a few
kilobytes for a log that is written to, and nothing for one that is not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

#: Twice this many are kept at most, then the older half goes: dropping one at a time would move them all.
KEPT: Final = 512


class RecentBatches:
    __slots__ = ("offsets", "positions")

    def __init__(self) -> None:
        #: Base offset of each batch, rising. The batches follow one another in the file, up to its end.
        self.offsets = array("q")
        self.positions = array("q")

    def extend(self, position: int, batches: Sequence[tuple[int, int, int, int]]) -> None:
        """Takes up batches (size, first offset, last offset, timestamp) that follow one another from `position` on."""
        offsets, positions = self.offsets, self.positions
        for size, first, _, _ in batches:
            offsets.append(first)
            positions.append(position)
            position += size
        if len(self.offsets) > 2 * KEPT:
            del self.offsets[:KEPT]
            del self.positions[:KEPT]

    def find(self, offset: int) -> int:
        """The number of the batch that holds `offset`, for an offset below the log's end; -1 where it lies before."""
        return bisect_right(self.offsets, offset) - 1

    def clear(self) -> None:
        del self.offsets[:]
        del self.positions[:]
