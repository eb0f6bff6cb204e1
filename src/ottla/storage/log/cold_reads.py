"""Reads of what the system no longer has in memory: a worker brings it there, so that the loop never waits for a disk.

The active segment was just written and is not asked about. Of an older one the system is asked, where it can say: a
fetch that would wait is read once by a worker, and answered from memory then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from ottla.ports import Workers
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Slice

#: Read at once by the worker, into one buffer.
_PIECE_BYTES: Final = 1024 * 1024


def is_warm(log: Log, found: Slice) -> bool:
    """Whether the slice can be sent without waiting for the disk."""
    file = found.file
    return file is None or file is log.active.open_file or not file.is_cold(found.size, found.position)


class Warming:
    """Reads slices through, once; their files stay open meanwhile."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._slices = slices
        for each in slices:
            if each.file is not None:
                each.file.lease()

    def run(self) -> None:
        """Blocks, so a worker calls it. A fault here shows again when the slice is sent, and is answered then."""
        piece = memoryview(bytearray(_PIECE_BYTES))
        for each in self._slices:
            if each.file is None:
                continue
            with suppress(OSError):
                for start in range(0, each.size, _PIECE_BYTES):
                    each.file.read_into(piece[: min(_PIECE_BYTES, each.size - start)], each.position + start)

    def release(self) -> None:
        for each in self._slices:
            if each.file is not None:
                each.file.release()


class Warmth:
    """Yielded by work in steps, which goes on when a worker has read the slices through."""

    def __init__(self, workers: Workers, slices: Sequence[Slice]) -> None:
        self._workers = workers
        self._slices = slices

    def wait(self, resume: Callable[[], None]) -> None:
        warming = Warming(self._slices)

        def done(_: object) -> None:
            warming.release()
            resume()

        try:
            future = self._workers.thread(warming.run)
        except BaseException:
            warming.release()
            raise
        future.add_done_callback(done)
