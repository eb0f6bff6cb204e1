"""Where the open transactions of a partition begin, and those whose markers are not committed yet.

Readers ask for the lowest of these offsets with each fetch, and a partition may have a hundred thousand transactions
open. So none of the questions goes through all of them:

    `_order`        | 12  15  15x 18  21x 30 |   first offsets as they came; x has ended, and goes when it is the first
    `_uncommitted`  | (3, 40) (12, 52) |         ended: first offset and marker, both rising

Of two that have ended the one with the lower first offset and the later marker counts for both, as long as either does.
What is staged changes the state at once, and `rollback` takes that back in as many steps as it took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

#: So many that have ended may stand in `_order`, and as many as are open: then they are taken out of it.
ENDED_KEPT_MAX: Final = 1_024


class OpenTransactions:
    """Known by their first offsets: no two have the same."""

    __slots__ = ("_begun", "_ended", "_open", "_order", "_passed", "_uncommitted")

    def __init__(self, first_offsets: Iterable[int] = ()) -> None:
        self._order = deque(sorted(first_offsets))
        self._open = set(self._order)
        self._uncommitted: deque[tuple[int, int]] = deque()
        #: Staged and not written: those that began, in their order,
        self._begun: list[int] = []
        #: those that ended, with their markers' offsets,
        self._ended: list[tuple[int, int]] = []
        #: and what was taken from the front of `_order` since.
        self._passed: list[int] = []

    def __len__(self) -> int:
        return len(self._open)

    # -- appending

    def begin(self, first_offset: int) -> None:
        """Behind all others."""
        self._order.append(first_offset)
        self._open.add(first_offset)
        self._begun.append(first_offset)

    def end(self, first_offset: int, marker_offset: int) -> None:
        self._open.discard(first_offset)
        self._ended.append((first_offset, marker_offset))

    def commit(self) -> None:
        """What was staged has been written."""
        if self._begun:
            self._begun.clear()
        if not self._ended:
            return
        for first_offset, marker_offset in self._ended:
            while self._uncommitted and self._uncommitted[-1][0] >= first_offset:
                self._uncommitted.pop()
            self._uncommitted.append((first_offset, marker_offset))
        self._ended.clear()
        self._passed.clear()
        if len(self._order) > 2 * len(self._open) + ENDED_KEPT_MAX:
            self._order = deque(filter(self._open.__contains__, self._order))

    def rollback(self) -> None:
        """What was staged has not been written."""
        self._order.extendleft(reversed(self._passed))
        self._passed.clear()
        self._open.update(first_offset for first_offset, _ in self._ended)
        self._ended.clear()
        while self._begun:
            first_offset = self._begun.pop()
            self._open.discard(first_offset)
            assert self._order[-1] == first_offset, "they came last"
            self._order.pop()

    # -- readers of committed records

    def first(self) -> int | None:
        """Where the oldest one that is open begins."""
        order = self._order
        while order and order[0] not in self._open:
            passed = order.popleft()
            if self._ended:
                self._passed.append(passed)
        return order[0] if order else None

    def committed_to(self, high_watermark: int) -> None:
        """Markers below are committed, and need no memory any more."""
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0][1] < high_watermark:
            uncommitted.popleft()

    def first_unstable(self, high_watermark: int) -> int | None:
        """As `first`, with a transaction counting as open until its marker is below the high watermark."""
        self.committed_to(high_watermark)
        offsets = [first_offset for first_offset, _ in self._ended]
        if self._uncommitted:
            offsets.append(self._uncommitted[0][0])
        first = self.first()
        if first is not None:
            offsets.append(first)
        return min(offsets, default=None)
