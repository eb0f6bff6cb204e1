"""Opening one partition's log: what is in its folder, and where it ends.

After a clean stop that is a listing, the size of each segment, and for the last one the headers behind its last index
entry; nothing else is read before somebody asks. After a crash `recovery.py` reads what was not on the medium for
certain.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.storage.errors import BadBatch, LostRecords, StorageFault
from ottla.storage.formats import epoch_checkpoint
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import INDEX, LOG, format_segment_file
from ottla.storage.log.batch_walk import CHUNK_BYTES, read_header, walk
from ottla.storage.log.epochs import EpochCache
from ottla.storage.log.indexes.offset_index import ENTRY_SIZE, SIGNED_ENTRY
from ottla.storage.log.indexes.segment_file import LogContext
from ottla.storage.log.open_files import OpenFiles
from ottla.storage.log.opening.foreign import KnownExtent, own_segments
from ottla.storage.log.opening.leftovers import Contents, remnants, remove_segment, sweep, tidy
from ottla.storage.log.opening.recovery import RecoveryReport, recover
from ottla.storage.log.producers.producer_state import ProducerStates
from ottla.storage.log.producers.snapshots import Snapshots, replay
from ottla.storage.log.segment import Segment

#: Snapshots up to this are read when somebody asks for what is in them: a thousand producers, some five milliseconds.
SNAPSHOT_BYTES_LATER_MAX: Final = 46 * 1024


class LoadedLog(NamedTuple):
    segments: list[Segment]
    start_offset: int
    end_offset: int
    #: None where they need not be known yet.
    epochs: EpochCache | None
    producers: ProducerStates | None
    snapshots: Snapshots
    report: RecoveryReport | None
    #: Whether names in the folder changed.
    changed: bool

    @property
    def around(self) -> LogContext:
        return self.snapshots.around

    def keep_in(self, files: OpenFiles) -> None:
        """From now on `files` bounds what the log holds open."""
        around = self.around._replace(files=files)
        self.snapshots.keep_in(around)
        for segment in self.segments:
            segment.keep_in(around)


def load(
    around: LogContext,
    tp: TopicPartition,
    *,
    clean: bool,
    recovery_point: int,
    start_offset: int,
    now_ms: int,
    gaps_allowed: bool,
) -> LoadedLog:
    """What is in a log's folder, or a log that is begun there; raises CorruptLog, StorageFault."""
    try:
        return _load(
            around,
            tp,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            now_ms=now_ms,
            gaps_allowed=gaps_allowed,
        )
    except OSError as error:
        raise StorageFault.of(around.directory, error) from error


def begin(around: LogContext) -> LoadedLog:
    """A log without records in a new folder, which there is nothing in to look for; raises StorageFault."""
    try:
        return _begun(around, Snapshots(around), 0, EpochCache())
    except OSError as error:
        raise StorageFault.of(around.directory, error) from error


def _load(
    around: LogContext,
    tp: TopicPartition,
    *,
    clean: bool,
    recovery_point: int,
    start_offset: int,
    now_ms: int,
    gaps_allowed: bool,
) -> LoadedLog:
    disk, directory = around.disk, around.directory
    contents = tidy(around, tp, gaps_allowed=gaps_allowed)
    snapshots = Snapshots(around, contents.snapshots)
    existing = _existing(around, contents, start_offset, clean=clean, gaps_allowed=gaps_allowed)
    sizes = {base: disk.size(f"{directory}/{format_segment_file(base, LOG)}") for base in existing}
    bases = own_segments(around, sizes, KnownExtent(clean, recovery_point, gaps_allowed))
    if not bases:
        if start_offset < recovery_point:
            raise LostRecords(tp, directory, start_offset, recovery_point)
        snapshots.remove(snapshots.offsets)
        former = load_epochs(around, [])
        former.drop_unused(start_offset)
        return _begun(around, snapshots, start_offset, former)
    # Retention removes them with the segments; what became of the transactions that they have stood in those.
    snapshots.remove([offset for offset in snapshots.offsets if offset < bases[0]])
    segments = [
        Segment(
            around,
            base,
            sizes[base],
            sealed=base != bases[-1],
            aborted_on_disk=base in contents.transactions,
        )
        for base in bases
    ]
    end = _clean_end(segments[-1]) if clean else None
    epochs: EpochCache | None = None
    producers: ProducerStates | None = None
    report: RecoveryReport | None = None
    if end is None:
        epochs, producers = load_epochs(around, segments), ProducerStates(tp)
        log_start = max(start_offset, segments[0].base_offset)
        recovered = recover(
            tp, segments, recovery_point, epochs, producers, snapshots, log_start, now_ms, gaps_allowed=gaps_allowed
        )
        end, report = recovered.end_offset, recovered.report
        # One further on may be of another past of this log, whose removal a crash undid.
        snapshots.remove([offset for offset in snapshots.offsets if offset > report.from_offset])
        _warn(around, tp, report)
    for segment in segments:
        segment.release_files()
    # Also after a clean stop: a truncation lowers the checkpoint first, so that nothing else explains it.
    if max(start_offset, end) < recovery_point:
        raise LostRecords(tp, directory, end, recovery_point)
    if start_offset > end:
        return _begin_anew(around, segments, snapshots, start_offset, end, report)
    start = max(start_offset, segments[0].base_offset)
    if epochs is None:
        # A leader and a follower need them, on the loop. A log that ends at 0 has none.
        epochs = load_epochs(around, segments) if end else EpochCache()
        epochs.drop_unused(end)
    epochs.truncate_from_start(start)
    # Beyond the log's end nothing was ever written: another log's, or of a past that is gone.
    snapshots.remove([offset for offset in snapshots.offsets if offset > end])
    if producers is None and _is_large(around, snapshots):
        with suppress(BadBatch):  # a caller that needs them gets the fault
            producers = load_producers(tp, segments, snapshots, start, end, now_ms)
    changed = contents.changed or report is not None
    return LoadedLog(segments, start, end, epochs, producers, snapshots, report, changed)


