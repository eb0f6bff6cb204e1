"""What the loop and the worker process send each other about one pass: plain values, since they cross a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.storage.log.indexes.txn_index import AbortedTransaction


class Part(NamedTuple):
    """A segment as it was when the pass began. Sealed segments never change."""

    base_offset: int
    size: int


class LastWrittenBatch(NamedTuple):
    """What a start after a crash has to find in the log of an active producer."""

    #: Of its last batch of data; -1 where only a marker is known.
    last_offset: int
    epoch: int


class PassLimits(NamedTuple):
    """What a pass may take of this machine."""

    #: All that the pass remembers of keys and offsets fits in here.
    memory_bytes: int
    #: How full the key map may get.
    load_factor: float
    #: Read and written at once; a larger batch is held whole.
    buffer_bytes: int
    #: Reads and writes together.
    bytes_per_second: float


class PassJob(NamedTuple):
    directory: str
    #: All segments below `end_offset`, oldest first.
    parts: tuple[Part, ...]
    #: Records from here on are dirty: a later one of them supersedes all before it.
    first_dirty_offset: int
    #: Where the first segment begins that is not cleaned.
    end_offset: int
    #: Those that overlap the parts, in the order of their markers.
    aborted: tuple[AbortedTransaction, ...]
    producers: Mapping[int, LastWrittenBatch]
    #: The pass's idea of now: for delete horizons.
    now_ms: int
    delete_retention_ms: int
    #: Whether tombstones and markers stay, however old: a replica that is away may not have them.
    keeps_deletions: bool
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    limits: PassLimits

    def parts_with_ends(self) -> list[tuple[Part, int]]:
        """Each with the offset at which the next segment begins."""
        ends = [*(part.base_offset for part in self.parts[1:]), self.end_offset]
        return list(zip(self.parts, ends, strict=False))


class PassIndex(NamedTuple):
    """What the first step found."""

    #: Cleaned up to here when all groups are: `end_offset`, or less where the key map was full before.
    cleaned_to: int
    #: Base offsets of the segments that become one, for each of them.
    groups: tuple[tuple[int, ...], ...]
    #: Different keys in the dirty part.
    keys: int
    #: Of the key map's slots, how many are used.
    fullness: float
    bytes_read: int


class CleanedSegment(NamedTuple):
    """A group as one segment, whose files are on the medium and end in `.cleaned`."""

    base_offset: int
    size: int
    #: Without a change there are no files: the one segment of the group stays as it is.
    changed: bool
    has_aborted: bool
    bytes_read: int
    records_read: int
    records_kept: int
    #: Base offset and fault of the first batch that the pass has met whose records cannot be read.
    unreadable: tuple[int, str] | None = None
