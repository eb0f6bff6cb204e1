"""The batches that a snapshot of producers does not hold, found again in the log before it.

A snapshot has the last batch of each producer, and a client may send its last five again: after a start, too, when it
never heard the answers. Without the other four a repetition would look like a gap, which a client can only mend by
beginning anew, and so by writing records twice. They lie close before the snapshot, so that is where a few headers are
read, from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from ottla.records.batch import BatchHeader
from ottla.storage.errors import BadBatch
from ottla.storage.log.batch_walk import walk
from ottla.storage.log.producers.producer_state import BATCHES_KEPT, ProducerStates, WrittenBatch
from ottla.storage.log.segment import Segment

#: Headers that are read: five batches of fifty producers that write at the same time, and half a millisecond.
HEADERS_MAX: Final = 256


def recall(producers: ProducerStates, segments: Sequence[Segment], offset: int) -> None:
    """Completes what was restored from a snapshot at `offset`; nothing is written behind it yet."""
    wanted = producers.incomplete()
    found: dict[int, list[WrittenBatch]] = {producer_id: [] for producer_id in wanted}
    left = HEADERS_MAX
    try:
        for header in _backwards(segments, offset):
            if not wanted or left == 0:
                break
            left -= 1
            producer_id = header.producer_id
            if producer_id not in wanted or header.is_control:
                continue
            batches = found[producer_id]
            if header.producer_epoch != wanted[producer_id]:
                del wanted[producer_id]
                continue
            batches.append(
                WrittenBatch(header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
            )
            if len(batches) == BATCHES_KEPT or header.base_sequence == 0:
                del wanted[producer_id]
    except BadBatch:
        # Damage that nobody has asked about yet: a reader there gets the fault. What was found until here is true.
        pass
    for producer_id, batches in found.items():
        producers.complete(producer_id, batches[::-1])


def _backwards(segments: Sequence[Segment], offset: int) -> Iterator[BatchHeader]:
    """Headers of the batches below `offset`, the last first: from one index entry to the next they are read forward."""
    for segment in reversed(segments):
        if segment.base_offset >= offset or segment.size == 0:
            continue
        places = [0, *(position for position in segment.offsets.positions if position > 0), segment.size]
        for start, end in reversed(list(pairwise(places))):
            headers = [header for _, header in walk(segment.file, start, end)]
            yield from (header for header in reversed(headers) if header.base_offset < offset)