def _begun(around: LogContext, snapshots: Snapshots, start_offset: int, epochs: EpochCache) -> LoadedLog:
    """A log without records, whose first segment is made."""
    segment = create_segment(around, start_offset)
    return LoadedLog([segment], start_offset, start_offset, epochs, None, snapshots, None, True)


def _existing(
    around: LogContext, contents: Contents, start_offset: int, *, clean: bool, gaps_allowed: bool
) -> list[int]:
    """The base offsets of the segments that belong to the log; all others are removed."""
    bases = contents.segments
    if bases and not clean and not gaps_allowed:
        gone = remnants(around, bases, contents.deleted, start_offset)
        for base in gone:
            remove_segment(around.disk, around.directory, base)
        bases = bases[len(gone) :]
        if gone:
            around.disk.sync_directory(around.directory)
    if contents.deleted:
        # In this order, so that after another crash the `.deleted` ones still show the others.
        around.disk.sync_directory(around.directory)
        sweep(around.disk, around.directory)
    return bases


def create_segment(around: LogContext, base_offset: int) -> Segment:
    """A new, empty segment, whose file is there."""
    segment = Segment(around, base_offset, 0, sealed=False)
    file = around.files.opening(lambda: around.disk.open(segment.path(), create=True))
    try:
        if file.size():
            file.truncate(0)
    finally:
        file.close()
    return segment


def _clean_end(segment: Segment) -> int | None:
    """The offset behind the last batch; None where the file is not what a clean stop leaves."""
    if segment.size == 0:
        return segment.base_offset
    end = segment.base_offset
    try:
        for _, header in walk(segment.file, _near_end(segment), segment.size):
            end = header.next_offset
    except BadBatch as bad:
        segment.around.warn(f"{segment.path()} is not what a clean stop leaves and is checked: {bad}")
        return None
    return end


def _near_end(segment: Segment) -> int:
    """The position of the last batch in the index, as far as the log confirms it; the segment's beginning otherwise."""
    if segment.size <= CHUNK_BYTES:
        return 0
    try:
        file = segment.around.disk.open_read_only(segment.path(INDEX))
    except FileNotFoundError:
        return 0
    try:
        size = file.size()
        entry = file.read(ENTRY_SIZE, size - ENTRY_SIZE) if size >= ENTRY_SIZE else b""
    finally:
        file.close()
    relative, position = SIGNED_ENTRY.unpack(entry) if len(entry) == ENTRY_SIZE else (0, 0)
    if not 0 < position < segment.size:
        return 0
    try:
        header = read_header(segment.file, position, segment.size)
    except BadBatch:
        return 0
    return position if header.last_offset == segment.base_offset + relative else 0


def load_epochs(around: LogContext, segments: list[Segment]) -> EpochCache:
    """The leader epochs as they are on disk, or as the batches say where that file is damaged."""
    path = f"{around.directory}/{epoch_checkpoint.FILE_NAME}"
    try:
        return EpochCache.load(around.disk, path)
    except FormatError as damage:
        around.warn(f"{path} is rebuilt: {damage}")
    epochs = EpochCache()
    for segment in segments:
        try:
            for _, header in walk(segment.file, 0, segment.size):
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except BadBatch:
            # A torn tail: recovery finds it again.
            break
    epochs.must_be_written()
    return epochs


def _begin_anew(
    around: LogContext,
    segments: list[Segment],
    snapshots: Snapshots,
    start_offset: int,
    end: int,
    report: RecoveryReport | None,
) -> LoadedLog:
    """All records were deleted, up to an offset that the log, as it is on disk, never reached."""
    around.warn(f"{around.directory}: the log ends at {end}, below its start {start_offset}, and begins anew there")
    for segment in segments:
        segment.remove()
    snapshots.remove(snapshots.offsets)
    fresh = create_segment(around, start_offset)
    around.disk.sync_directory(around.directory)
    return LoadedLog([fresh], start_offset, start_offset, EpochCache(), None, snapshots, report, True)


def _warn(around: LogContext, tp: TopicPartition, report: RecoveryReport) -> None:
    if report.truncated_bytes:
        kept = ", ".join(report.kept_aside) or "nothing: they are all zeros"
        if report.lost_bytes:
            kept = f"nothing of {report.lost_bytes} bytes, which the disk has no room for"
        around.warn(
            f"{tp}: the log was cut at offset {report.end_offset}, {report.truncated_bytes} bytes; kept aside: {kept}; "
            f"{report.reason}"
        )


def _is_large(around: LogContext, snapshots: Snapshots) -> bool:
    """Whether the first producer that writes would wait for more than some milliseconds, and all others with it."""
    if not snapshots.offsets:
        return False
    return around.disk.size(snapshots.path(snapshots.latest)) > SNAPSHOT_BYTES_LATER_MAX


def load_producers(
    tp: TopicPartition,
    segments: list[Segment],
    snapshots: Snapshots,
    start: int,
    end: int,
    now_ms: int,
) -> ProducerStates:
    """The state of producers in a log that was left clean, or was cut."""
    producers = ProducerStates(tp)
    known = snapshots.restore(producers, end, now_ms)
    replay(producers, segments, known, start, end, now_ms)
    return producers
