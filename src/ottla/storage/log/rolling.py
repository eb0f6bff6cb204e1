"""When the active segment is closed and the log goes on in a new one.

By size, by age (between the first batch's timestamp and the newest's, as the records say, less a jitter so that not
all partitions roll at once), when an index is full, and when an offset would be too far from the segment's base for the
index's 32 bits. `Log.stage` compares three numbers; this is what happens when one of them is passed, and what sets
them.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final
from zlib import crc32

from ottla.model import ErrorCode
from ottla.records.batch import INT32_MAX, OFFSET_MAX
from ottla.storage.errors import AppendRefused, StorageFault
from ottla.storage.log.flush import index_paths
from ottla.storage.log.indexes import offset_index, time_index
from ottla.storage.log.opening.loading import create_segment
from ottla.storage.log.state import ALWAYS

if TYPE_CHECKING:
    from ottla.storage.log.staging import AppendableLog

NEVER: Final = 2**63


def before_batch(log: AppendableLog, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    """A limit is passed, or not set yet: rolls where that is due, and sets the limits for what follows.

    Raises AppendRefused where there are no offsets left for the batch.
    """
    if log.waits_for is not None:
        raise StorageFault.of(log.waits_for, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with log.telling():
        _before_batch(log, size, first_offset, last_offset, timestamp)


def _before_batch(log: AppendableLog, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    segment = log.active
    if last_offset > OFFSET_MAX:
        raise AppendRefused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{log.tp} ends at offset {first_offset}, and a record's offset is {OFFSET_MAX} at most",
        )
    if not log.places.recent:
        # Loads what `note_batch` goes on from, and what `stage` needs once producers' state has changed: from then on
        # nothing may fail. A new or just opened log has none of it in memory.
        segment.max_timestamp()
        _ = segment.offsets, segment.times, log.epochs
        log.places.written()
    due = log.staged_end > 0 and (
        log.staged_end + size > log.config.segment_bytes or is_old(log, timestamp) or index_is_full(log)
    )
    if due or last_offset - segment.base_offset > INT32_MAX:
        log.write_staged()
        roll(log, first_offset)
        _before_batch(log, size, first_offset, last_offset, timestamp)
        return
    _set_limits(log, timestamp)


def _set_limits(log: AppendableLog, timestamp: int) -> None:
    segment, config = log.active, log.config
    entries = min(
        config.segment_index_bytes // offset_index.ENTRY_SIZE - len(segment.offsets),
        config.segment_index_bytes // time_index.ENTRY_SIZE - 1 - len(segment.times),
    )
    # An entry stands for more bytes than this, so no index is full before: then it is looked at again. By the interval
    # that the segment was begun with.
    room = max(entries, 0) * segment.around.index_interval_bytes
    log.roll_size = min(config.segment_bytes, log.staged_end + room)
    log.roll_offset = min(segment.base_offset + INT32_MAX, OFFSET_MAX)
    begun = segment.first_timestamp() if segment.size else timestamp
    log.roll_timestamp = begun + config.roll_ms - _jitter_ms(log) if begun >= 0 else NEVER


def _jitter_ms(log: AppendableLog) -> int:
    """The same for the same segment at each start, and different for others."""
    bound = min(log.config.segment_jitter_ms, log.config.roll_ms)
    return crc32(f"{log.tp}:{log.active.base_offset}".encode()) % bound if bound > 0 else 0


def is_old(log: AppendableLog, timestamp: int) -> bool:
    """Whether a batch of this time is too late for the active segment."""
    if not log.active.size:
        return timestamp > log.roll_timestamp
    begun = log.active.first_timestamp()
    return begun >= 0 and timestamp - begun > log.config.roll_ms - _jitter_ms(log)


def index_is_full(log: AppendableLog) -> bool:
    bytes_max = log.config.segment_index_bytes
    return (
        len(log.active.offsets) >= bytes_max // offset_index.ENTRY_SIZE
        or len(log.active.times) >= bytes_max // time_index.ENTRY_SIZE - 1
    )


def roll(log: AppendableLog, base_offset: int) -> None:
    """Seals the active segment and goes on in a new one from `base_offset` on."""
    assert log.staged_end == log.active.size, "what is staged belongs to the old segment"
    assert base_offset >= log.end_offset
    old = log.active
    with log.telling():
        if old.size == 0:
            _replace_empty(log, base_offset)
            return
        if len(log.segments) == 1 and log.names_changed:
            # A power cut must not leave the second segment without the first: no hole would show that one is missing.
            log.around.files.opening(lambda: log.around.disk.sync_directory(log.directory))
        old.seal()
        try:
            log.take_snapshot()
            new = create_segment(log.around, base_offset)
        except BaseException:
            old.unseal()
            raise
    log.unsynced_paths.extend(index_paths(old))
    if not old.is_clean:
        log.unsynced.append(old)
    log.places.add(new)
    _entered(log)


def _replace_empty(log: AppendableLog, base_offset: int) -> None:
    """Nothing was written to the active segment: it only gets another name."""
    old = log.active
    if old.base_offset == base_offset:
        return
    new = create_segment(log.around, base_offset)
    old.remove()
    log.places.replace([*log.segments[:-1], new])
    _entered(log)
    log.around.disk.sync_directory(log.directory)


def _entered(log: AppendableLog) -> None:
    log.names_changed = log.touched = True
    log.staged_end = 0
    log.roll_size = ALWAYS


def roll_due(log: AppendableLog, now_ms: int) -> bool:
    """Whether time alone asks for a new segment: by the first record's time, or the file's where it has none."""
    segment = log.active
    if segment.size == 0:
        return False
    begun = segment.first_timestamp()
    if begun < 0:
        begun = log.around.disk.modified_ms(segment.path())
    return now_ms - begun > log.config.roll_ms - _jitter_ms(log)
