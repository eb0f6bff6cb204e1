"""From a timestamp to an offset: ListOffsets.

The segments' largest timestamps say which one to look in, its time index from which batch on; the batch itself, which
may have to be decompressed, says which record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.records.errors import RecordError
from ottla.records.scan import BatchColumns, scan_batch
from ottla.storage.batch_walk import walk
from ottla.storage.errors import BadBatch
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    #: Of the batch; -1 where it has none.
    leader_epoch: int


def first_at_or_after(log: Log, timestamp: int, limit_offset: int) -> TimestampOffset | None:
    """The first record below `limit_offset` whose timestamp is at least this."""
    for segment in log.segments:
        if segment.base_offset >= limit_offset:
            return None
        if segment.size == 0 or segment.max_timestamp()[0] < timestamp:
            continue
        found = _in_segment(segment, timestamp, log.start_offset)
        if found is not None:
            return found if found.offset < limit_offset else None
    return None


def _in_segment(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    from_offset = max(start_offset, segment.base_offset + segment.times.floor_offset(timestamp))
    place = segment.locate(from_offset)
    if place is None:
        return None
    for position, header in walk(segment.file, place.position, segment.size):
        if header.max_timestamp < timestamp:
            continue
        columns = _columns(segment, position, header.size)
        found = _first(columns.timestamps, columns.offsets, timestamp, start_offset)
        if found is not None:
            return TimestampOffset(found[0], found[1], header.leader_epoch)
    return None


def _first(
    timestamps: Sequence[int], offsets: Sequence[int], timestamp: int, start_offset: int
) -> tuple[int, int] | None:
    for number, each in enumerate(timestamps):
        if each >= timestamp and offsets[number] >= start_offset:
            return each, offsets[number]
    return None


def of_largest_timestamp(log: Log) -> TimestampOffset | None:
    """The first record with the largest timestamp in the log."""
    best: Segment | None = None
    for segment in log.segments:
        if segment.size and (best is None or segment.max_timestamp()[0] > best.max_timestamp()[0]):
            best = segment
    if best is None or best.max_timestamp()[0] < 0:
        return None
    timestamp, last_offset = best.max_timestamp()
    place = best.locate(last_offset)
    if place is None:
        return None
    columns = _columns(best, place.position, place.size)
    for number, each in enumerate(columns.timestamps):
        if each == timestamp:
            return TimestampOffset(timestamp, columns.offsets[number], columns.header.leader_epoch)
    # The header claims a time that no record has: the batch's last offset is as near as can be said.
    return TimestampOffset(timestamp, last_offset, columns.header.leader_epoch)


def _columns(segment: Segment, position: int, size: int) -> BatchColumns:
    try:
        return scan_batch(segment.file.read(size, position), 0)
    except RecordError as error:
        raise BadBatch(position, error.message) from error
