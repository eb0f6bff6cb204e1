"""When the active segment is closed and the log goes on in a new one.

By size, by age (between the first batch's timestamp and the newest's, as the records say, less a jitter so that not
all partitions roll at once), when an index is full, and when an offset would be too far from the segment's base for the
index's 32 bits. `Log.stage` compares three numbers; this is what happens when one of them is passed, and what sets
them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from zlib import crc32

from ottla.model import ErrorCode
from ottla.records.batch import INT32_MAX, OFFSET_MAX
from ottla.storage.errors import AppendRefused, BadBatch, CorruptLog, RollDue, StorageFault
from ottla.storage.formats.names import LOG
from ottla.storage.log.indexes import offset_index, time_index
from ottla.storage.log.opening.loading import load_producers
from ottla.storage.log.producers.snapshots import Snapshots
from ottla.storage.log.segment import INDEX_KINDS, Segment

if TYPE_CHECKING:
    from ottla.ports import File
    from ottla.storage.log.indexes.index_writes import BesideWrite
    from ottla.storage.log.places import Places
    from ottla.storage.log.producers.producer_state import ProducerStates
    from ottla.storage.log.producers.snapshots import PendingSnapshot
    from ottla.storage.log.staging import Staging

NEVER: Final = 2**63


def before_batch(staging: Staging, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    """A limit is passed, or not set yet: rolls where that is due, and sets the limits for what follows.

    Raises AppendRefused where there are no offsets left for the batch.
    """
    if staging.waits_for is not None:
        raise StorageFault.of(staging.waits_for, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    if staging.roll_base is not None:
        raise RollDue(staging.places.tp, staging.places.directory)
    with staging.places.naming_faults():
        _before_batch(staging, size, first_offset, last_offset, timestamp)


def producers_at_hand(staging: Staging) -> ProducerStates:
    """What producers have written, for a look before a batch is staged. Raises RollDue where a worker has to read it
    first, and StorageFault where it cannot be read."""
    memory = staging.producer_memory
    if memory.loaded is None and not memory.knows_of_none and staging.rolls_apart:
        if staging.roll_base is None:
            staging.want_reading()
        raise RollDue(staging.places.tp, staging.places.directory)
    return memory.states


def _before_batch(staging: Staging, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    segment = staging.places.active
    if last_offset > OFFSET_MAX:
        raise AppendRefused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{staging.places.tp} ends at offset {first_offset}, and a record's offset is {OFFSET_MAX} at most",
        )
    if staging.places.recent is None:
        if staging.rolls_apart and is_unread(staging):
            staging.want_reading()
            raise RollDue(staging.places.tp, staging.places.directory)
        # Loads what `note_batch` goes on from, and what `stage` needs once producers' state has changed: from then on
        # nothing may fail. A new or just opened log has none of it in memory.
        segment.max_timestamp()
        _ = segment.offsets, segment.times, staging.leader_epochs.cache
        staging.places.keep_recent()
    due = staging.staged_end > 0 and (
        staging.staged_end + size > staging.config.segment_bytes or is_old(staging, timestamp) or index_is_full(staging)
    )
    if due or not segment.base_offset <= last_offset <= segment.base_offset + INT32_MAX:
        # Where the log ends: what a follower is sent may begin behind that, and if it is not taken after all, what
        # another leader has of the hole comes before it. A hole may be too wide for that: such a segment is replaced.
        end = staging.next_offset
        base_offset = end if last_offset - end <= INT32_MAX else first_offset
        if staging.rolls_apart:
            staging.want_roll(base_offset)
            raise RollDue(staging.places.tp, staging.places.directory)
        staging.write()
        roll(staging, base_offset)
        _before_batch(staging, size, first_offset, last_offset, timestamp)
        return
    _set_limits(staging, timestamp)


def _set_limits(staging: Staging, timestamp: int) -> None:
    segment, config = staging.places.active, staging.config
    entries = min(
        config.segment_index_bytes // offset_index.ENTRY_SIZE - len(segment.offsets),
        config.segment_index_bytes // time_index.ENTRY_SIZE - 1 - len(segment.times),
    )
    # An entry stands for more bytes than this, so no index is full before: then it is looked at again. By the interval
    # that the segment was begun with.
    room = max(entries, 0) * segment.around.index_interval_bytes
    begun = segment.first_timestamp() if segment.size else timestamp
    staging.limit(
        roll_size=min(config.segment_bytes, staging.staged_end + room),
        roll_offset=min(segment.base_offset + INT32_MAX, OFFSET_MAX),
        roll_timestamp=begun + config.roll_ms - _jitter_ms(staging) if begun >= 0 else NEVER,
    )


def _jitter_ms(staging: Staging) -> int:
    """The same for the same segment at each start, and different for others."""
    bound = min(staging.config.segment_jitter_ms, staging.config.roll_ms)
    return crc32(f"{staging.places.tp}:{staging.places.active.base_offset}".encode()) % bound if bound > 0 else 0


def is_old(staging: Staging, timestamp: int) -> bool:
    """Whether a batch of this time is too late for the active segment."""
    if not staging.places.active.size:
        return timestamp > staging.roll_timestamp
    begun = staging.places.active.first_timestamp()
    return begun >= 0 and timestamp - begun > staging.config.roll_ms - _jitter_ms(staging)


def index_is_full(staging: Staging) -> bool:
    bytes_max = staging.config.segment_index_bytes
    return (
        len(staging.places.active.offsets) >= bytes_max // offset_index.ENTRY_SIZE
        or len(staging.places.active.times) >= bytes_max // time_index.ENTRY_SIZE - 1
    )


def roll(staging: Staging, base_offset: int) -> None:
    """Seals the active segment and goes on in a new one from `base_offset` on, with the caller waiting for the disk."""
    staging.want_roll(base_offset)
    begun = None
    try:
        begun = prepare(staging)
        if begun is not None:
            with staging.places.naming_faults():
                staging.places.around.files.opening(begun.run)
    except BaseException:
        failed(staging, begun)
        raise
    finish(staging, begun)
    staging.durability.indexes_are_written()


def is_unread(staging: Staging) -> bool:
    """Whether the disk may have to be waited for before the first batch is appended behind an opening."""
    memory = staging.producer_memory
    return not staging.places.active.is_loaded or (memory.loaded is None and not memory.knows_of_none)


class LogReading:
    """What a log that was opened has to know before anything is appended to it, read by a worker."""

    def __init__(self, staging: Staging) -> None:
        self.base_offset = staging.next_offset
        self.snapshot: PendingSnapshot | None = None
        self._staging = staging
        self._segment = staging.places.active
        self._twin = self._segment.twin()
        self.segments = list(staging.places.segments)
        self._producers: ProducerStates | None = None
        #: Snapshots that were found damaged, whose files are gone.
        self._damaged: Collection[int] = ()

    def run(self) -> None:
        """Blocks; raises OSError and CorruptLog, and may then run again."""
        places = self._staging.places
        try:
            self._read(places)
        except BadBatch as bad:
            raise CorruptLog(places.tp, places.directory, bad.position, bad.reason) from bad

    def _read(self, places: Places) -> None:
        memory = self._staging.producer_memory
        self._twin.load()
        if memory.loaded is not None or memory.knows_of_none:
            return
        twins = [each.twin() for each in self.segments]
        known = memory.snapshots.offsets
        snapshots = Snapshots(places.around, known)
        try:
            self._producers = load_producers(
                places.tp, twins, snapshots, places.start_offset, places.end_offset, memory.opened_ms
            )
        finally:
            for twin in twins:
                twin.close()
        self._damaged = frozenset(known).difference(snapshots.offsets)

    def finish(self) -> None:
        self._segment.adopt(self._twin)
        self._twin.close()
        if self._producers is not None:
            self._staging.producer_memory.are_read(self._producers, self._damaged)

    def close(self) -> None:
        self._twin.close()


class Roll:
    """The files of a log's next segment, and what its present one still lacks, made by a worker.

    The log takes nothing meanwhile, so that nothing else writes to any of these files.
    """

    __slots__ = (
        "_directory",
        "_disk",
        "_path",
        "_replaced",
        "_syncs_first",
        "base_offset",
        "file",
        "snapshot",
        "writes",
    )

    def __init__(
        self,
        new: Segment,
        writes: Sequence[BesideWrite],
        snapshot: PendingSnapshot | None,
        *,
        syncs_first: bool,
        replaced: Segment | None,
    ) -> None:
        self.base_offset = new.base_offset
        #: The new segment's log file, once it is made; open.
        self.file: File | None = None
        #: What completes the indexes of the segment that is sealed.
        self.writes = tuple(writes)
        #: Of the producers, as the log ends.
        self.snapshot = snapshot
        self._disk = new.around.disk
        self._directory = new.around.directory
        self._path = new.path()
        self._syncs_first = syncs_first
        #: The files of a segment without batches, which the new one stands for.
        self._replaced = [replaced.path(kind) for kind in (*INDEX_KINDS, LOG)] if replaced is not None else []

    def run(self) -> None:
        """Blocks; raises OSError, and may then run again."""
        if self._syncs_first:
            # A power cut must not leave the second segment without the first: no hole would show that one is missing.
            self._disk.sync_directory(self._directory)
        for write in self.writes:
            write.run()
        file = self._disk.open(self._path, create=True)
        try:
            if file.size():
                file.truncate(0)
            for path in self._replaced:
                with suppress(FileNotFoundError):
                    self._disk.remove(path)
            if self._replaced:
                self._disk.sync_directory(self._directory)
        except BaseException:
            file.close()
            raise
        self.file = file

    def close(self) -> None:
        """Nobody wants the segment any more."""
        if self.file is not None:
            self.file.close()


def prepare(staging: Staging) -> Roll | LogReading | None:
    """What a worker is to make for the roll that `staging` wants; None where there is nothing to make.

    `finish` or `failed` follows. Raises StorageFault, after which `failed` is due as well.
    """
    places, durability = staging.places, staging.durability
    if staging.is_to_be_read:
        return LogReading(staging)
    old = places.active
    assert staging.staged_end == old.size, "what is staged belongs to the old segment"
    base_offset = staging.settle_roll_base()
    assert base_offset >= places.end_offset
    if old.base_offset == base_offset:
        return None
    new = Segment(places.around, base_offset, 0, sealed=False)
    if old.size == 0:
        return Roll(new, (), None, syncs_first=False, replaced=old)
    with places.naming_faults():
        writes = old.index_writes()
        snapshot = staging.producer_memory.frozen()
    syncs_first = len(places.segments) == 1 and durability.names_changed
    return Roll(new, writes, snapshot, syncs_first=syncs_first, replaced=None)


def finish(staging: Staging, begun: Roll | LogReading | None) -> None:
    """The worker has made it all: the log goes on in the new segment."""
    staging.end_roll()
    if begun is None:
        return
    if isinstance(begun, LogReading):
        begun.finish()
        return
    places, durability = staging.places, staging.durability
    assert begun.file is not None
    new = Segment(places.around, begun.base_offset, 0, sealed=False)
    new.takes_file(begun.file)
    old = places.active
    if old.size:
        old.indexes_written(begun.writes)
        old.seal()
        staging.producer_memory.take(begun.snapshot)
        durability.sealed(old)
        places.add(new)
    else:
        old.close()
        places.replace([*places.segments[:-1], new])
    durability.segments_changed()
    staging.rolled()


def failed(staging: Staging, begun: Roll | LogReading | None) -> None:
    """The log goes on in the segment that it has; what was made of the next one is made anew by the next try."""
    staging.end_roll()
    if begun is not None:
        begun.close()
        if begun.snapshot is not None:
            begun.snapshot.thaw()


def roll_due(staging: Staging, now_ms: int) -> bool:
    """Whether time alone asks for a new segment: by the first record's time, or the file's where it has none."""
    segment = staging.places.active
    if segment.size == 0:
        return False
    begun = segment.first_timestamp()
    if begun < 0:
        begun = staging.places.around.disk.modified_ms(segment.path())
    return now_ms - begun > staging.config.roll_ms - _jitter_ms(staging)
