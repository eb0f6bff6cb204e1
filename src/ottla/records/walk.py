"""A batch's records one after the other, for a verdict or a single offset: nothing is kept of them.

A batch of a few kilobytes can hold millions of records. `scan_batch`, whose columns take 88 bytes for each, is for
callers that want all of them; a broker that looks into its clients' batches walks, and in its loop only as far as an
allowance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.records import varint
from ottla.records.batch import HEADER_SIZE, INT32_MAX, BatchHeader, Readable, parse_header
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch, DecompressionTooLarge
from ottla.records.record import batch_payload

#: Timestamp, offset, and whether there is a key.
Seen = tuple[int, int, bool]

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_TOO_LONG: Final = "an offset or a timestamp of the batch exceeds 64 bits"
#: More headers than any payload holds.
_ANY_NUMBER: Final = 2**63


class WalkAllowance(NamedTuple):
    """How much of one batch may be looked at in this place."""

    #: Headers count as records.
    records: int
    #: Decompressed.
    bytes: int


class WalkTooLong(Exception):
    """The batch has more in it than may be looked at here: a judgement of the place, not of the batch."""


def unpacked(
    buf: Readable,
    pos: int,
    *,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
    within: WalkAllowance | None = None,
    check_crcs: bool = True,
) -> tuple[BatchHeader, bytes]:
    """As `batch_payload`; raises WalkTooLong where that takes more than the allowance.

    So does a batch that is longer than that before it is unfolded: a block of empty streams unfolds to nothing.
    """
    if within is None:
        return batch_payload(buf, pos, bytes_max, check_crcs=check_crcs)
    header = parse_header(buf, pos)
    if header.count > within.records or header.size - HEADER_SIZE > within.bytes:
        raise WalkTooLong
    try:
        return batch_payload(buf, pos, min(bytes_max, within.bytes), check_crcs=check_crcs)
    except DecompressionTooLarge:
        if bytes_max <= within.bytes:
            raise
        raise WalkTooLong from None


def walk_records(header: BatchHeader, payload: bytes, within: WalkAllowance | None = None) -> Iterator[Seen]:
    """Each record of a batch as `batch_payload` gives it; raises CorruptBatch where they do not fill the payload."""
    try:
        yield from _walk(header, payload, _ANY_NUMBER if within is None else within.records)
    except IndexError:
        raise CorruptBatch("a record goes beyond the end of its batch") from None


def _walk(header: BatchHeader, data: bytes, headers_max: int) -> Iterator[Seen]:
    """The loop of `scan_batch` without its columns."""
    zigzag, read_folded = varint.ZIGZAG, varint.read_folded
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
    log_append_time, timestamp = header.is_log_append_time, header.max_timestamp
    least, most = _LEAST, _MOST
    if base_offset > most - INT32_MAX:
        raise CorruptBatch(_TOO_LONG)
    pos = 0
    for _ in range(count):
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
        else:
            delta, pos = varint.read_varlong(data, pos + 1)
        if not log_append_time:
            timestamp = base_timestamp + delta
            if not least <= timestamp <= most:
                raise CorruptBatch(_TOO_LONG)
        if (delta := data[pos]) < 128:
            delta = zigzag[delta]
            pos += 1
        else:
            delta, pos = varint.read_varint(data, pos)
        offset = base_offset + delta
        if (length := data[pos]) < 128:
            pos += 1
        else:
            length, pos = read_folded(data, pos)
        has_key = not length & 1
        if has_key:
            pos += length >> 1
        if (length := data[pos]) < 128:
            pos += 1
        else:
            length, pos = read_folded(data, pos)
        if not length & 1:
            pos += length >> 1
        if data[pos]:
            number, pos = varint.read_varint(data, pos)
            headers_max -= number
            if headers_max < 0 <= number <= end - pos:
                raise WalkTooLong
            pos = _behind_headers(data, pos, end, number)
        else:
            pos += 1
        if pos != end or size & 1:
            raise CorruptBatch("a record does not end where its length says")
        yield timestamp, offset, has_key
    if pos != len(data):
        raise CorruptBatch(f"{len(data) - pos} bytes follow the last of {count} records")


def _behind_headers(data: bytes, pos: int, end: int, count: int) -> int:
    """Where the headers of a record end; `decode_headers` without its objects."""
    if not 0 <= count <= end - pos:
        raise CorruptBatch(f"a record of {end - pos} remaining bytes cannot have {count} headers")
    read_folded = varint.read_folded
    for _ in range(count):
        length, pos = read_folded(data, pos)
        pos += length >> 1
        if length & 1 or pos > end:
            raise CorruptBatch("a header's key goes beyond its record")
        length, pos = read_folded(data, pos)
        if not length & 1:
            pos += length >> 1
    if pos > end:
        raise CorruptBatch("a header goes beyond its record")
    return pos


def find_time(
    raw: Readable, timestamp: int, start_offset: int, *, exactly: bool = False, within: WalkAllowance | None = None
) -> tuple[int, int] | None:
    """Timestamp and offset of the batch's first record, from `start_offset` on, with at least that timestamp.

    `exactly`: with just that timestamp.
    """
    header, payload = unpacked(raw, 0, within=within)
    for each, offset, _ in walk_records(header, payload, within):
        if each >= timestamp and offset >= start_offset and (each == timestamp or not exactly):
            return each, offset
    return None


def find_latest(raw: Readable, start_offset: int, *, within: WalkAllowance | None = None) -> tuple[int, int] | None:
    """Timestamp and offset of the first record with the largest timestamp, of the batch's records from an offset on."""
    header, payload = unpacked(raw, 0, within=within)
    best: tuple[int, int] | None = None
    for timestamp, offset, _ in walk_records(header, payload, within):
        if offset >= start_offset and timestamp >= 0 and (best is None or timestamp > best[0]):
            best = timestamp, offset
    return best
