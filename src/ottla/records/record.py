"""Records: from bytes to objects and back, a batch at a time.

A record is its length, then attributes (none are defined), the distances of its time and offset from the batch's, key,
value and headers, each behind its length. All numbers are varints, so that a small record costs seven bytes beside its
data. Clients and tools live here; the broker looks at headers only, and what needs no objects uses `scan`.

Where compiled code is there, it decodes what is sound; everything else it leaves to the loop here, which judges it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeVar

from ottla.native import compiled_records
from ottla.records import varint
from ottla.records.batch import (
    CREATE_TIME,
    HEADER_SIZE,
    INT32_MAX,
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Readable,
    check_crc,
    parse_header,
    validate_header,
)
from ottla.records.builder import BatchBuilder, Headers, attribute_bits, build_batch, encode_record
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, NONE, UNFOLDS_MAX, decompress
from ottla.records.errors import CorruptBatch

__all__ = [
    "BatchBuilder",
    "Headers",
    "Record",
    "batch_payload",
    "decode_batch",
    "decode_headers",
    "decode_placed",
    "encode_batch",
]

#: Length, attributes, two distances, two lengths and the number of headers, one byte each.
RECORD_BYTES_MIN: Final = 7

_compiled: Final = compiled_records()

#: A record with the place it comes from; see `decode_placed`.
Placed = TypeVar("Placed", bound=tuple[Any, ...])


def most_records(codec: int, size: int) -> int:
    """So many records and no more are in a block of `size` bytes, whatever a header claims."""
    return size * UNFOLDS_MAX[codec] // RECORD_BYTES_MIN


class Record(NamedTuple):
    """One record as a consumer sees it. A tuple, because making one is a third of the cost of decoding it."""

    offset: int
    #: Milliseconds since 1970: the producer's, or the broker's where the topic says LogAppendTime; -1 if none.
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def batch_payload(
    buf: Readable, pos: int, max_decompressed: int, *, check_crcs: bool = True
) -> tuple[BatchHeader, bytes]:
    """The checked header of the batch at `pos` and its records, decompressed."""
    header = parse_header(buf, pos)
    validate_header(header)
    end = pos + header.size
    if end > len(buf):
        raise CorruptBatch(f"the batch takes {header.size} bytes, but {len(buf) - pos} are left")
    if check_crcs and not check_crc(buf, pos, header.size):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not match")
    with memoryview(buf) as view, view[pos + HEADER_SIZE : end] as records:
        if header.count == 0 and not records:
            return header, b""  # what compaction leaves of an emptied batch keeps its codec's bits
        # A copy: byte for byte, bytes are read twice as fast as a view, and the records' slices are then final.
        payload = bytes(decompress(header.compression, records, max_decompressed))
    if header.count * RECORD_BYTES_MIN > len(payload):
        raise CorruptBatch(f"{header.count} records cannot lie in {len(payload)} bytes")
    return header, payload


def decode_batch(
    buf: Readable, pos: int = 0, *, max_decompressed: int = DECOMPRESSED_BYTES_MAX, check_crcs: bool = True
) -> list[Record]:
    """All records of the batch at `pos`; raises a RecordError on anything that is not one whole, sound batch."""
    header, payload = batch_payload(buf, pos, max_decompressed, check_crcs=check_crcs)
    if _compiled is not None:
        timestamp = header.max_timestamp if header.is_log_append_time else None
        records: list[Record] | None = _compiled.decode(
            Record, payload, header.count, header.base_offset, header.base_timestamp, timestamp, None
        )
        if records is not None:
            return records
    return _judged(payload, header)


def decode_placed(
    kind: type[Placed], topic: str, partition: int, buf: Readable, pos: int, *, check_crcs: bool = True
) -> list[Placed]:
    """As `decode_batch`, for a kind of tuple with the fields of the client's `ConsumerRecord`, made in one go."""
    header, payload = batch_payload(buf, pos, DECOMPRESSED_BYTES_MAX, check_crcs=check_crcs)
    of_log, epoch = header.is_log_append_time, header.leader_epoch
    timestamp_type = LOG_APPEND_TIME if of_log else CREATE_TIME
    if _compiled is not None:
        records: list[Placed] | None = _compiled.decode(
            kind,
            payload,
            header.count,
            header.base_offset,
            header.base_timestamp,
            header.max_timestamp if of_log else None,
            (topic, partition, timestamp_type, epoch),
        )
        if records is not None:
            return records
    new = tuple.__new__
    return [
        new(kind, (topic, partition, offset, timestamp, timestamp_type, key, value, headers, epoch))
        for offset, timestamp, key, value, headers in _judged(payload, header)
    ]


