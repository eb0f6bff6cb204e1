"""Which offsets of the dirty part hold the newest record of a key: one bit each.

Once the key map is filled its keys are not needed for the dirty part any more: of all its records those survive whose
offset is in the map. Asking a bit costs a hundredth of hashing the key again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

#: Eight bits of a byte, lowest first, as eight bytes of 0 or 1.
_SPREAD: Final = [bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256)]


class Survivors:
    __slots__ = ("_bits", "first_offset", "next_offset")

    def __init__(self, first_offset: int, next_offset: int, distances: Iterable[int]) -> None:
        """`distances` from `first_offset`, each below `next_offset`."""
        self.first_offset = first_offset
        #: Behind the last offset that is known; from there on everything survives.
        self.next_offset = next_offset
        self._bits = bits = bytearray((next_offset - first_offset + 7) // 8)
        for distance in distances:
            bits[distance >> 3] |= 1 << (distance & 7)

    def between(self, first: int, last: int) -> bytes:
        """A byte of 1 or 0 for each offset from `first`, which is dirty, to `last`."""
        assert first >= self.first_offset
        start = first - self.first_offset
        count = last - first + 1
        known = min(max(self.next_offset - first, 0), count)
        packed = self._bits[start >> 3 : (start + known + 7) >> 3]
        skipped = start & 7
        spread = b"".join(map(_SPREAD.__getitem__, packed))[skipped : skipped + known]
        return spread + b"\1" * (count - known)

    def at(self, offsets: Sequence[int]) -> bytes:
        """The same for single offsets, where a batch has holes."""
        bits, first, end = self._bits, self.first_offset, self.next_offset
        return bytes(offset >= end or bits[offset - first >> 3] >> (offset - first & 7) & 1 for offset in offsets)


def bytes_for(offsets: int) -> int:
    return (offsets + 7) // 8
