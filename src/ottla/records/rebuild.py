"""A batch with some of its records left out, byte for byte as Kafka's cleaner writes it.

`rewrite.filter_batch` does the same from a scan of the whole batch. The cleaner knows where the records lie
that stay, and they are few: it reads their times and nothing of the others.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ottla.records import varint
from ottla.records.batch import DELETE_HORIZON, BatchHeader
from ottla.records.builder import build_batch
from ottla.records.errors import CorruptBatch
from ottla.records.keys import Span

_ATTRIBUTE_BITS: Final = 0x7F


def with_records(
    header: BatchHeader, payload: bytes, spans: Sequence[Span], delete_horizon_ms: int | None
) -> tuple[bytes, int]:
    """The batch with the records at `spans` only, and its largest timestamp.

    With a delete horizon (a new one, or the one that it has) times count from that, else from the first record.
    """
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    try:
        times = _read_times(payload, spans, header)
        base = times[0] if horizon is None else horizon
        if base == header.base_timestamp and not header.is_log_append_time:
            records = b"".join([payload[start:end] for start, end in spans])
        else:
            records = b"".join([_retimed(payload, span, time - base) for span, time in zip(spans, times, strict=True)])
        batch = build_batch(
            records,
            count=len(spans),
            last_offset_delta=header.last_offset_delta,
            base_timestamp=base,
            max_timestamp=(latest := max(times)),
            base_offset=header.base_offset,
            attributes=header.attributes & _ATTRIBUTE_BITS | (0 if horizon is None else DELETE_HORIZON),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            leader_epoch=header.leader_epoch,
        )
    except (IndexError, ValueError, OverflowError, struct.error):
        raise CorruptBatch("a time or a length of a record is not sound") from None
    return batch, latest


def _read_times(payload: bytes, spans: Sequence[Span], header: BatchHeader) -> list[int]:
    if header.is_log_append_time:
        return [header.max_timestamp] * len(spans)
    times: list[int] = []
    zigzag, base = varint.ZIGZAG, header.base_timestamp
    for span in spans:
        at = span[0]
        while payload[at] > 127:
            at += 1
        if (delta := payload[at + 2]) < 128:
            times.append(base + zigzag[delta])
        else:
            times.append(base + varint.read_varlong(payload, at + 2)[0])
    return times


def _retimed(payload: bytes, span: Span, delta: int) -> bytes:
    at, end = span
    while payload[at] > 127:
        at += 1
    begun = at = at + 1
    at += 1
    while payload[at] > 127:
        at += 1
    time = varint.encode(delta)
    length = varint.encode(1 + len(time) + end - at - 1)
    return b"%b%b%b%b" % (length, payload[begun : begun + 1], time, payload[at + 1 : end])
