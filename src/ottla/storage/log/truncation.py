"""Cutting a log back: at its end, to what the leader has, and at its start, to what shall still be read.

After a cut the recovery point may be lower than its checkpoint says. The owner lowers the checkpoint before the cut
(`LogDirectories.truncating`, with what `end_if_cut_at` says), or a start would miss what was cut, or take new, unsynced
records for old, damaged ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.storage.errors import OffsetOutsideLog, RollDue, StorageFault
from ottla.storage.log.opening.loading import create_segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log


def end_if_cut_at(log: Log, offset: int) -> int:
    """Where the log would end: a cut inside a batch takes the whole batch."""
    if not log.start_offset <= offset < log.end_offset:
        return min(offset, log.end_offset)
    segment = [each for each in log.segments if each.base_offset <= offset][-1]
    place = segment.locate(offset) if segment.size else None
    return offset if place is None else min(offset, place.base_offset)


def truncate_to(log: Log, offset: int) -> None:
    """Drops every batch that ends at or above `offset`. Nothing happens where the log ends below it."""
    log.discard_staged()
    if offset >= log.end_offset:
        return
    _wait_for_workers(log)
    log.settle_swap()
    if offset < log.start_offset:
        truncate_fully_and_start_at(log, offset)
        return
    try:
        _cut(log, offset)
    except OSError as error:
        raise StorageFault.halfway(log.directory, error) from error
    finally:
        log.places.forget()


def _wait_for_workers(log: Log) -> None:
    """Raises RollDue while a worker makes files that a cut would take away or shorten."""
    if log.is_rolling or log.durability.writes_indexes:
        raise RollDue(log.tp, log.directory)


def _cut(log: Log, offset: int) -> None:
    places = log.places
    keep = [segment for segment in places.segments if segment.base_offset <= offset]
    gone = places.segments[len(keep) :]
    active = keep[-1]
    place = active.locate(offset) if active.size else None
    places.replace(keep)
    log.durability.forget([*gone, active])
    for segment in gone:
        segment.remove()
    if gone:
        # None may come back once other records have taken its offsets.
        places.around.disk.sync_directory(places.directory)
    if active.sealed:
        active.unseal()
    end = offset
    if place is not None:
        # A cut inside a batch takes the whole batch.
        end = min(offset, place.base_offset)
        active.truncate(place.position, end)
    places.cut_at(end)
    log.follow_cut()


def truncate_fully_and_start_at(log: Log, offset: int) -> None:
    """Drops everything; the log is empty and begins at `offset`."""
    log.discard_staged()
    _wait_for_workers(log)
    log.settle_swap()
    places = log.places
    try:
        gone = list(places.segments)
        log.durability.forget(gone)
        for segment in gone:
            segment.remove()
        log.snapshots.remove(log.snapshots.offsets)
        places.begin_anew_at(create_segment(places.around, offset))
        places.around.disk.sync_directory(places.directory)
    except OSError as error:
        raise StorageFault.halfway(places.directory, error) from error
    log.follow_cut()
    log.epochs.clear()


def advance_start(log: Log, offset: int, high_watermark: int) -> None:
    """Nothing below `offset` is read any more. OffsetOutOfRange above the high watermark."""
    if offset > high_watermark or offset > log.end_offset:
        raise OffsetOutsideLog(offset, log.start_offset, min(high_watermark, log.end_offset))
    log.start_moved(offset)
