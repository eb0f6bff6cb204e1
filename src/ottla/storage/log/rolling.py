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
from ottla.storage.log.indexes import offset_index, time_index
from ottla.storage.log.opening.loading import create_segment

if TYPE_CHECKING:
    from ottla.storage.log.staging import Staging

NEVER: Final = 2**63


def before_batch(staging: Staging, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    """A limit is passed, or not set yet: rolls where that is due, and sets the limits for what follows.

    Raises AppendRefused where there are no offsets left for the batch.
    """
    if staging.waits_for is not None:
        raise StorageFault.of(staging.waits_for, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with staging.places.naming_faults():
        _before_batch(staging, size, first_offset, last_offset, timestamp)


def _before_batch(staging: Staging, size: int, first_offset: int, last_offset: int, timestamp: int) -> None:
    segment = staging.places.active
    if last_offset > OFFSET_MAX:
        raise AppendRefused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{staging.places.tp} ends at offset {first_offset}, and a record's offset is {OFFSET_MAX} at most",
        )
    if staging.places.recent is None:
        # Loads what `note_batch` goes on from, and what `stage` needs once producers' state has changed: from then on
        # nothing may fail. A new or just opened log has none of it in memory.
        segment.max_timestamp()
        _ = segment.offsets, segment.times, staging.leader_epochs.cache
        staging.places.keep_recent()
    due = staging.staged_end > 0 and (
        staging.staged_end + size > staging.config.segment_bytes or is_old(staging, timestamp) or index_is_full(staging)
    )
    if due or last_offset - segment.base_offset > INT32_MAX:
        staging.write()
        roll(staging, first_offset)
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
    """Seals the active segment and goes on in a new one from `base_offset` on."""
    places, durability = staging.places, staging.durability
    old = places.active
    assert staging.staged_end == old.size, "what is staged belongs to the old segment"
    assert base_offset >= places.end_offset
    with places.naming_faults():
        if old.size == 0:
            _replace_empty(staging, base_offset)
            return
        if len(places.segments) == 1 and durability.names_changed:
            # A power cut must not leave the second segment without the first: no hole would show that one is missing.
            places.around.files.opening(lambda: places.around.disk.sync_directory(places.directory))
        old.seal()
        try:
            staging.producer_memory.take()
            new = create_segment(places.around, base_offset)
        except BaseException:
            old.unseal()
            raise
    durability.sealed(old)
    places.add(new)
    _entered(staging)


def _replace_empty(staging: Staging, base_offset: int) -> None:
    """Nothing was written to the active segment: it only gets another name."""
    places = staging.places
    old = places.active
    if old.base_offset == base_offset:
        return
    new = create_segment(places.around, base_offset)
    old.remove()
    places.replace([*places.segments[:-1], new])
    _entered(staging)
    places.around.disk.sync_directory(places.directory)


def _entered(staging: Staging) -> None:
    staging.durability.segments_changed()
    staging.rolled()


def roll_due(staging: Staging, now_ms: int) -> bool:
    """Whether time alone asks for a new segment: by the first record's time, or the file's where it has none."""
    segment = staging.places.active
    if segment.size == 0:
        return False
    begun = segment.first_timestamp()
    if begun < 0:
        begun = staging.places.around.disk.modified_ms(segment.path())
    return now_ms - begun > staging.config.roll_ms - _jitter_ms(staging)