def _judged(payload: bytes, header: BatchHeader) -> list[Record]:
    """The records of a payload, or what is wrong with it."""
    try:
        records, end = _decode_records(payload, header)
    except IndexError:
        raise CorruptBatch("a record goes beyond the end of its batch") from None
    if end != len(payload):
        raise CorruptBatch(f"{len(payload) - end} bytes follow the last of {header.count} records")
    return records


def _decode_records(data: bytes, header: BatchHeader) -> tuple[list[Record], int]:
    """The loop of `_judged`: short varints are read in place, since a call costs a tenth of a record.

    Reading behind the end raises IndexError; a field that is too long makes the record end elsewhere than it says.
    """
    records: list[Record] = []
    append, new, record_type = records.append, tuple.__new__, Record
    zigzag, read_folded, no_headers = varint.ZIGZAG, varint.read_folded, ()
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    log_append_time, timestamp = header.is_log_append_time, header.max_timestamp
    pos = 0
    for _ in range(header.count):
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
        if not log_append_time:
            timestamp = base_timestamp + delta
        if (delta := data[pos]) < 128:
            delta = zigzag[delta]
            pos += 1
        elif (byte := data[pos + 1]) < 128 and not delta & 1:
            delta = (delta + (byte << 7) - 128) >> 1
            pos += 2
        else:
            delta, pos = varint.read_varint(data, pos)
        if (length := data[pos]) < 128:
            pos += 1
        else:
            length, pos = read_folded(data, pos)
        key = (
            None if length & 1 else data[pos : (pos := pos + (length >> 1))]
        )  # Java takes every negative length for null
        if (length := data[pos]) < 128:
            pos += 1
        elif (byte := data[pos + 1]) < 128:
            length += (byte << 7) - 128
            pos += 2
        else:
            length, pos = read_folded(data, pos)
        value = None if length & 1 else data[pos : (pos := pos + (length >> 1))]
        if data[pos]:
            length, pos = varint.read_varint(data, pos)
            headers, pos = decode_headers(data, pos, end, length)
        else:
            headers = no_headers
            pos += 1
        if pos != end or size & 1:
            raise CorruptBatch("a record does not end where its length says")
        append(new(record_type, (base_offset + delta, timestamp, key, value, headers)))
    return records, pos


def decode_headers(data: bytes, pos: int, end: int, count: int) -> tuple[Headers, int]:
    """The `count` headers of a record that ends at `end`, and where they end."""
    if not 0 <= count <= end - pos:
        raise CorruptBatch(f"a record of {end - pos} remaining bytes cannot have {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = varint.read_folded(data, pos)
        start = pos
        pos += length >> 1
        if length & 1 or pos > end:
            raise CorruptBatch("a header's key goes beyond its record")
        # Java replaces what is not UTF-8 too: one bad header must not make a whole batch unreadable.
        name = data[start:pos].decode("utf-8", "replace")
        length, pos = varint.read_folded(data, pos)
        if length & 1:
            headers.append((name, None))
        else:
            start = pos
            pos += length >> 1
            headers.append((name, data[start:pos]))
    if pos > end:
        raise CorruptBatch("a header goes beyond its record")
    return tuple(headers), pos


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: int = NONE,
    timestamp_type: int = CREATE_TIME,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """A batch of at least one record, whose offsets start at `base_offset` or above and rise, with gaps or without.

    With LOG_APPEND_TIME the batch's time is the records' latest, which a reader then gives to all of them.
    """
    parts: list[bytes] = []
    base_timestamp = max_timestamp = NO_TIMESTAMP
    last_delta = -1
    for record in records:
        if not parts:
            base_timestamp = max_timestamp = record.timestamp
        delta = record.offset - base_offset
        if not last_delta < delta <= INT32_MAX:
            raise ValueError(f"offset {record.offset} must lie above {base_offset + last_delta}, within 2**31")
        max_timestamp = max(max_timestamp, record.timestamp)
        parts.append(encode_record(delta, record.timestamp - base_timestamp, record.key, record.value, record.headers))
        last_delta = delta
    if not parts:
        raise ValueError("a batch needs at least one record")
    return build_batch(
        b"".join(parts),
        count=len(parts),
        last_offset_delta=last_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=base_offset,
        attributes=attribute_bits(compression, timestamp_type, transactional=transactional, control=control),
        level=level,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
    )
