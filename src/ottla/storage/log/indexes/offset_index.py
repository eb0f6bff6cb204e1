"""`.index`: from an offset to a place in the log file, one entry for every few kilobytes of log.

An entry is the last offset of a batch, less the segment's base, and the batch's position. A look-up takes the last
entry at or below the offset and walks on from there. Entries rise strictly in both fields. Nothing here is worth an
fsync before its segment's: whatever is damaged is rebuilt from the log.

While its segment is active the index grows in memory, and `persisted` entries of it are in the file. Kafka maps a file
of full size and cuts it on roll; it reads a file of just the entries as well.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from struct import Struct
from typing import Final

from ottla.storage.errors import DamagedIndex

#: An entry as Kafka reads it, with signs: for code that looks for damage.
SIGNED_ENTRY: Final = Struct(">ii")
ENTRY_SIZE: Final = SIGNED_ENTRY.size
_SWAP: Final = sys.byteorder == "little"

assert array("I").itemsize == 4


class OffsetIndex:
    __slots__ = ("offsets", "persisted", "positions")

    def __init__(self) -> None:
        #: Last offset of each entry's batch, relative to the segment's base.
        self.offsets = array("I")
        #: Where each entry's batch begins.
        self.positions = array("I")
        #: How many entries the file on disk has. 0 <= persisted <= len(offsets)
        self.persisted = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, relative_offset: int, position: int) -> None:
        assert not self.offsets or (relative_offset > self.offsets[-1] and position > self.positions[-1])
        # A worker may look into it meanwhile: it finds an entry by its offset, and then takes its position.
        self.positions.append(position)
        self.offsets.append(relative_offset)

    def floor(self, relative_offset: int) -> int:
        """The number of the last entry at or below the offset; -1 where there is none."""
        return bisect_right(self.offsets, relative_offset) - 1

    def truncate(self, relative_offset: int) -> None:
        """Drops the entries at and above an offset."""
        keep = bisect_left(self.offsets, max(relative_offset, 0))
        del self.offsets[keep:]
        del self.positions[keep:]
        self.persisted = min(self.persisted, keep)

    def encode(self, first: int = 0) -> bytes:
        """The bytes of the entries from number `first` on."""
        entries = array("I", bytes(ENTRY_SIZE * (len(self.offsets) - first)))
        entries[0::2] = self.offsets[first:]
        entries[1::2] = self.positions[first:]
        if _SWAP:
            entries.byteswap()
        return entries.tobytes()

    @classmethod
    def decode(cls, data: bytes, log_size: int) -> OffsetIndex:
        """Reads a file's bytes, with or without the zeros of preallocation behind; raises DamagedIndex."""
        if len(data) % ENTRY_SIZE:
            raise DamagedIndex(f"its {len(data)} bytes are no multiple of {ENTRY_SIZE}")
        used = len(data.rstrip(b"\0"))
        used += -used % ENTRY_SIZE
        entries = array("I", data[:used])
        if _SWAP:
            entries.byteswap()
        index = cls()
        index.offsets = entries[0::2]
        index.positions = entries[1::2]
        index.persisted = len(index.offsets)
        if not (_rises(index.offsets) and _rises(index.positions)):
            raise DamagedIndex("its entries do not rise")
        if index.positions and index.positions[-1] >= log_size:
            raise DamagedIndex(f"it points to byte {index.positions[-1]} of a log of {log_size}")
        return index


def _rises(numbers: array[int]) -> bool:
    return all(map(lt, numbers, numbers[1:]))
