"""Reads of what the system no longer has in memory: a worker brings it there, so that the loop never waits for a disk.

The active segment was just written and is not asked about. Of an older one the system is asked, where it can say: a
fetch that would wait is read once by a worker, and answered from memory then.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from ottla.ports import Workers
from ottla.storage.errors import DamagedIndex, FaultKind, StorageFault
from ottla.storage.log.indexes import txn_lookup
from ottla.storage.log.indexes.offset_lookup import BatchPlace
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.log import Log
from ottla.storage.log.reader import Slice
from ottla.storage.log.rolling import LogReading
from ottla.storage.log.segment import Segment

#: Read at once by the worker, into one buffer.
_PIECE_BYTES: Final = 1024 * 1024


def is_warm(log: Log, found: Slice) -> bool:
    """Whether the slice can be sent without waiting for the disk."""
    file = found.file
    return file is None or file is log.active.open_file or not file.is_cold(found.size, found.position)


class MissingRead(Protocol):
    """What a log has yet to read before it can answer without waiting for the disk."""

    @property
    def log(self) -> Log: ...

    @property
    def fault(self) -> StorageFault | None:
        """Why it could not be read, once it was taken: the requests that wanted it are answered so. None where the log
        was cut meanwhile, or has lost the segment, which is no fault; a log that is given up has nothing to read any
        more."""
        ...

    def run(self) -> None:
        """Blocks, so a worker calls it. Raises nothing that the world can cause."""
        ...

    def take(self) -> None:
        """On the loop, once it has run: the log knows it from now on."""
        ...


def _is_same(log: Log, generation: int) -> bool:
    """Whether the log was not cut since, and is still the one that is served."""
    return log.durability.generation == generation and not log.is_abandoned


def _lasting(
    fault: StorageFault | None, log: Log, generation: int, twins: Iterable[tuple[Segment, Segment]]
) -> StorageFault | None:
    """What a worker's fault says of the log as it is now. `twins`: each segment, and the worker's twin of it."""
    if log.is_abandoned:
        return fault or StorageFault(
            FaultKind.LOG_DAMAGED, log.directory, OSError(errno.ESTALE, f"{log.tp} is not served from here any more")
        )
    is_over = log.durability.generation != generation or any(
        segment not in log.places or not twin.has_names_of(segment) for segment, twin in twins
    )
    return None if is_over else fault


def missing_place(log: Log, offset: int, limit_offset: int) -> MissingPlace | None:
    """What is to be read to find where `offset` lies, and where a reader's view ends; None where that is known, or in
    memory. Of a log that no broker serves it is read in its place."""
    places = log.places
    if not log.staging.rolls_apart or not places.start_offset <= offset < min(limit_offset, places.end_offset):
        return None
    wanted = [
        (each, segment)
        for each in (offset, limit_offset)
        if each < places.end_offset and (segment := places.far_segment(each)) is not None
    ]
    return MissingPlace(log, wanted) if wanted else None


class MissingPlace:
    """Segments that are to be opened, with their indexes and the batches in which offsets lie."""

    def __init__(self, log: Log, wanted: Sequence[tuple[int, Segment]]) -> None:
        self.log = log
        self._wanted = tuple(wanted)
        self._generation = log.durability.generation
        self._twins = {segment: segment.twin() for _, segment in wanted}
        #: What was found: the offset, the segment, and the place.
        self._found: list[tuple[int, Segment, BatchPlace]] = []
        self.fault: StorageFault | None = None

    def run(self) -> None:
        try:
            with self.log.naming_faults():
                for segment, twin in self._twins.items():
                    twin.follow(segment)
                    twin.load()
                for offset, segment in self._wanted:
                    twin = self._twins[segment]
                    place = twin.locate(offset) if twin.size else None
                    if place is not None:
                        self._found.append((offset, segment, place))
        except StorageFault as fault:
            self.fault = fault

    def take(self) -> None:
        places = self.log.places
        is_same = _is_same(self.log, self._generation)
        self.fault = _lasting(self.fault, self.log, self._generation, self._twins.items())
        for segment, twin in self._twins.items():
            if is_same and segment in places:
                segment.adopt(twin)
            twin.close()
        for offset, segment, place in self._found:
            # A batch at the log's end may have another behind it by now; what was found of it is true.
            if is_same and segment in places:
                places.remember(offset, (segment, place.position, place.size, place.next_offset))


class MissingAborted:
    """The aborted transactions among what a reader of committed records is sent, where files are to be read."""

    def __init__(self, log: Log, first: int, last_exclusive: int) -> None:
        self.log = log
        self._range = (first, last_exclusive)
        self._generation = log.durability.generation
        self._twins = [(segment, segment.twin(), segment.aborted_edition) for segment in log.segments]
        #: In the order of their markers, once they are read.
        self.found: list[AbortedTransaction] | None = None
        self.fault: StorageFault | None = None

    def run(self) -> None:
        try:
            with self.log.naming_faults():
                for segment, twin, _ in self._twins:
                    twin.take_names_of(segment)
                self.found = txn_lookup.searched(self.log.tp, [twin for _, twin, _ in self._twins], *self._range)
        except StorageFault as fault:
            self.fault = fault
        except DamagedIndex as damage:  # again, when the file was made anew: there was no room for it
            error = OSError(errno.EIO, str(damage))
            self.fault = StorageFault(FaultKind.LOG_DAMAGED, self.log.directory, error)
        finally:
            for _, twin, _ in self._twins:
                twin.close()

    def take(self) -> None:
        self.adopt()
        if self.found is not None:
            self.log.places.aborted_are(*self._range, txn_lookup.as_answered(self.found))

    def adopt(self) -> None:
        """As `take`, for a caller that wants all of them itself: a log keeps no million."""
        if not _is_same(self.log, self._generation):
            self.found = None
        self.fault = _lasting(self.fault, self.log, self._generation, [each[:2] for each in self._twins])
        if self.found is not None:
            for segment, twin, edition in self._twins:
                segment.adopt_aborted(twin, edition)


def missing_aborted(log: Log, first: int, piece: Slice, last_exclusive: int) -> MissingAborted | None:
    """What is to be read to say which transactions were aborted among what was read at `first`; None where that is in
    memory."""
    if not log.staging.rolls_apart or txn_lookup.are_known(log, first):
        return None
    end = txn_lookup.range_of(log, first, piece, last_exclusive)
    if end is None or log.places.known_aborted(first, end) is not None:
        return None
    return MissingAborted(log, first, end)


def lacks_producers(log: Log) -> bool:
    """Whether something is to be read to know of open transactions."""
    memory = log.producer_memory
    return log.staging.rolls_apart and memory.loaded is None and not memory.knows_of_none


def missing_producers(log: Log) -> MissingProducers | None:
    """What is to be read to know of open transactions; None where that is in memory."""
    return MissingProducers(log) if lacks_producers(log) else None


class MissingProducers:
    """The state of producers, from their snapshot and the batches behind it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._reading = LogReading(log.staging)
        self._generation = log.durability.generation
        self._is_read = False
        self.fault: StorageFault | None = None

    def run(self) -> None:
        try:
            with self.log.naming_faults():
                self._reading.run()
                self._is_read = True
        except StorageFault as fault:
            self.fault = fault

    def take(self) -> None:
        self.fault = _lasting(self.fault, self.log, self._generation, [(each, each) for each in self._reading.segments])
        if self._is_read and _is_same(self.log, self._generation):
            self._reading.finish()
        else:
            self._reading.close()


class ColdReads:
    """Reads of logs by workers, one after the other for each log: what one has found the next need not look for."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._running: dict[Log, asyncio.Future[None]] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    def read(self, wanted: Sequence[MissingRead], then: Callable[[], None]) -> None:
        """`then` is called when the logs know all that is wanted, as far as it could be read."""

        def ended(task: asyncio.Future[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                task.exception()  # of ours: the log is asked all the same
                then()

        task = asyncio.ensure_future(self._read(wanted))
        self._tasks.add(task)
        task.add_done_callback(ended)

    async def _read(self, wanted: Sequence[MissingRead]) -> None:
        for each in wanted:
            while (running := self._running.get(each.log)) is not None:
                await asyncio.wait([running])
            running = self._running[each.log] = self._workers.thread(each.run)
            try:
                await asyncio.wait([running])
            finally:
                del self._running[each.log]
            if not running.cancelled():
                each.take()


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


class ColdPause:
    """Yielded by work in steps, which goes on when workers have read what is missing."""

    def __init__(self, cold_reads: ColdReads, missing: Sequence[MissingRead]) -> None:
        self._cold_reads = cold_reads
        self._missing = missing

    def wait(self, resume: Callable[[], None]) -> None:
        self._cold_reads.read(self._missing, resume)
