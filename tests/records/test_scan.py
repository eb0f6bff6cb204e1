"""Columns say of each batch what its records say."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.records.generated_records import NOW, batches

from ottla.records.batch import LOG_APPEND_TIME
from ottla.records.builder import build_batch
from ottla.records.errors import CorruptBatch, DecompressionTooLarge
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.records.scan import scan_batch


@given(batches())
def test_columns_are_the_records(raw: bytes) -> None:
    columns = scan_batch(memoryview(b"#" + raw), 1)
    records = decode_batch(raw)
    assert columns.offsets.tolist() == [record.offset for record in records]
    assert columns.timestamps.tolist() == [record.timestamp for record in records]
    for index, record in enumerate(records):
        assert columns.key(index) == record.key
        assert columns.value(index) == record.value
        assert columns.headers(index) == record.headers
        assert columns.header_count[index] == len(record.headers)
        assert columns.key_length[index] == (-1 if record.key is None else len(record.key))
        assert columns.value_length[index] == (-1 if record.value is None else len(record.value))
    starts = columns.record_start.tolist()
    assert starts[0] == 0
    assert starts[-1] == len(columns.payload)
    assert starts == sorted(set(starts))


def test_an_emptied_batch_has_empty_columns() -> None:
    raw = build_batch(b"", count=0, last_offset_delta=9, base_timestamp=-1, max_timestamp=NOW)
    columns = scan_batch(raw)
    assert not columns.offsets
    assert columns.record_start.tolist() == [0]
    assert columns.header.last_offset == 9


def test_log_append_time() -> None:
    raw = encode_batch([Record(0, 5, None, None), Record(1, 9, None, None)], timestamp_type=LOG_APPEND_TIME)
    assert scan_batch(raw).timestamps.tolist() == [9, 9]


@pytest.mark.parametrize("base_offset", [0, 2**63 - 1])
def test_numbers_beyond_64_bits_are_corrupt(base_offset: int) -> None:
    far = b"\x1e\x00" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"\x02\x01\x01\x00"
    near = b"\x0c\x00\x00\x02\x01\x01\x00"
    payload = near if base_offset else far
    fields = {"count": 1, "last_offset_delta": 1, "base_timestamp": 5, "max_timestamp": 5}
    with pytest.raises(CorruptBatch):
        scan_batch(build_batch(payload, base_offset=base_offset, **fields))


def test_bounds_are_those_of_decode() -> None:
    raw = encode_batch([Record(0, NOW, None, bytes(1000))], compression=4)
    with pytest.raises(DecompressionTooLarge):
        scan_batch(raw, max_decompressed=900)
    with pytest.raises(CorruptBatch):
        scan_batch(raw[:-1])
