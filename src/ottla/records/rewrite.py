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
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, NONE, check_level, codec_name
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
    """The batch at `pos` under another codec: a topic whose compression.type is not `producer`. Raises a RecordError."""
    codec_name(codec)
    if level is not None:
        check_level(codec, level)
    header, payload = batch_payload(buf, pos, max_decompressed, check_crcs=check_crcs)
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    return _batch_like(header, payload, attributes, header.count, header.base_timestamp, header.max_timestamp, level)


def filter_batch(columns: BatchColumns, keep: Sequence[int], *, delete_horizon_ms: int | None = None) -> bytes:
    """The scanned batch with only the records at the places in `keep`, which rise; what the cleaner writes.

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
    return _batch_like(header, records, attributes, len(keep), base_timestamp, latest, None)


def empty_batch(header: BatchHeader) -> bytes:
    """The header that stays when a batch has lost all its records, for as long as its producer's sequence needs it."""
    attributes = header.attributes & _ATTRIBUTE_BITS & ~(COMPRESSION_MASK | DELETE_HORIZON) | NONE
    return _batch_like(header, b"", attributes, 0, NO_TIMESTAMP, header.max_timestamp, None)


def _with_time(data: bytes, pos: int, timestamp_delta: int) -> bytes:
    """The sound record at `pos` with another distance from its batch's time."""
    length, pos = varint.read_varint(data, pos)
    end = pos + length
    _, rest = varint.read_varlong(data, pos + 1)
    body = data[pos : pos + 1] + varint.encode(timestamp_delta) + data[rest:end]
    return varint.encode(len(body)) + body


def _batch_like(
    header: BatchHeader,
    payload: bytes,
    attributes: int,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    level: int | None,
) -> bytes:
    return build_batch(
        payload,
        count=count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        base_offset=header.base_offset,
        attributes=attributes,
        level=level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
    )
