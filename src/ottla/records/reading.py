"""Records of one batch, one at a time: a loader may pause between any two, however large the batch is."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.records import varint
from ottla.records.batch import BatchHeader, Readable
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch
from ottla.records.record import batch_payload

#: Offset, key and value.
StoredRecord = tuple[int, bytes | None, bytes | None]


def open_batch(buf: Readable, pos: int) -> tuple[BatchHeader, Iterator[StoredRecord]]:
    """Header and records of the batch at `pos`; the header is checked now, a record when its turn comes.

    Both raise RecordError. Times and headers are passed over: the topics of coordinators have no use for them.
    """
    header, payload = batch_payload(buf, pos, DECOMPRESSED_BYTES_MAX)
    return header, _records(header, payload)


def _records(header: BatchHeader, payload: bytes) -> Iterator[StoredRecord]:
    read_varint, read_folded = varint.read_varint, varint.read_folded
    base_offset = header.base_offset
    pos = 0
    try:
        for _ in range(header.count):
            size, pos = read_varint(payload, pos)
            end = pos + size
            if size < 0 or end > len(payload):
                raise CorruptBatch(f"a record of {size} bytes does not fit in its batch")
            # Behind the attributes is the time: ten bytes at most, of which only the last is below 128.
            pos += 1
            while payload[pos] > 0x7F:
                pos += 1
            delta, pos = read_varint(payload, pos + 1)
            length, pos = read_folded(payload, pos)
            key = None if length & 1 else payload[pos : (pos := pos + (length >> 1))]
            length, pos = read_folded(payload, pos)
            value = None if length & 1 else payload[pos : (pos := pos + (length >> 1))]
            if pos >= end:
                raise CorruptBatch("a record does not end where its length says")
            pos = end
            yield base_offset + delta, key, value
    except IndexError:
        raise CorruptBatch("a record goes beyond the end of its batch") from None
