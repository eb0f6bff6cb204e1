"""The records of an answer in pieces that are appended in one turn of the loop each.

Nearly always there is one piece, and so one write: a follower asks for a megabyte of a partition. It is cut where there
are very many batches, each of which is looked at, or where the topic allows for larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.records.batch import HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, batch_size

#: A batch takes four microseconds: so many take two milliseconds.
BATCHES_MAX: Final = 512
#: Checksum and write of so much take about as long.
BYTES_MAX: Final = 4 * 1024 * 1024
#: In fewer there are no more than BATCHES_MAX batches.
_UNCOUNTED: Final = BATCHES_MAX * HEADER_SIZE


def pieces(records: memoryview) -> Iterator[memoryview]:
    """Whole batches in each piece, but for what the last one has at its end, whatever that is."""
    size = len(records)
    if size <= _UNCOUNTED:
        yield records
        return
    begin = at = batches = 0
    while size - at >= HEADER_SIZE:
        length = batch_size(records, at)
        if length < LENGTH_MIN + LOG_OVERHEAD or at + length > size:
            break
        if batches and (batches == BATCHES_MAX or at + length - begin > BYTES_MAX):
            yield records[begin:at]
            begin, batches = at, 0
        at += length
        batches += 1
    yield records[begin:]
