"""The entries of a `.txnindex`, read where they are needed: a segment may have millions of them.

They rise by their last offsets and all have the same size, so that the first one that a reader needs is found by
bisecting the file. Each entry that is looked at is checked, and must lie between those that were looked at before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.ports import Disk, File
from ottla.storage.errors import DamagedIndex
from ottla.storage.log.indexes.txn_index import ENTRY, VERSION, AbortedTransaction, decode, encode

#: Decoded at once: 17 KB, a third of a millisecond.
ENTRIES_A_PIECE: Final = 512


class AbortedWrite(NamedTuple):
    """Entries that a file is to have behind its others, for a worker: those that it has already are left out."""

    disk: Disk
    path: str
    base_offset: int
    entries: tuple[AbortedTransaction, ...]

    def run(self) -> None:
        """Blocks. Raises OSError, and may be done again."""
        file = self.disk.open(self.path, create=True)
        try:
            size = file.size() - file.size() % ENTRY.size  # a write may have been cut short
            last = -1
            if size:
                (known,) = decode(file.read(ENTRY.size, size - ENTRY.size), self.base_offset)
                last = known.last_offset
            left = [entry for entry in self.entries if entry.last_offset > last]
            if left:
                file.write(encode(left), size)
        except DamagedIndex:
            pass  # the next look into it makes it anew from the log, these entries included
        finally:
            file.close()


class TxnIndexFile:
    """An open one. What is appended to it meanwhile is not seen."""

    __slots__ = ("_base_offset", "_file", "count")

    def __init__(self, file: File, base_offset: int) -> None:
        self._file = file
        self._base_offset = base_offset
        size = file.size()
        if size % ENTRY.size:
            raise DamagedIndex(f"its {size} bytes are no multiple of {ENTRY.size}")
        self.count = size // ENTRY.size

    def entries(self, start: int, end: int) -> list[AbortedTransaction]:
        """Raises DamagedIndex."""
        data = self._file.read((end - start) * ENTRY.size, start * ENTRY.size)
        if len(data) != (end - start) * ENTRY.size:
            raise DamagedIndex(f"it ends before its entry {end}")
        return decode(data, self._base_offset)

    def first_ending_at(self, offset: int) -> int:
        """The place of the first entry whose last offset is this or a later one; `count` where there is none."""
        low, high = 0, self.count
        lowest, highest = self._base_offset - 1, None
        while low < high:
            middle = (low + high) // 2
            last = self.entries(middle, middle + 1)[0].last_offset
            if last <= lowest or (highest is not None and last >= highest):
                raise DamagedIndex("its entries do not rise")
            if last < offset:
                low, lowest = middle + 1, last
            else:
                high, highest = middle, last
        return low

    def needed(self, start: int, before: int) -> Iterator[list[AbortedTransaction]]:
        """From there on those that begin before this offset, up to the first one behind which nobody has to look for
        any (`AbortedTransaction.last_stable_offset`), in pieces. Raises DamagedIndex.

        While one transaction is open for long, thousands may be aborted behind it: of those only what is needed is
        made an entry.
        """
        previous, is_over = self._base_offset - 1, False
        for place in range(start, self.count, ENTRIES_A_PIECE):
            size = min(ENTRIES_A_PIECE, self.count - place) * ENTRY.size
            data = self._file.read(size, place * ENTRY.size)
            if len(data) != size:
                raise DamagedIndex("it ends before its last entry")
            found = []
            for version, producer_id, first, last, stable in ENTRY.iter_unpack(data):
                if version != VERSION or last <= previous or first >= last:
                    raise DamagedIndex(f"it names a transaction from {first} to {last} in version {version}")
                previous = last
                if not is_over and (first < before or stable >= before):
                    found.append(AbortedTransaction(producer_id, first, last, stable))
                    is_over = stable >= before
            # All of a piece are looked at: what is damaged seldom stands alone.
            yield found
            if is_over:
                return

    def pieces(self, start: int = 0) -> Iterator[list[AbortedTransaction]]:
        """From there to the end. Raises DamagedIndex."""
        last = -1
        for place in range(start, self.count, ENTRIES_A_PIECE):
            entries = self.entries(place, min(place + ENTRIES_A_PIECE, self.count))
            if entries[0].last_offset <= last:
                raise DamagedIndex("its entries do not rise")
            last = entries[-1].last_offset
            yield entries
