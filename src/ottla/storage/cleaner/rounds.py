"""One pass over one log, from the loop's side.

A generator: it yields the steps that may not run on the loop, and is sent what they return. Its driver decides
where they run: a worker process and threads in a broker, one after the other in a test. Between two steps the log may
change in any way; each time it is looked at anew, and a pass that no longer fits ends with Interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ottla import steps
from ottla.ports import Disk
from ottla.storage.cleaner.dirt import Dirt
from ottla.storage.cleaner.faults import CannotClean, PassInterrupted
from ottla.storage.cleaner.job import CleanedSegment, LastWrittenBatch, Part, PassIndex, PassJob, PassLimits
from ottla.storage.cleaner.source import Pace
from ottla.storage.cleaner.swap import Stage, Swap
from ottla.storage.cleaner.work import CleaningPass
from ottla.storage.errors import FaultKind, StorageFault
from ottla.storage.log.cold_reads import MissingAborted
from ottla.storage.log.indexes.txn_index import AbortedTransaction
from ottla.storage.log.log import Log
from ottla.storage.log.retention import Removal
from ottla.storage.log.segment import Segment


class InProcess(NamedTuple):
    """A module's function and plain values, for the worker process."""

    work: Callable[..., Any]
    arguments: tuple[object, ...]


class OnThread(NamedTuple):
    """What only waits for the disk."""

    work: Callable[[], Any]


class InTurns(NamedTuple):
    """What is for the loop, and takes as long as there are many logs."""

    steps: steps.Steps[Any]


class Changing(NamedTuple):
    """What gives files of the log other names, and waits for the disk: while nothing else does that, nor takes the log
    away."""

    steps: steps.DiskSteps[Any]


Step = InProcess | OnThread | InTurns | Changing
Steps = Generator[Step, Any, "PassResult"]


class PassResult(NamedTuple):
    """A pass that came to its end."""

    cleaned_to: int
    keys: int
    fullness: float
    bytes_read: int
    bytes_written: int
    records_read: int
    records_kept: int
    #: Base offset and fault of the first batch whose records cannot be read: all such stay as they are.
    unreadable: tuple[int, str] | None


class Worker(Protocol):
    """Where a pass's heavy steps run."""

    def index(self, job: PassJob) -> Step: ...

    def clean(self, job: PassJob, number: int) -> Step: ...

    def forget(self) -> None: ...


class ProcessWorker:
    """In a process of its own: the files must be such as another process can open."""

    def index(self, job: PassJob) -> Step:
        from ottla.storage.cleaner import process

        return InProcess(process.index, (job, os.getpid()))

    def clean(self, job: PassJob, number: int) -> Step:
        from ottla.storage.cleaner import process

        return InProcess(process.clean, (job.directory, number))

    def forget(self) -> None:
        """The process does so itself after the last group; a pass that ended before is replaced by the next one."""


class ThreadWorker:
    """In this process, for a disk in memory."""

    __slots__ = ("_disk", "_pace", "_work")

    def __init__(self, disk: Disk, pace: Pace = lambda _: None) -> None:
        self._disk = disk
        self._pace = pace
        self._work: CleaningPass | None = None

    def index(self, job: PassJob) -> Step:
        self._work = work = CleaningPass(job, self._disk, self._pace)
        return OnThread(work.index)

    def clean(self, job: PassJob, number: int) -> Step:
        del job
        work = self._work
        assert work is not None, "`index` comes first"
        return OnThread(lambda: work.clean(number))

    def forget(self) -> None:
        self._work = None


class PassContext(NamedTuple):
    """What a pass needs of the broker around the log."""

    worker: Worker
    limits: PassLimits
    wall_ms: Callable[[], int]
    #: Whether the log is still the partition's.
    is_current: Callable[[Log], bool]
    #: What writes the checkpoints of the log's directory, and blocks; None where the log is not here.
    checkpointing: Callable[[Log], steps.Steps[Callable[[], None] | None]]
    #: Takes the files of replaced segments, whose time to go comes later.
    remove_later: Callable[[Log, Removal], None]
    #: Whether the log is being copied to another directory: what the copy has already would not be cleaned.
    is_moving: Callable[[Log], bool] = lambda _: False
    #: Whether all replicas have what may be cleaned.
    all_have: Callable[[Log], bool] = lambda _: True


def clean_log(log: Log, dirt: Dirt, around: PassContext) -> Steps:
    """Cleans one log up to `dirt.end_offset`, or as far as memory reaches."""
    if log.swap is not None:
        yield Changing(log.settling_swap())
    now_ms, generation = around.wall_ms(), log.durability.generation
    if log.cleaned_to <= log.start_offset:
        # Before the first hole: a start after a crash must not take it for damage, whatever the policy is by then.
        log.note_cleaned(log.start_offset)
        yield from _checkpoint(log, around)
    segments = {segment.base_offset: segment for segment in log.segments if segment.base_offset < dirt.end_offset}
    producers = yield from _last_written(log, dirt.end_offset)
    _check(log, around, generation)
    aborted = yield from _aborted_before(log, dirt.end_offset)
    _check(log, around, generation)
    # As it is from here on: a replica that comes into the set later has everything below `dirt.end_offset` by then.
    keeps_deletions = not around.all_have(log)
    job = job_for(
        log,
        dirt,
        list(segments.values()),
        around.limits,
        now_ms,
        producers,
        aborted,
        keeps_deletions=keeps_deletions,
    )
    written = read = records = kept = 0
    unreadable: tuple[int, str] | None = None
    try:
        indexed: PassIndex = yield around.worker.index(job)
        for number, bases in enumerate(indexed.groups):
            _check(log, around, generation)
            cleaned: CleanedSegment = yield around.worker.clean(job, number)
            if cleaned.changed:
                swap = Swap(log, [segments[base] for base in bases], cleaned, generation)
                yield from _swap_in(log, swap, around)
                written += cleaned.size
            unreadable = cleaned.unreadable
            read, records, kept = read + cleaned.bytes_read, records + cleaned.records_read, kept + cleaned.records_kept
        _check(log, around, generation)
        log.note_cleaned(indexed.cleaned_to if dirt.was_misplaced else max(log.cleaned_to, indexed.cleaned_to))
        yield from _checkpoint(log, around)
    except CannotClean:
        # Unless it was not the log any more that was read.
        _check(log, around, generation)
        raise
    finally:
        around.worker.forget()
    return PassResult(
        indexed.cleaned_to,
        indexed.keys,
        indexed.fullness,
        indexed.bytes_read + read,
        written,
        records,
        kept,
        unreadable,
    )


