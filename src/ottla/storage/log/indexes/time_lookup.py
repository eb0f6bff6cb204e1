"""From a timestamp to an offset: ListOffsets.

The segments' largest timestamps say which one to look in, its time index from which batch on; the batch itself, which
may have to be decompressed, says which record. A header may claim a time that no record of its batch has, and a batch
may hold millions of records: so a look-up is a generator, which does little by itself and yields the rest to its
driver.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.ports import File
from ottla.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader
from ottla.records.errors import RecordError
from ottla.records.walk import WalkAllowance, WalkTooLong, find_latest, find_time
from ottla.storage.errors import BadBatch, DamagedIndex
from ottla.storage.log.append import IN_THE_LOOP
from ottla.storage.log.batch_walk import CHUNK_BYTES, read_header, walk
from ottla.storage.log.indexes.offset_lookup import BatchPlace
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

#: Headers that are read without a pause, some milliseconds' worth.
HEADERS_AT_ONCE: Final = 2000
#: Segments that are asked for their largest timestamp without a pause. Each may have to load its time index.
SEGMENTS_AT_ONCE: Final = 16
#: Read by a worker at once, where a walk meets what is not in memory.
WARMED_BYTES: Final = 256 * 1024
#: Of one look-up where a batch lies: the index, and the one that was made anew since that was damaged.
_LOOKS_MAX: Final = 2
#: What opening a batch costs, in records of the allowance: a look-up opens twenty at most before it goes elsewhere.
_RECORDS_A_BATCH: Final = 50


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    #: Of the batch; -1 where it has none.
    leader_epoch: int


class LookupPause(NamedTuple):
    """Others may have their turn. Nothing is sent back."""


class Elsewhere(NamedTuple):
    """To be called in another process with the arguments that are read when it is its turn; wants the result, or the
    RecordError thrown."""

    work: Callable[..., tuple[int, int] | None]
    arguments: Callable[[], tuple[object, ...]]


class FromDisk(NamedTuple):
    """To be called by a worker, as the loop would wait for the disk. Nothing is sent back; an OSError or a BadBatch is
    thrown."""

    work: Callable[[], object]


#: What is sent back is the timestamp and offset that were found, if any.
LookupStep = LookupPause | Elsewhere | FromDisk
Lookup = Generator[LookupStep, "tuple[int, int] | None", TimestampOffset | None]


def first_at_or_after(log: Log, timestamp: int, limit_offset: int) -> Lookup:
    """The first record below `limit_offset` whose timestamp is at least this."""
    for number, segment in enumerate(_segments(log), 1):
        if segment.base_offset >= limit_offset:
            return None
        if number % SEGMENTS_AT_ONCE == 0:
            yield LookupPause()
            if segment not in log.places:
                continue
        if segment.size == 0:
            continue
        if not segment.knows_max_timestamp:
            yield from _loaded(log, segment)
        if segment not in log.places or segment.max_timestamp()[0] < timestamp:
            continue
        yield from _loaded(log, segment)
        found = yield from _in_segment(log, segment, timestamp)
        if found is not None:
            return found if found.offset < limit_offset else None
    return None


def _loaded(log: Log, segment: Segment) -> Generator[LookupStep, tuple[int, int] | None, None]:
    """Has a worker open the segment and read its indexes, where a broker serves the log."""
    if segment.is_loaded or not log.staging.rolls_apart or segment not in log.places:
        return
    twin = segment.twin()
    yield from _adopted(log, segment, twin, twin.load)


def _adopted(
    log: Log, segment: Segment, twin: Segment, work: Callable[[], object]
) -> Generator[LookupStep, tuple[int, int] | None, bool]:
    """Has a worker do this with a twin, and the segment take over what it has found; False where the log was cut
    meanwhile, or has lost the segment."""
    generation = log.durability.generation
    damage: BadBatch | None = None
    try:
        try:
            yield FromDisk(partial(_under_its_names, segment, twin, work))
        except BadBatch as bad:
            damage = bad
        except FileNotFoundError:
            if segment in log.places:
                raise
        is_same = segment in log.places and log.durability.generation == generation
        if is_same:
            segment.adopt(twin)  # also what it has found damaged, so that nobody goes through all of it again
        if damage is not None:
            raise damage
        return is_same
    finally:
        twin.close()


def _under_its_names(segment: Segment, twin: Segment, work: Callable[[], object]) -> None:
    twin.take_names_of(segment)
    work()


def _warm(file: File, position: int, size: int) -> Generator[LookupStep, tuple[int, int] | None, None]:
    """Has a worker read a piece that the system does not have in memory."""
    if size > 0 and file.is_cold(size, position):
        yield FromDisk(partial(file.read, size, position))


def _located(
    log: Log, segment: Segment, offset: int
) -> Generator[LookupStep, tuple[int, int] | None, BatchPlace | None]:
    """As `Segment.locate`, of one whose indexes are in memory; None also where it has left the log."""
    file = segment.file
    file.lease()
    try:
        for _ in range(_LOOKS_MAX):
            for position, size in segment.read_by_locate(offset):
                yield from _warm(file, position, size)
                if segment not in log.places:
                    return None
            try:
                return segment.locate_unmended(offset)
            except DamagedIndex:
                twin = segment.twin()
            if not (yield from _adopted(log, segment, twin, partial(_look, twin, segment, offset))):
                return None
    finally:
        file.release()
    return None


def _look(twin: Segment, segment: Segment, offset: int) -> None:
    """By a worker: it makes the indexes anew, where nobody else has done it."""
    twin.follow(segment)
    twin.load()
    twin.locate(offset)


class _WarmAhead:
    """Goes before a walk through a file: the chunk that it reads next is in memory by then."""

    __slots__ = ("_chunk_end", "_end", "_file", "_warm_to")

    def __init__(self, file: File, end: int) -> None:
        self._file = file
        self._end = end
        self._chunk_end = self._warm_to = 0

    def goes_to(self, position: int) -> Generator[LookupStep, tuple[int, int] | None, None]:
        """Before the walk has the header of the batch at `position`."""
        if position >= self._end or position + HEADER_SIZE <= self._chunk_end:
            return
        self._chunk_end = position + CHUNK_BYTES
        if min(self._chunk_end, self._end) > self._warm_to:
            left = self._end - position
            self._warm_to = position + CHUNK_BYTES
            if self._file.is_cold(min(CHUNK_BYTES, left), position):
                self._warm_to = position + WARMED_BYTES
                yield FromDisk(partial(self._file.read, min(WARMED_BYTES, left), position))


def _segments(log: Log) -> Iterator[Segment]:
    """Those that hold records from the log's start on, oldest first; the log may change between two of them."""
    places = log.places
    base = log.start_offset
    number = max(bisect_right(places.bases, base) - 1, 0)
    while number < len(places.bases):
        base = places.bases[number]
        yield places.segments[number]
        number = bisect_right(places.bases, base)


