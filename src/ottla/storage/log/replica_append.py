"""Appending what a leader sent: batches that carry their offsets and leader epochs already.

They are stored byte for byte. The checksum is looked at once more, since the network lies between; sequences are not
refused, since the leader has done that. A last batch that the leader's answer cut is left for the next fetch.

Nearly all are of the leader epoch of the one before them, of no transaction, and fit into the segment. Those are walked
through in compiled code where there is any, and stand in one buffer as they came; all others are looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.model import ErrorCode
from ottla.native import compiled_followed
from ottla.records.batch import HEADER, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, BatchHeader, check_crc
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import AppendResult, Origin
from ottla.storage.log.batch_walk import header_fault
from ottla.storage.log.markers import apply_written
from ottla.storage.log.rolling import before_batch

if TYPE_CHECKING:
    from ottla.storage.log.staging import Staging


#: `walk` of `native/followed.c`.
Walk = Callable[
    [memoryview, int, int, int, int, int], tuple[int, list[tuple[int, int, int, int]], list[tuple[int, int, int, int]]]
]
_COMPILED: Final = compiled_followed()
COMPILED_WALK: Final[Walk | None] = None if _COMPILED is None else _COMPILED.walk


def stage_replica(
    staging: Staging, records: memoryview, now_ms: int, epoch_max: int | None, walk: Walk | None = COMPILED_WALK
) -> AppendResult:
    first, at, size = staging.next_offset, 0, len(records)
    while size - at >= HEADER_SIZE:
        if walk is not None and (taken := _stage_usual(staging, records[at:], now_ms, epoch_max, walk)):
            at += taken
            continue
        header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(records, at))
        if header.length >= LENGTH_MIN and at + header.length + LOG_OVERHEAD > size:
            break
        _check(staging, records, at, header)
        if epoch_max is not None and header.leader_epoch > epoch_max:
            raise AppendRefused(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"a batch for {staging.places.tp} is of leader epoch {header.leader_epoch}, and this broker follows "
                f"in {epoch_max}",
            )
        batch = records[at : at + header.size]
        if (
            staging.staged_end + header.size > staging.roll_size
            or header.max_timestamp > staging.roll_timestamp
            or header.last_offset > staging.roll_offset
            or header.base_offset < staging.places.active.base_offset
        ):
            before_batch(staging, header.size, header.base_offset, header.last_offset, header.max_timestamp)
        if header.producer_id >= 0:
            aborted = apply_written(staging.producer_memory.states, header, batch, now_ms)
            if aborted is not None:
                staging.add_aborted(aborted)
        staging.add_staged(batch, header.base_offset, header.last_offset, header.max_timestamp, header.leader_epoch)
        at += header.size
    return AppendResult(first, staging.next_offset - 1, -1, False, staging.places.start_offset)


def spanning(records: memoryview, offset: int) -> BatchHeader | None:
    """The first batch, where it is whole and sound, begins before `offset` and ends behind it: the records before
    `offset` were deleted, and nothing cuts a batch."""
    if len(records) < HEADER_SIZE:
        return None
    header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(records))
    if not 0 <= header.base_offset < offset <= header.last_offset:
        return None
    is_sound = header_fault(header, len(records)) is None and check_crc(records, 0, header.size)
    return header if is_sound else None


def _stage_usual(staging: Staging, records: memoryview, now_ms: int, epoch_max: int | None, walk: Walk) -> int:
    """Takes the usual batches that come first; how many bytes those are."""
    epoch = staging.leader_epoch
    if epoch < 0 or (epoch_max is not None and epoch > epoch_max):
        return 0
    if staging.next_offset < staging.places.active.base_offset:
        return 0
    room = staging.roll_size - staging.staged_end
    taken, batches, of_producers = walk(
        records, staging.next_offset, epoch, room, staging.roll_offset, staging.roll_timestamp
    )
    if of_producers:
        producers = staging.producer_memory.states
        for number, producer_id, producer_epoch, sequence in of_producers:
            _, first, last, timestamp = batches[number]
            producers.stage(
                *(producer_id, producer_epoch, sequence, last - first, first, timestamp, False, now_ms),
                Origin.REPLICATION,
            )
    if taken:
        staging.add_run(records[:taken], batches)
    return taken


def _check(staging: Staging, records: memoryview, at: int, header: BatchHeader) -> None:
    fault = header_fault(header, len(records) - at)
    if fault is None and header.base_offset < staging.next_offset:
        fault = f"its offset {header.base_offset} lies below {staging.next_offset}, where the log ends"
    if fault is None and not check_crc(records, at, header.size):
        fault = "its checksum differs"
    if fault is not None:
        raise AppendRefused(
            ErrorCode.CORRUPT_MESSAGE, f"a batch for {staging.places.tp} from the leader is not sound: {fault}"
        )
