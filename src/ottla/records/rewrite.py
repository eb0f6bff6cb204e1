"""Batches made anew from others: under another codec, or with some of their records left out.

Offsets, producer and sequence never change, so that what remains still proves which records a producer has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.records import varint
from ottla.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    NO_TIMESTAMP,
    BatchHeader,
    Readable,
)
from ottla.records.builder import build_batch
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, check_level, codec_name
from ottla.records.record import batch_payload
from ottla.records.scan import BatchColumns

_ATTRIBUTE_BITS: Final = 0x7F


def recompress(
    buf: Readable,
    pos: int,
    codec: int,
    level: int | None = None,
    *,
    max_decompressed: int = DECOMPRESSED_BYTES_MAX,
    check_crcs: bool = True,
) -> bytes:
    """The batch at `pos` under another codec. Raises RecordError. For tools; the broker has looked at the records."""
    header, payload = batch_payload(buf, pos, max_decompressed, check_crcs=check_crcs)
    return _under_codec(header, payload, codec, level)


def recompress_payload(header: BatchHeader, payload: bytes, codec: int, level: int | None = None) -> bytes:
    """As `recompress`, for a batch whose records have been looked at already."""
    return _under_codec(header, payload, codec, level)


def filter_batch(columns: BatchColumns, keep: Sequence[int], *, delete_horizon_ms: int | None = None) -> bytes:
    """The scanned batch with only the records at the places in `keep`, which rise.

    What the cleaner writes by `rebuild.with_records`, said once more from all columns: tests compare the two.

    First and last offset stay. Times count from the delete horizon (the new one, or the one that the batch had), else
    from the first record that is left. With LogAppendTime the broker's time replaces the producers' in each record.
    """
    assert keep, "what is left of a batch without records is `empty_batch`"
    header = columns.header
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    timestamps = columns.timestamps
    base_timestamp = timestamps[keep[0]] if horizon is None else horizon
    payload, starts = columns.payload, columns.record_start
    if base_timestamp == header.base_timestamp and not header.is_log_append_time:
        # Offsets and times still count from the same: the records stay as they are.
        records = b"".join(payload[starts[index] : starts[index + 1]] for index in keep)
    else:
        data = bytes(payload)
        records = b"".join(_with_time(data, starts[index], timestamps[index] - base_timestamp) for index in keep)
    attributes = header.attributes & _ATTRIBUTE_BITS
    if horizon is not None:
        attributes |= DELETE_HORIZON
    latest = header.max_timestamp if header.is_log_append_time else max(timestamps[index] for index in keep)
    changed = header._replace(
        attributes=attributes, base_timestamp=base_timestamp, max_timestamp=latest, count=len(keep)
    )
    return _with_records(changed, records)


def empty_batch(header: BatchHeader) -> bytes:
    """The header that stays when a batch has lost all its records, for as long as its producer's sequence needs it."""
    attributes = header.attributes & _ATTRIBUTE_BITS & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return _with_records(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0), b"")


def _with_time(data: bytes, pos: int, timestamp_delta: int) -> bytes:
    """The sound record at `pos` with another distance from its batch's time."""
    length, pos = varint.read_varint(data, pos)
    end = pos + length
    _, rest = varint.read_varlong(data, pos + 1)
    body = data[pos : pos + 1] + varint.encode(timestamp_delta) + data[rest:end]
    return varint.encode(len(body)) + body


def _under_codec(header: BatchHeader, payload: bytes, codec: int, level: int | None) -> bytes:
    codec_name(codec)
    if level is not None:
        check_level(codec, level)
    changed = header._replace(attributes=header.attributes & ~COMPRESSION_MASK | codec)
    return _with_records(changed, payload, level)


def _with_records(header: BatchHeader, payload: bytes, level: int | None = None) -> bytes:
    return build_batch(
        payload,
        count=header.count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        base_offset=header.base_offset,
        attributes=header.attributes,
        level=level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
    )