def _in_segment(log: Log, segment: Segment, timestamp: int) -> Lookup:
    start_offset = log.start_offset
    from_offset = max(start_offset, segment.base_offset + segment.times.floor_offset(timestamp))
    place = yield from _located(log, segment, from_offset)
    if place is None:
        return None
    file, allowance, headers, end = segment.file, IN_THE_LOOP, 0, segment.size
    file.lease()  # retention and the cleaner may take the segment away between two steps
    try:
        ahead = _WarmAhead(file, end)
        yield from ahead.goes_to(place.position)
        for position, header in walk(file, place.position, end):
            yield from ahead.goes_to(position + header.size)
            headers += 1
            if headers % HEADERS_AT_ONCE == 0:
                yield LookupPause()
            if header.max_timestamp < timestamp:
                continue
            found = yield from _in_batch(file, position, header, (timestamp, start_offset, False), allowance)
            if found is not None:
                return TimestampOffset(*found, header.leader_epoch)
            allowance = allowance._replace(records=allowance.records - header.count - _RECORDS_A_BATCH)
        yield LookupPause()
    finally:
        file.release()
    return None


def _in_batch(
    file: File, position: int, header: BatchHeader, wanted: tuple[int, int, bool], allowance: WalkAllowance
) -> Generator[LookupStep, tuple[int, int] | None, tuple[int, int] | None]:
    """The record that `find_time` finds: here, if that is little work."""
    read = partial(_arguments, file, position, header.size, wanted)
    yield from _warm(file, position, header.size)
    try:
        if header.count <= allowance.records:
            raw, timestamp, start_offset, exactly = read()
            try:
                return find_time(raw, timestamp, start_offset, exactly=exactly, within=allowance)
            except WalkTooLong:
                pass
        return (yield Elsewhere(find_time_in, read))
    except RecordError as error:
        raise BadBatch(position, error.message) from error


