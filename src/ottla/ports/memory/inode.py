"""What a file holds, what of it is certain, and what a power cut leaves.

Theory: the page cache writes pages back whenever it likes and in any order, so after a cut each page that was written
since the last sync is there in its new or in its old state, whatever happened to its neighbours. The drive writes
sectors: the page that was under way may be new in front and old behind. The size is metadata with a life of its own.

The image kept here is what programs see; for every page that is not certain the old content is kept beside it. A sync
forgets the old contents.
"""

from __future__ import annotations

from random import Random
from typing import Final

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512
_SECTORS: Final = PAGE_BYTES // SECTOR_BYTES


class Inode:
    __slots__ = ("certain_size", "data", "dirty", "forsaken", "handles", "least_size", "linked", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        #: What a reader sees now.
        self.data = bytearray()
        #: Old contents of the pages written since the last sync (short or empty where the file ended).
        self.dirty: dict[int, bytes] = {}
        #: The same for pages whose write-back failed: they count as clean now, and no later sync writes them.
        self.forsaken: dict[int, bytes] = {}
        #: The size at the last sync, and the smallest since.
        self.certain_size = 0
        self.least_size = 0
        self.modified_ms = modified_ms
        #: Space is given back when no name and no handle is left.
        self.linked = True
        self.handles = 0

    def write(self, data: bytes | bytearray | memoryview, position: int) -> None:
        end = position + len(data)
        if end == position:
            return
        if position > len(self.data):
            self._remember(len(self.data), position)
            self.data.extend(bytes(position - len(self.data)))
        self._remember(position, end)
        self.data[position:end] = data

    def truncate(self, size: int) -> None:
        if size >= len(self.data):
            self._remember(len(self.data), size)
            self.data.extend(bytes(size - len(self.data)))
            return
        self._remember(size, len(self.data))
        del self.data[size:]
        self.least_size = min(self.least_size, size)

    def _remember(self, start: int, end: int) -> None:
        dirty = self.dirty
        for page in range(start // PAGE_BYTES, (end + PAGE_BYTES - 1) // PAGE_BYTES):
            if page not in dirty:
                old = self.forsaken.pop(page, None)
                if old is None:
                    old = bytes(self.data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES])
                dirty[page] = old

    def sync(self) -> None:
        self.dirty.clear()
        self.certain_size = self.least_size = len(self.data)

    def fail_sync(self) -> None:
        """As Linux does it: the error is reported once, and the pages that were not written count as clean."""
        self.forsaken.update(self.dirty)
        self.dirty.clear()

    def flip(self, offset: int, bit: int) -> None:
        """Bit rot: on the medium and in what is read from it."""
        self.data[offset] ^= 1 << bit
        page, place = divmod(offset, PAGE_BYTES)
        for kept in (self.dirty, self.forsaken):
            old = kept.get(page)
            if old is not None and place < len(old):
                kept[page] = old[:place] + bytes([old[place] ^ (1 << bit)]) + old[place + 1 :]

    def crash(self, rng: Random) -> None:
        """Becomes one of the states that a power cut at this moment may leave."""
        seen = self.data
        size = self._size_after_crash(rng)
        data = bytearray(seen[:size])
        data.extend(bytes(size - len(data)))
        uncertain = sorted({**self.forsaken, **self.dirty}.items())
        # Not always one half: all lost, all kept and a single exception are the cases that find mistakes.
        kept_share = rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        torn = rng.choice((uncertain[-1][0], rng.choice(uncertain)[0], -1)) if uncertain else -1
        for page, old in uncertain:
            start = page * PAGE_BYTES
            if start >= size:
                break
            before = old.ljust(PAGE_BYTES, b"\0")
            after = bytes(seen[start : start + PAGE_BYTES])
            if size > len(seen):  # the truncation was lost, and what it cut off is still there
                after += before[len(after) :]
            after = after.ljust(PAGE_BYTES, b"\0")
            if page == torn:
                cut = rng.randrange(1, _SECTORS) * SECTOR_BYTES
                content = after[:cut] + before[cut:]
            else:
                content = after if rng.random() < kept_share else before
            data[start : start + PAGE_BYTES] = content[: size - start]
        self.data = data
        self.dirty.clear()
        self.forsaken.clear()
        self.certain_size = self.least_size = size
        self.handles = 0

    def _size_after_crash(self, rng: Random) -> int:
        now, certain, least = len(self.data), self.certain_size, self.least_size
        if now == certain == least:
            return now
        between = rng.randint(min(least, certain), max(now, certain))
        # Between the size now and a larger certain one there was never another: a truncation is one step.
        return rng.choice((now, certain, least, between if between <= now else certain))