def _last_written(log: Log, end_offset: int) -> Generator[Step, Any, dict[int, LastWrittenBatch]]:
    """Of the producers whose last batch lies below `end_offset`; raises StorageFault.

    A log may know a hundred thousand of them, so that others have their turns in between. A producer that writes
    meanwhile has its last batch behind what is cleaned, and needs none here.
    """
    found: dict[int, LastWrittenBatch] = {}
    for number, piece in enumerate(log.producers.last_batches()):
        if number:
            yield OnThread(_nothing)
        for producer_id, epoch, last_offset in piece:
            if last_offset < end_offset:
                found[producer_id] = LastWrittenBatch(last_offset, epoch)
    return found


def _aborted_before(log: Log, end_offset: int) -> Generator[Step, Any, Sequence[AbortedTransaction]]:
    """There may be a million, which a worker reads. Raises StorageFault where they cannot be read."""
    if not any(segment.may_have_aborted for segment in log.segments):
        return ()
    reading = MissingAborted(log, log.segments[0].base_offset, end_offset)
    yield OnThread(reading.run)
    reading.adopt()
    if reading.fault is not None:
        raise reading.fault
    if reading.found is None:
        raise PassInterrupted("its segments were replaced meanwhile")
    return reading.found


def _nothing() -> None: ...


def job_for(
    log: Log,
    dirt: Dirt,
    segments: Sequence[Segment],
    limits: PassLimits,
    now_ms: int,
    producers: Mapping[int, LastWrittenBatch] = MappingProxyType({}),
    aborted: Sequence[AbortedTransaction] = (),
    *,
    keeps_deletions: bool = False,
) -> PassJob:
    config = log.config
    return PassJob(
        directory=log.directory,
        parts=tuple(Part(segment.base_offset, segment.size) for segment in segments),
        first_dirty_offset=dirt.first_dirty_offset,
        end_offset=dirt.end_offset,
        aborted=tuple(aborted),
        producers=dict(producers),
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        keeps_deletions=keeps_deletions,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=log.places.around.index_interval_bytes,
        limits=limits,
    )


def _check(log: Log, around: PassContext, generation: int) -> None:
    if not around.is_current(log):
        raise PassInterrupted("the partition is not here any more")
    if around.is_moving(log):
        raise PassInterrupted("the partition is being moved to another log directory")
    if log.durability.generation != generation:
        raise PassInterrupted("the log was cut")
    if not log.config.is_compacted:
        raise PassInterrupted("the topic is not compacted any more")


def _swap_in(log: Log, swap: Swap, around: PassContext) -> Generator[Step, Any, None]:
    removals: list[Removal] = []
    try:
        _check(log, around, swap.generation)
        yield Changing(_named(log, swap.naming()))
        yield _naming_faults(log, swap.sync)
        try:
            removals = yield Changing(swap.installing(around.wall_ms()))
        except OSError as error:
            # However it came about: until a start has put the names in order nobody may write to this log.
            raise StorageFault(FaultKind.DIRECTORY_FAILED, log.directory, error) from error
        yield _naming_faults(log, swap.sync)
        yield Changing(_named(log, swap.finishing()))
        # The next group may only change once this one's change is certain: a tombstone goes after what it deleted.
        yield _naming_faults(log, swap.sync)
    except Exception:
        # Where the pass itself is ended, closing the log settles it.
        if around.is_current(log):
            # One that serves gets its name: until then retention takes nothing from the log.
            ends = swap.dropping() if swap.stage in {Stage.WRITTEN, Stage.NAMED} else swap.settling()
            with suppress(OSError, PassInterrupted):
                yield Changing(ends)
        raise
    finally:
        for removal in removals:
            around.remove_later(log, removal)


def _named(log: Log, change: steps.DiskSteps[None]) -> steps.DiskSteps[None]:
    """Whose OSErrors are the disk's."""
    with log.naming_faults():
        yield from change


def _checkpoint(log: Log, around: PassContext) -> Generator[Step, Any, None]:
    write = yield InTurns(around.checkpointing(log))
    if write is not None:
        yield _naming_faults(log, write)


def _naming_faults(log: Log, work: Callable[[], None]) -> OnThread:
    """Whose OSErrors are the disk's: they become a StorageFault."""

    def run() -> None:
        with log.naming_faults():
            work()

    return OnThread(run)
