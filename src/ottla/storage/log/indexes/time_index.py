"""`.timeindex`: the largest timestamp so far, and the last offset of the batch that brought it.

An entry goes in beside an entry of the offset index when the segment's largest timestamp has risen since the last, and
once more when the segment is sealed or closed, so that its last entry is the segment's largest timestamp. Timestamps
rise strictly; offsets never fall.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from operator import le, lt
from struct import Struct
from typing import Final

from ottla.storage.errors import DamagedIndex

ENTRY: Final = Struct(">qI")
ENTRY_SIZE: Final = ENTRY.size
#: An entry as Kafka reads it, with signs: for code that looks for damage.
SIGNED_ENTRY: Final = Struct(">qi")


class TimeIndex:
    __slots__ = ("offsets", "persisted", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        #: Relative to the segment's base.
        self.offsets = array("I")
        #: How many entries the file on disk has. 0 <= persisted <= len(timestamps)
        self.persisted = 0

    def __len__(self) -> int:
        return len(self.timestamps)

    def append_if_later(self, timestamp: int, relative_offset: int) -> None:
        if timestamp < 0 or (self.timestamps and timestamp <= self.timestamps[-1]):
            return
        assert not self.offsets or relative_offset >= self.offsets[-1]
        self.timestamps.append(timestamp)
        self.offsets.append(relative_offset)

    def floor_offset(self, timestamp: int) -> int:
        """A relative offset before which no batch reaches the timestamp: a search starts there."""
        number = bisect_left(self.timestamps, timestamp) - 1
        return self.offsets[number] if number >= 0 else 0

    def truncate(self, relative_offset: int) -> None:
        """Drops the entries at and above an offset."""
        keep = bisect_left(self.offsets, max(relative_offset, 0))
        del self.timestamps[keep:]
        del self.offsets[keep:]
        self.persisted = min(self.persisted, keep)

    def encode(self, first: int = 0) -> bytes:
        return b"".join(map(ENTRY.pack, self.timestamps[first:], self.offsets[first:]))

    @classmethod
    def decode(cls, data: bytes) -> TimeIndex:
        """Reads a file's bytes, with or without the zeros of preallocation behind; raises DamagedIndex."""
        if len(data) % ENTRY_SIZE:
            raise DamagedIndex(f"its {len(data)} bytes are no multiple of {ENTRY_SIZE}")
        used = len(data.rstrip(b"\0"))
        used += -used % ENTRY_SIZE
        index = cls()
        if used:
            timestamps, offsets = zip(*ENTRY.iter_unpack(memoryview(data)[:used]), strict=True)
            index.timestamps = array("q", timestamps)
            index.offsets = array("I", offsets)
        index.persisted = len(index.offsets)
        if index.timestamps and index.timestamps[0] < 0:
            raise DamagedIndex(f"it has the timestamp {index.timestamps[0]}")
        if not all(map(lt, index.timestamps, index.timestamps[1:])):
            raise DamagedIndex("its timestamps do not rise")
        if not all(map(le, index.offsets, index.offsets[1:])):
            raise DamagedIndex("its offsets fall")
        return index
