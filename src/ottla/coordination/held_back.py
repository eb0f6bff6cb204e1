"""What a start wrote to the tree and the disk had no room for: in memory, in order, until it is one frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordination.journal import FRAME_BYTES_MAX, encode_frame

#: The leader epochs of some 200,000 partitions, and half of what a frame may have.
HELD_BYTES_MAX: Final = FRAME_BYTES_MAX // 2


class HeldTransactions:
    """Transactions that are in the tree and in no file; they follow one another."""

    def __init__(self) -> None:
        self._txns: list[bytes] = []
        #: At most HELD_BYTES_MAX.
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._txns)

    def add(self, txns: Sequence[bytes]) -> bool:
        """Whether there was a place for them here."""
        size = sum(map(len, txns))
        if self.bytes + size > HELD_BYTES_MAX:
            return False
        self._txns += txns
        self.bytes += size
        return True

    def frame(self, first_zxid: int) -> bytes:
        """All of them, in one frame: what a crash may leave of two would not pass for a torn tail."""
        return encode_frame(first_zxid, self._txns)

    def clear(self) -> None:
        self._txns.clear()
        self.bytes = 0
