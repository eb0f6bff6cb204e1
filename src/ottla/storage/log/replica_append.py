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
    from ottla.storage.log.staging import AppendableLog


def stage_replica(log: AppendableLog, records: memoryview, now_ms: int) -> AppendResult:
    first, at, size = log.next_offset, 0, len(records)
    while size - at >= HEADER_SIZE:
        header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(records, at))
        if header.length >= LENGTH_MIN and at + header.length + LOG_OVERHEAD > size:
            break
        _check(log, records, at, header)
        batch = records[at : at + header.size]
        if (
            log.staged_end + header.size > log.roll_size
            or header.max_timestamp > log.roll_timestamp
            or header.last_offset > log.roll_offset
        ):
            before_batch(log, header.size, header.base_offset, header.last_offset, header.max_timestamp)
        if header.producer_id >= 0:
            aborted = apply_written(log.producers, header, batch, now_ms)
            if aborted is not None:
                log.staged_aborted.append(aborted)
        log.add_staged(batch, header.base_offset, header.last_offset, header.max_timestamp, header.leader_epoch)
        at += header.size
    return AppendResult(first, log.next_offset - 1, -1, False, log.start_offset)


def _check(log: AppendableLog, records: memoryview, at: int, header: BatchHeader) -> None:
    fault = header_fault(header, len(records) - at)
    if fault is None and header.base_offset < log.next_offset:
        fault = f"its offset {header.base_offset} lies below {log.next_offset}, where the log ends"
    if fault is None and not check_crc(records, at, header.size):
        fault = "its checksum differs"
    if fault is not None:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"a batch for {log.tp} from the leader is not sound: {fault}")
