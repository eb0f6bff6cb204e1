"""Buffers that requests are received into, used again and again.

Receiving into a fresh buffer costs a page fault for each 4 KiB, which halves the rate of large batches. A buffer is
taken when a connection has something to read and given back when the round has written what it staged, so ten thousand
idle connections hold none.
"""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final, cast

from ottla.protocol.primitives import Buffer as Bytes

#: The first read of a connection: one system call brings a small request whole, and several pipelined ones.
FIRST_READ_BYTES: Final = 64 * 1024
#: Kept for reuse at the most; what is over it is left to the allocator.
_KEPT_SMALL_MAX: Final = 256
_KEPT_LARGE_BYTES_MAX: Final = 64 * 1024 * 1024
#: To copy this much takes a millisecond. Of more the buffer itself is kept.
_COPIED_BYTES_MAX: Final = 4 * 1024 * 1024


class Buffer:
    __slots__ = ("data", "in_use", "kept", "size", "view")

    def __init__(self, size: int) -> None:
        #: A bytearray is filled with zeros when it is made: twelve bytes that announce a frame of 100 MB would cost
        #: 128 MB at once, and a quarter of a second. Pages of a map come as the frame's bytes do; all else is the same.
        self.data = bytearray(size) if size <= FIRST_READ_BYTES else cast("bytearray", _pages(size))
        self.view = memoryview(self.data)
        self.size = size
        #: Whether what was served from here may still be read at the end of the round.
        self.in_use = False
        #: Whether somebody has kept a frame that stands here: nothing may be put into its place any more.
        self.kept = False

    def keep(self, start: int, end: int) -> Bytes:
        """The bytes of a frame, for longer than its round."""
        if end - start > _COPIED_BYTES_MAX:
            self.kept = True
            return self.view[start:end]
        return bytes(self.view[start:end])


def _pages(size: int) -> mmap:
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)


class BufferPool:
    def __init__(self) -> None:
        #: To be taken by the round itself, which counts what it gives back.
        self.kept_small: list[Buffer] = []
        #: By size, which is always a power of two: a frame of 1.1 MB and one of 1.9 MB share buffers.
        self._large: dict[int, list[Buffer]] = {}
        self._kept_bytes = 0

    def small(self) -> Buffer:
        return self.kept_small.pop() if self.kept_small else Buffer(FIRST_READ_BYTES)

    def at_least(self, size: int) -> Buffer:
        """A buffer for a frame of a known length; raises OSError where the system refuses the memory."""
        if size <= FIRST_READ_BYTES:
            return self.small()
        rounded = 1 << (size - 1).bit_length()
        kept = self._large.get(rounded)
        if kept:
            self._kept_bytes -= rounded
            return kept.pop()
        return Buffer(rounded)

    def give_back(self, buffer: Buffer) -> None:
        if buffer.kept:
            return
        buffer.in_use = False
        size = buffer.size
        if size == FIRST_READ_BYTES:
            if len(self.kept_small) < _KEPT_SMALL_MAX:
                self.kept_small.append(buffer)
        elif size > FIRST_READ_BYTES and self._kept_bytes + size <= _KEPT_LARGE_BYTES_MAX:
            self._kept_bytes += size
            self._large.setdefault(size, []).append(buffer)
