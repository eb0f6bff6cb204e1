"""Which offset is asked for, where it is none by its number, and what the answer is."""

from __future__ import annotations

from typing import Final, NamedTuple

#: Instead of a timestamp in ListOffsets.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5


class ListedOffset(NamedTuple):
    #: -1 where no record is as young as was asked.
    offset: int
    #: -1 where the offset was not looked up by time.
    timestamp: int
    leader_epoch: int
