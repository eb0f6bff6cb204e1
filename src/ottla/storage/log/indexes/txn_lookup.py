"""The aborted transactions that a fetch of committed records is answered with: its reader drops their records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ottla.model import TopicPartition
from ottla.records.batch import TRANSACTIONAL
from ottla.storage.errors import DamagedIndex
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.markers import apply_written
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.reader import Slice
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

_BASE: Final = attrgetter("base_offset")


def overlapping(log: Log, first: int, last_exclusive: int) -> list[tuple[int, int]]:
    """Producer id and first offset of each, in the order of their markers."""
    return as_answered(entries_between(log, first, last_exclusive))


def as_answered(entries: Iterable[AbortedTransaction]) -> list[tuple[int, int]]:
    """As a fetch is answered with them."""
    return [(entry.producer_id, entry.first_offset) for entry in entries]


def range_of(log: Log, first: int, piece: Slice, last_exclusive: int) -> int | None:
    """Up to where they are looked for; None where there are none."""
    number = max(bisect_right(log.places.bases, first) - 1, 0)
    if piece.file is None or not any(segment.may_have_aborted for segment in log.segments[number:]):
        return None
    return min(last_exclusive, _end_of(log, number, piece))


def are_known(log: Log, first: int) -> bool:
    """Whether no file is to be read to look for those that end behind `first`."""
    number = max(bisect_right(log.places.bases, first) - 1, 0)
    return all(segment.knows_aborted for segment in log.segments[number:])


def searched(
    tp: TopicPartition, segments: Sequence[Segment], first: int, last_exclusive: int
) -> list[AbortedTransaction]:
    """As `entries_between`, with a worker waiting for the disk: the segments are its own."""
    return _found(tp, segments, first, last_exclusive, Segment.mend_aborted)


def _end_of(log: Log, number: int, piece: Slice) -> int:
    """An offset behind the slice, as close as the index has one: as Kafka's `fetchUpperBoundOffset`."""
    segments = log.segments
    while number < len(segments) and segments[number].open_file is not piece.file:
        number += 1  # a segment may have nothing at its end any more
    if number == len(segments):
        return log.end_offset
    segment = segments[number]
    index = segment.offsets
    place = bisect_left(index.positions, piece.position + piece.size)
    if place < len(index):
        return segment.base_offset + index.offsets[place]
    return segments[number + 1].base_offset if number + 1 < len(segments) else log.end_offset


def entries_between(log: Log, first: int, last_exclusive: int) -> list[AbortedTransaction]:
    """All that overlap the range of offsets, in the order of their markers. A million take a tenth of a second, and a
    damaged index is read from the log again, from its start on: of a log that is served a worker has twins of its
    segments `searched`."""
    return _found(log.tp, log.segments, first, last_exclusive, Segment.replace_aborted)


def _found(
    tp: TopicPartition,
    segments: Sequence[Segment],
    first: int,
    last_exclusive: int,
    mend: Callable[[Segment, list[AbortedTransaction]], None],
) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    number = max(bisect_right(segments, first, key=_BASE) - 1, 0)
    for segment in [each for each in segments[number:] if each.may_have_aborted]:
        seen = len(found)
        try:
            is_over = _takes(segment, first, last_exclusive, found)
        except (DamagedIndex, FileNotFoundError) as damage:
            segment.around.warn(f"the aborted transactions of {segment!r} are read from the log again: {damage}")
            entries = _read_again(tp, segments, segment)
            with suppress(OSError):
                mend(segment, entries)
            del found[seen:]
            is_over = _takes(segment, first, last_exclusive, found)
        if is_over:
            break
    return found


def _takes(segment: Segment, first: int, last_exclusive: int, found: list[AbortedTransaction]) -> bool:
    """Adds those of a segment; whether none of a later one overlaps. Markers rise: those before `first` end
    transactions that end before it.
    """
    with closing(segment.aborted_between(first, last_exclusive)) as parts:
        for entries in parts:
            for entry in entries:
                if entry.first_offset < last_exclusive:
                    found.append(entry)
                if entry.last_stable_offset >= last_exclusive:
                    return True
    return False


def _read_again(tp: TopicPartition, segments: Sequence[Segment], segment: Segment) -> list[AbortedTransaction]:
    """From the log's start on, since a transaction may have begun long before its marker."""
    producers = ProducerStates(tp)
    entries: list[AbortedTransaction] = []
    for each in segments:
        if each.base_offset > segment.base_offset:
            break
        file = each.file
        file.lease()  # others may be opened meanwhile, and this one closed for them
        try:
            for position, header in walk(file, 0, each.size):
                if header.producer_id < 0 or not header.attributes & TRANSACTIONAL:
                    continue
                batch = file.read(header.size, position) if header.is_control else b""
                entry = apply_written(producers, header, batch, 0)
                if entry is not None and each is segment:
                    entries.append(entry)
        finally:
            file.release()
    return entries
