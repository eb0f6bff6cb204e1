"""What bears the name of a log's file, and is none of this log's.

Backups that are put back into the wrong folder, files that somebody touched, pipes and links: a name of 20 digits is
easily made. Taken for a segment, an empty file moves the log's end to where no record can follow, and one of another
log hides the records that it lies among. Such a file is renamed to `<name>.foreign`, which neither we nor Kafka take
for anything, and the log goes on without it. Nothing is removed.

The signs: a segment's base offset is where the one before it ends (compaction leaves holes, and so it ends there or
below); nothing lies behind the offset at which a clean stop has left the log; and a segment in which no record could
have an offset never was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ottla.ports import Disk
from ottla.records.batch import OFFSET_MAX
from ottla.storage.errors import BadBatch
from ottla.storage.formats.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, format_segment_file
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.segment import Segment

FOREIGN: Final = ".foreign"


class KnownExtent(NamedTuple):
    """What is known of a log before anything of it is read."""

    #: Whether it was left by a clean stop.
    clean: bool
    #: As checkpointed; 0 where it is not.
    recovery_point: int
    #: Whether compaction may have left holes.
    gaps_allowed: bool


def own_segments(around: LogContext, sizes: Mapping[int, int], known: KnownExtent) -> list[int]:
    """Of segments, by their base offsets that rise, those that can be this log's. The others lose their names.

    Reads nothing of a log whose segments all have records, or that ends where its checkpoint says.
    """
    own: list[int] = []
    for number, base in enumerate(sizes, 1):
        fault = _fault(around, own, base, sizes, known, is_last=number == len(sizes))
        if fault:
            _set_aside_segment(around, base, fault)
        else:
            own.append(base)
    return own


def _fault(
    around: LogContext, own: Sequence[int], base: int, sizes: Mapping[int, int], known: KnownExtent, *, is_last: bool
) -> str:
    clean, recovery_point, gaps_allowed = known
    if base > OFFSET_MAX:
        return f"no record can have the offset {base}"
    if clean and 0 < recovery_point < base:
        return f"the log was left with its end at offset {recovery_point}"
    # After a crash the end is for recovery to find, which cuts what does not follow.
    is_certain = clean or base < recovery_point
    is_doubtful = sizes[base] == 0 or (clean and recovery_point == 0 and is_last)
    if not (own and is_certain and is_doubtful) or base == recovery_point:
        return ""
    end = end_of(around, own[-1], sizes[own[-1]])
    if end is None or end == base or (end < base and gaps_allowed):
        return ""
    return f"the segment before it ends at offset {end}"


def end_of(around: LogContext, base: int, size: int) -> int | None:
    """Behind the last batch of a segment; None where that cannot be said for certain."""
    segment = Segment(around, base, size, sealed=True)
    end = base
    try:
        positions = segment.offsets.positions if size else ()
        for _, header in walk(segment.file, positions[-1] if positions else 0, size):
            end = header.next_offset
    except BadBatch:
        return None
    finally:
        segment.close()
    return end


def floor_of(bases: Sequence[int], offset: int) -> int | None:
    """The last of the rising bases that lies below an offset."""
    number = bisect_left(bases, offset) - 1
    return bases[number] if number >= 0 else None


def _set_aside_segment(around: LogContext, base: int, fault: str) -> None:
    around.warn(f"{around.directory}/{format_segment_file(base, LOG)} is not of this log: {fault}")
    for kind in (INDEX, TIME_INDEX, TXN_INDEX, LOG):
        name = format_segment_file(base, kind)
        if around.disk.exists(f"{around.directory}/{name}"):
            set_aside(around.disk, around.directory, name)
    around.disk.sync_directory(around.directory)


def set_aside(disk: Disk, directory: str, name: str) -> str:
    """Takes a name away from whatever bears it; returns the one that it has now."""
    again, given = 1, f"{name}{FOREIGN}"
    names = frozenset(disk.names(directory))
    while given in names:
        again += 1
        given = f"{name}.{again}{FOREIGN}"
    disk.rename(f"{directory}/{name}", f"{directory}/{given}")
    return given
