"""Appending what a leader sent: batches that carry their offsets and leader epochs already.

They are stored byte for byte. The checksum is looked at once more, since the network lies between; sequences are not
refused, since the leader has done that. A last batch that the leader's answer cut is left for the next fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model import ErrorCode
from ottla.records.batch import HEADER, HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, BatchHeader, check_crc
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import AppendResult
from ottla.storage.log.batch_walk import header_fault
from ottla.storage.log.markers import apply_written
from ottla.storage.log.rolling import before_batch

if TYPE_CHECKING:
    from ottla.storage.log.staging import Staging


def stage_replica(staging: Staging, records: memoryview, now_ms: int, epoch_max: int | None) -> AppendResult:
    first, at, size = staging.next_offset, 0, len(records)
    while size - at >= HEADER_SIZE:
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
        ):
            before_batch(staging, header.size, header.base_offset, header.last_offset, header.max_timestamp)
        if header.producer_id >= 0:
            aborted = apply_written(staging.producer_memory.states, header, batch, now_ms)
            if aborted is not None:
                staging.add_aborted(aborted)
        staging.add_staged(batch, header.base_offset, header.last_offset, header.max_timestamp, header.leader_epoch)
        at += header.size
    return AppendResult(first, staging.next_offset - 1, -1, False, staging.places.start_offset)


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
