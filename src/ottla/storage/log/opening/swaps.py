"""What becomes of a `.swap` segment that a start finds.

The cleaner leaves records out and never changes where a batch begins and ends, nor who wrote it: so all batches of its
output are found again in the segments that it was made from. As long as these are in the log under their own names it
is not needed, and the next pass makes another. Once anything of them is `.deleted` it has to take their place, after a
look at whether it can: a `.swap` of anything else would put another log's records there, or none. And where nothing
else has its offsets any more it fills the hole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.ports import File
from ottla.records.batch import ATTRIBUTES_AT, BatchHeader
from ottla.records.checksum import crc32c
from ottla.storage.errors import BadBatch, CorruptLog
from ottla.storage.formats.names import DELETED, LOG, SWAP, format_segment_file
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes.segment_file import LogContext

#: What the cleaner keeps of a batch: where it begins, how far it goes, and whose it is.
_Identity = tuple[int, int, int, int, int, int]


class FolderContents(NamedTuple):
    """What a partition's folder holds beside the swaps."""

    around: LogContext
    #: Base offsets of the segments, rising.
    segments: list[int]
    #: Of those that are `.deleted`, and have no other of their name in their place.
    deleted: list[int]
    #: Of those that have an index like that. A power cut may give a segment its name back and not its indexes.
    without_index: frozenset[int]
    #: Whether the log is, or was, compacted.
    gaps_allowed: bool


class Fate(Enum):
    #: It takes the place of what it was made from.
    COMPLETED = auto()
    #: It is removed: what it was made from is still the log.
    NOT_NEEDED = auto()
    #: It is none of this log's.
    FOREIGN = auto()


class SwapVerdict(NamedTuple):
    fate: Fate
    #: Behind the last offset of the segment.
    end: int
    #: Why it is foreign.
    fault: str = ""


def judged(folder: FolderContents, tp: TopicPartition, base: int) -> SwapVerdict:
    """Raises CorruptLog for a damaged one whose origins are not in the log any more."""
    around = folder.around
    path = f"{around.directory}/{format_segment_file(base, LOG, SWAP)}"
    own: set[_Identity] = set()
    end, position, fault = base, 0, ""
    try:
        for header in _batches(around, path, check_crcs=True):
            own.add(_identity(header))
            end = header.next_offset
    except BadBatch as bad:
        position, fault = bad.position, f"it is damaged at {bad}"
    origins: set[_Identity] = set()
    has_own_names = False
    has_deleted = any(base <= each < max(end, base + 1) for each in folder.without_index)
    for each, suffix in _overlapping(folder, base, end):
        found = set(_origins(around, each, suffix, base, end))
        origins |= found
        if found or each >= base:
            has_own_names = has_own_names or not suffix
            has_deleted = has_deleted or bool(suffix)
    if not fault and not own <= origins and (origins or has_own_names or has_deleted):
        fault = f"it has batches, like that at offset {min(own - origins)[0]}, that the log has not"
    if fault and has_deleted and folder.gaps_allowed:
        raise CorruptLog(tp, path, position, fault)
    if fault:
        return SwapVerdict(Fate.FOREIGN, end, fault)
    if has_own_names and not has_deleted:
        return SwapVerdict(Fate.NOT_NEEDED, end)
    if not origins and not has_deleted and not folder.gaps_allowed:
        return SwapVerdict(Fate.FOREIGN, end, "nothing was ever cleaned here")
    return SwapVerdict(Fate.COMPLETED, end)


def _overlapping(folder: FolderContents, base: int, end: int) -> Iterator[tuple[int, str]]:
    """The segments that may have offsets from `base` up to `end`: those between them, and the one before."""
    for bases, suffix in ((folder.segments, ""), (folder.deleted, DELETED)):
        first = max(bisect_right(bases, base) - 1, 0)
        for each in bases[first:]:
            if each >= max(end, base + 1):
                break
            yield each, suffix


def _origins(around: LogContext, segment: int, suffix: str, base: int, end: int) -> Iterator[_Identity]:
    """The batches of a segment in the range, as far as they can be read."""
    with suppress(BadBatch):
        for header in _batches(around, f"{around.directory}/{format_segment_file(segment, LOG, suffix)}"):
            if header.base_offset >= end:
                return
            if header.base_offset >= base:
                yield _identity(header)


def _batches(around: LogContext, path: str, *, check_crcs: bool = False) -> Iterator[BatchHeader]:
    file = around.disk.open_read_only(path)
    try:
        for position, header in walk(file, 0, file.size()):
            if check_crcs:
                _check(file, position, header)
            yield header
    finally:
        file.close()


def _check(file: File, position: int, header: BatchHeader) -> None:
    if crc32c(file.read(header.size, position)[ATTRIBUTES_AT:]) != header.crc:
        raise BadBatch(position, f"its checksum is not {header.crc:#010x}")


def _identity(header: BatchHeader) -> _Identity:
    return (
        header.base_offset,
        header.last_offset_delta,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.leader_epoch,
    )
