"""`<offset>.snapshot` files: producers' state at an offset, so that a start reads only the log behind it.

One is written with each roll and with the close of a log that has producers. The newest counts, and one for each
segment is kept, so that cutting the log back needs no scan from its start. A damaged one is removed, and the one before
it serves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from ottla.storage.batch_walk import walk
from ottla.storage.formats import producer_snapshot
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import SNAPSHOT, format_segment_file
from ottla.storage.indexed_file import Surroundings
from ottla.storage.markers import apply_written
from ottla.storage.producer_state import ProducerStates
from ottla.storage.recall import recall
from ottla.storage.segment import Segment


class Snapshots:
    __slots__ = ("around", "offsets")

    def __init__(self, around: Surroundings, offsets: Sequence[int] = ()) -> None:
        self.around = around
        #: Of the files that there are, rising.
        self.offsets = tuple(sorted(offsets))

    @property
    def latest(self) -> int:
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> str:
        return f"{self.around.directory}/{format_segment_file(offset, SNAPSHOT)}"

    def restore(self, producers: ProducerStates, offset: int, now_ms: int) -> int:
        """Fills `producers` from the newest sound snapshot at or below `offset`; returns its offset, -1 for none."""
        for candidate in reversed(self.offsets):
            if candidate > offset:
                continue
            try:
                producers.restore(producer_snapshot.decode(self.around.disk.read_file(self.path(candidate))), now_ms)
            except (FormatError, FileNotFoundError) as damage:
                self.around.warn(
                    f"{self.path(candidate)} is removed and producers' state is read from the log: {damage}"
                )
                self.remove((candidate,))
                continue
            return candidate
        return -1

    def write(self, producers: ProducerStates, offset: int, kept: Collection[int]) -> str:
        """Writes the state at `offset` and drops the others that are not `kept`; returns the path, for a sync.

        It need not be durable by itself: its checksum tells a torn one.
        """
        path = self.path(offset)
        file = self.around.files.opening(lambda: self.around.disk.open(path, create=True))
        try:
            file.truncate(0)
            file.append([producer_snapshot.encode(producers.snapshot())])
        finally:
            file.close()
        self.remove([each for each in self.offsets if each != offset and each not in kept])
        self.offsets = tuple(sorted({*self.offsets, offset}))
        return path

    def remove(self, gone: Collection[int]) -> None:
        for offset in gone:
            with suppress(FileNotFoundError):
                self.around.disk.remove(self.path(offset))
        if gone:
            self.offsets = tuple(offset for offset in self.offsets if offset not in gone)


def replay(producers: ProducerStates, segments: Sequence[Segment], first: int, end: int, now_ms: int) -> None:
    """Applies the batches from offset `first` up to `end` that are in the log, from their headers."""
    recall(producers, segments, first)
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end
        start = max(first, segment.base_offset)
        if start >= min(following, end) or segment.size == 0:
            continue
        place = segment.locate(start)
        if place is None:
            continue
        for position, header in walk(segment.file, place.position, segment.size):
            if header.base_offset >= end:
                break
            if header.producer_id >= 0:
                batch = segment.file.read(header.size, position) if header.is_control else b""
                apply_written(producers, header, batch, now_ms)
    producers.commit()
