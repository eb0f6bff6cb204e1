"""Holds a record of a copy against the one that it is a copy of: what others wrote, or what is lost, shows there."""

from __future__ import annotations

from typing import Final

from ottla.mirror.batches import ReadyBatch, sequence_at
from ottla.mirror.copy_world import CopyWorld
from ottla.mirror.faults import LostRecords, StrangeRecords
from ottla.mirror.pairs import OffsetPairs
from ottla.mirror.single_fetch import FoundRecord, record_at
from ottla.model import TopicPartition
from ottla.records.record import Record, decode_batch

#: Of a record's fields: behind its offset, and behind its time as well, which a target may set itself (LogAppendTime).
_BEHIND_OFFSET: Final = 1
_BEHIND_TIME: Final = 2


async def check_last(
    world: CopyWorld, tp: TopicPartition, target: TopicPartition, pairs: OffsetPairs, begin: int, end: int
) -> bool | None:
    """Looks at the last record of a copy that has those from `begin` to `end`. Raises StrangeRecords and LostRecords.

    Returns whether the target sets the times of its records; None where nothing tells.
    """
    if end <= begin or end <= pairs[0].target:
        return None  # nothing was copied yet, or nothing of it is left
    copy = await record_at(world.target, target, end - 1)
    if copy is None or copy.record.offset != end - 1:
        return None  # the cleaner has left an empty batch there
    batch = copy.batch
    if batch.producer_id != world.producer_id or batch.last_sequence != sequence_at(batch.last_offset):
        raise StrangeRecords(
            f"{target}: the batch at {batch.base_offset} was not written by this mirror, but by producer "
            f"{batch.producer_id}. A copy has one writer: delete the topic, and it is copied again"
        )
    offset = pairs.source_of(end - 1)
    assert offset is not None
    original = await record_at(world.source, tp, offset)
    # Otherwise retention or compaction has taken it.
    if original is not None and original.record.offset == offset and not _is_copy(copy, original.record):
        raise LostRecords(
            f"{target} has another record at {end - 1} than {tp} has at {offset}, from where it was copied: one of "
            "both lost records and got others. Delete the target's topic, and it is copied again"
        )
    return batch.is_log_append_time


async def check_sent(
    world: CopyWorld, tp: TopicPartition, target: TopicPartition, pairs: OffsetPairs, end: int, sent: ReadyBatch
) -> None:
    """Looks at what lies where a batch was sent, if the pairs still say that it belongs there. Raises StrangeRecords.

    Another mirror may have written there what it had at hand; and the source may have lost the records since that were
    sent, so that the last one of the copy cannot be compared with its original.
    """
    if sent.target >= end or pairs.source_of(sent.target) != sent.first_source:
        return
    copy = await record_at(world.target, target, sent.target)
    if copy is None or copy.record.offset != sent.target:
        return  # retention or compaction has taken it
    if not _is_copy(copy, decode_batch(sent.data, 0)[0]):
        raise StrangeRecords(
            f"{target} has another record at {sent.target} than was sent there, by a mirror that had at hand what {tp} "
            "has no more: what it has in its place would be missing. Delete the topic, and it is copied again"
        )


def _is_copy(copy: FoundRecord, original: Record) -> bool:
    begin_at = _BEHIND_TIME if copy.batch.is_log_append_time else _BEHIND_OFFSET
    return original[begin_at:] == copy.record[begin_at:]
