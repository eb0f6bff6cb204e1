"""Batches under another codec and with records left out; the cleaner's are Kafka's byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.generated_records import NOW, batches, codecs
from tests.records.golden_batches import ask_kafka

from ottla.records.batch import LOG_APPEND_TIME, check_crc, parse_header, validate_header
from ottla.records.compression import NONE
from ottla.records.control import ControlType, control_batch
from ottla.records.errors import CorruptBatch, UnsupportedCodec
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.records.rewrite import empty_batch, filter_batch, recompress, recompress_payload
from ottla.records.scan import scan_batch


@given(batches(), codecs, st.binary(max_size=3))
def test_recompress_changes_the_codec_and_nothing_else(raw: bytes, codec: int, before: bytes) -> None:
    ours = recompress(before + raw, len(before), codec)
    assert decode_batch(ours) == decode_batch(raw)
    header = parse_header(ours)
    assert header.compression == codec
    old = parse_header(raw)
    blank = {"length": 0, "crc": 0, "attributes": 0}
    assert header._replace(**blank) == old._replace(**blank)
    assert header.attributes & ~7 == old.attributes & ~7
    columns = scan_batch(raw)
    assert recompress_payload(columns.header, bytes(columns.payload), codec) == ours


def test_recompress_checks_codec_and_level() -> None:
    raw = encode_batch([Record(0, NOW, None, bytes(5000))])
    assert len(recompress(raw, 0, 1, 9)) < len(raw)
    with pytest.raises(UnsupportedCodec):
        recompress(raw, 0, 6)
    with pytest.raises(ValueError, match="level"):
        recompress(raw, 0, 1, 10)
    with pytest.raises(CorruptBatch):
        recompress(raw[:-1] + b"\x01", 0, 1)


@given(batches(), st.data())
def test_filter_keeps_the_records_and_the_ends(raw: bytes, data: st.DataObject) -> None:
    records = decode_batch(raw)
    keep = data.draw(st.lists(st.sampled_from(range(len(records))), min_size=1, unique=True).map(sorted))
    horizon = data.draw(st.none() | st.integers(0, 2**61))
    ours = filter_batch(scan_batch(raw), keep, delete_horizon_ms=horizon)
    assert decode_batch(ours) == [records[index] for index in keep]
    old, new = parse_header(raw), parse_header(ours)
    validate_header(new)
    assert (new.base_offset, new.last_offset, new.compression) == (old.base_offset, old.last_offset, old.compression)
    assert new[9:12] == old[9:12]
    assert new.delete_horizon_ms == horizon
    again = filter_batch(scan_batch(ours), range(len(keep)))
    assert again == ours


@given(batches())
def test_emptied_batch_keeps_producer_and_offsets(raw: bytes) -> None:
    old = parse_header(raw)
    ours = empty_batch(old)
    header = parse_header(ours)
    assert decode_batch(ours) == []
    assert check_crc(ours, 0, 61)
    assert (header.count, header.compression, header.base_timestamp) == (0, NONE, -1)
    assert header[8:12] == old[8:12]
    assert (header.base_offset, header.last_offset) == (old.base_offset, old.last_offset)


def cleaned() -> dict[str, tuple[bytes, list[int]]]:
    """Batches, and the places in them of the records that stay."""
    records = [
        Record(50 + i, NOW + 100 * i, b"k%d" % (i % 3), b"v" * 30 * i, (("h", b"x"),) * (i % 2)) for i in range(6)
    ]
    fields: dict[str, Any] = {
        "base_offset": 50,
        "producer_id": 9,
        "producer_epoch": 1,
        "base_sequence": 4,
        "leader_epoch": 3,
    }
    plain = encode_batch(records, **fields)
    marker = control_batch(ControlType.COMMIT, timestamp=NOW, producer_id=9, producer_epoch=1, coordinator_epoch=2)
    tombstones = encode_batch([r._replace(value=None) for r in records], **fields)
    return {
        "first goes": (plain, [1, 2, 5]),
        "last goes": (plain, [0, 1]),
        "all stay": (plain, list(range(6))),
        "all go": (plain, []),
        "all go, gzip": (encode_batch(records, compression=1, transactional=True, **fields), []),
        "append time": (encode_batch(records, timestamp_type=LOG_APPEND_TIME, **fields), [2, 3]),
        "tombstones": (tombstones, [0, 4]),
        "marker": (marker, [0]),
        "horizon set before": (filter_batch(scan_batch(tombstones), [0, 2, 4], delete_horizon_ms=NOW + 777), [0, 2]),
    }


@pytest.mark.java
def test_cleaned_batches_are_kafkas(kafka_jars: Path) -> None:
    retention_ms = 5000
    lines, ours = [], []
    for raw, keep in cleaned().values():
        columns = scan_batch(raw)
        lines.append(f"{NOW} {retention_ms} {','.join(str(columns.offsets[i]) for i in keep) or '-'} {raw.hex()}")
        # The cleaner's own rule: the first time that it meets tombstones or markers, it gives them their horizon.
        header = columns.header
        fresh = header.delete_horizon_ms is None
        dying = header.is_control or any(columns.value_length[index] < 0 for index in keep)
        horizon = NOW + retention_ms if fresh and dying and keep else None
        if not keep:
            ours.append(empty_batch(header).hex())
        elif len(keep) == header.count and horizon is None:
            ours.append(raw.hex())
        else:
            ours.append(filter_batch(columns, keep, delete_horizon_ms=horizon).hex())
    kafkas = ask_kafka(kafka_jars, "filter", lines)
    assert dict(zip(cleaned(), ours, strict=True)) == dict(zip(cleaned(), kafkas, strict=True))