def _arguments(file: File, position: int, size: int, wanted: tuple[int, int, bool]) -> tuple[bytes, int, int, bool]:
    return file.read(size, position), *wanted


def find_time_in(
    raw: bytes, timestamp: int, start_offset: int, exactly: bool, within: WalkAllowance | None = None
) -> tuple[int, int] | None:
    return find_time(raw, timestamp, start_offset, exactly=exactly, within=within)


def latest_in(raw: bytes, start_offset: int) -> tuple[int, int] | None:
    return find_latest(raw, start_offset)


def of_largest_timestamp(log: Log) -> Lookup:
    """The first record with the largest timestamp of those that were not deleted."""
    best: Segment | None = None
    found: TimestampOffset | None = None
    for number, segment in enumerate(_segments(log), 1):
        if number % SEGMENTS_AT_ONCE == 0:
            yield LookupPause()
            if segment not in log.places:
                continue
        if segment.size == 0:
            continue
        if segment.base_offset < log.start_offset:
            yield from _loaded(log, segment)
            found = yield from _latest_behind(log, segment)
            continue
        if not segment.knows_max_timestamp:
            yield from _loaded(log, segment)
        if segment in log.places and (best is None or segment.max_timestamp()[0] > best.max_timestamp()[0]):
            best = segment
    if best is None or best.max_timestamp()[0] <= (found.timestamp if found is not None else NO_TIMESTAMP):
        return found
    if best not in log.places:
        # Retention took it while others had their turn.
        return (yield from of_largest_timestamp(log))
    yield from _loaded(log, best)
    if best not in log.places:
        return (yield from of_largest_timestamp(log))
    place = yield from _located(log, best, best.max_timestamp()[1])
    if best not in log.places:
        return (yield from of_largest_timestamp(log))
    return None if place is None else (yield from _resolved(best, place.position))


def _latest_behind(log: Log, segment: Segment) -> Lookup:
    """The same within the segment that the log's start lies in, of the records from there on."""
    start_offset = log.start_offset
    timestamp, last_offset = segment.max_timestamp()
    place = (yield from _located(log, segment, last_offset)) if timestamp >= 0 else None
    if place is None:
        return None
    if place.base_offset >= start_offset:
        return (yield from _resolved(segment, place.position))
    place = yield from _located(log, segment, start_offset)
    if place is None:
        return None
    found: TimestampOffset | None = None
    best, best_at, headers = NO_TIMESTAMP, -1, 0
    file, end = segment.file, segment.size
    file.lease()
    try:
        ahead = _WarmAhead(file, end)
        yield from ahead.goes_to(place.position)
        for position, header in walk(file, place.position, end):
            yield from ahead.goes_to(position + header.size)
            headers += 1
            if headers % HEADERS_AT_ONCE == 0:
                yield LookupPause()
            if header.base_offset < start_offset:
                found = yield from _latest_in_batch(file, position, header, start_offset)
                best = found.timestamp if found is not None else best
            elif header.max_timestamp > best:
                best, best_at = header.max_timestamp, position
        if best_at >= 0:
            found = yield from _resolved(segment, best_at)
    finally:
        file.release()
    return found


def _latest_in_batch(file: File, position: int, header: BatchHeader, start_offset: int) -> Lookup:
    """Of a batch that begins below the log's start: its header speaks for the deleted records as well."""

    def read() -> tuple[bytes, int]:
        return file.read(header.size, position), start_offset

    yield from _warm(file, position, header.size)
    try:
        if header.count <= IN_THE_LOOP.records:
            try:
                found = find_latest(*read(), within=IN_THE_LOOP)
            except WalkTooLong:
                found = yield Elsewhere(latest_in, read)
        else:
            found = yield Elsewhere(latest_in, read)
    except RecordError as error:
        raise BadBatch(position, error.message) from error
    return None if found is None else TimestampOffset(*found, header.leader_epoch)


def _resolved(segment: Segment, position: int) -> Lookup:
    """The record with the largest timestamp of the batch at `position`."""
    file = segment.file
    file.lease()
    try:
        yield from _warm(file, position, HEADER_SIZE)
        header = read_header(file, position, segment.size)
        wanted = (header.max_timestamp, 0, True)
        found = yield from _in_batch(file, position, header, wanted, IN_THE_LOOP)
    finally:
        file.release()
    # The header claims a time that no record has: the batch's last offset is as near as can be said.
    return TimestampOffset(*(found or (header.max_timestamp, header.last_offset)), header.leader_epoch)
