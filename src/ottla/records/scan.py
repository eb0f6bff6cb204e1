"""A batch as columns: where each record's key and value lie, without an object for any record.

For readers that ask for offsets and keys of millions of records and keep few of them: Spark's source, which is to
come. The broker does not use it; its tests hold the walks that look at less (`keys`, `walk`, `rebuild`) to it. The
columns are arrays of 64-bit integers, which numpy, Arrow or struct read without a loop; positions count in `payload`,
which holds the batch's records decompressed.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from ottla.records import varint
from ottla.records.batch import BatchHeader, Readable
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch
from ottla.records.record import Headers, batch_payload, decode_headers


class BatchColumns(NamedTuple):
    """One entry a record in each array. A length of -1 stands for null; its start then means nothing."""

    header: BatchHeader
    payload: memoryview
    offsets: array[int]
    timestamps: array[int]
    key_start: array[int]
    key_length: array[int]
    value_start: array[int]
    value_length: array[int]
    #: Where the first header begins, behind their number; it means nothing where there are none.
    header_start: array[int]
    header_count: array[int]
    #: Where a record begins (at its own length) and, in the last entry, where the last one ends: one entry more.
    record_start: array[int]

    def key(self, index: int) -> bytes | None:
        length = self.key_length[index]
        start = self.key_start[index]
        return None if length < 0 else bytes(self.payload[start : start + length])

    def value(self, index: int) -> bytes | None:
        length = self.value_length[index]
        start = self.value_start[index]
        return None if length < 0 else bytes(self.payload[start : start + length])

    def headers(self, index: int) -> Headers:
        count = self.header_count[index]
        if not count:
            return ()
        end = self.record_start[index + 1]
        return decode_headers(bytes(self.payload[self.header_start[index] : end]), 0, end, count)[0]


def scan_batch(
    buf: Readable, pos: int = 0, *, max_decompressed: int = DECOMPRESSED_BYTES_MAX, check_crcs: bool = True
) -> BatchColumns:
    """Columns of the batch at `pos`; raises a RecordError on anything that is not one whole, sound batch."""
    header, payload = batch_payload(buf, pos, max_decompressed, check_crcs=check_crcs)
    zeros = bytes(8 * header.count)  # bounded: batch_payload has compared the count with the payload
    nulls = array("q", [-1]) * header.count
    columns = BatchColumns(
        header,
        memoryview(payload),
        *(array("q", zeros), array("q", zeros)),
        *(array("q", zeros), nulls[:]),
        *(array("q", zeros), nulls),
        *(array("q", zeros), array("q", zeros)),
        array("q", bytes(8 * header.count + 8)),
    )
    try:
        end = _scan_records(payload, columns)
    except IndexError:
        raise CorruptBatch("a record goes beyond the end of its batch") from None
    except OverflowError:
        raise CorruptBatch("an offset or a timestamp of the batch exceeds 64 bits") from None
    if end != len(payload):
        raise CorruptBatch(f"{len(payload) - end} bytes follow the last of {header.count} records")
    return columns


def _scan_records(data: bytes, columns: BatchColumns) -> int:
    """Fills the columns and returns where the last record ends: the loop of `decode_batch` without its objects."""
    header, _, offsets, timestamps, key_start, key_length, value_start, value_length, _, _, starts = columns
    zigzag, read_folded = varint.ZIGZAG, varint.read_folded
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    log_append_time, timestamp = header.is_log_append_time, header.max_timestamp
    pos = 0
    for index in range(header.count):
        starts[index] = pos
        if (size := data[pos]) < 128:
            pos += 1
        elif (byte := data[pos + 1]) < 128:
            size += (byte << 7) - 128
            pos += 2
        else:
            size, pos = read_folded(data, pos)
        end = pos + (size >> 1)
        if (delta := data[pos + 1]) < 128:  # behind the attributes
            delta = zigzag[delta]
            pos += 2
        elif (byte := data[pos + 2]) < 128 and not delta & 1:
            delta = (delta + (byte << 7) - 128) >> 1
            pos += 3
        else:
            delta, pos = varint.read_varlong(data, pos + 1)
        timestamps[index] = timestamp if log_append_time else base_timestamp + delta
        if (delta := data[pos]) < 128:
            delta = zigzag[delta]
            pos += 1
        elif (byte := data[pos + 1]) < 128 and not delta & 1:
            delta = (delta + (byte << 7) - 128) >> 1
            pos += 2
        else:
            delta, pos = varint.read_varint(data, pos)
        offsets[index] = base_offset + delta
        if (length := data[pos]) < 128:
            pos += 1
        else:
            length, pos = read_folded(data, pos)
        if not length & 1:
            key_start[index] = pos
            key_length[index] = length = length >> 1
            pos += length
        if (length := data[pos]) < 128:
            pos += 1
        elif (byte := data[pos + 1]) < 128:
            length += (byte << 7) - 128
            pos += 2
        else:
            length, pos = read_folded(data, pos)
        if not length & 1:
            value_start[index] = pos
            value_length[index] = length = length >> 1
            pos += length
        if data[pos]:
            pos = _scan_headers(data, pos, end, columns, index)
        else:
            pos += 1
        if pos != end or size & 1:
            raise CorruptBatch("a record does not end where its length says")
    starts[header.count] = pos
    return pos


def _scan_headers(data: bytes, pos: int, end: int, columns: BatchColumns, index: int) -> int:
    count, pos = varint.read_varint(data, pos)
    columns.header_start[index] = pos
    columns.header_count[index] = max(0, count)
    return decode_headers(data, pos, end, count)[1]
