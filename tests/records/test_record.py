"""Records through batches and back, and against two other implementations."""

from __future__ import annotations

import struct
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
import pytest
from hypothesis import given
from kio.records.readers import read_batch as kio_read_batch
from tests.records.generated_records import NOW, codecs, record_lists
from tests.searches import examples

from ottla.records import compression, varint
from ottla.records.batch import COUNT_AT, LAST_OFFSET_DELTA_AT, LOG_APPEND_TIME, parse_header, patch_crc
from ottla.records.builder import build_batch
from ottla.records.errors import CorruptBatch, DecompressionTooLarge, UnsupportedCodec
from ottla.records.record import BatchBuilder, Record, decode_batch, encode_batch

VALUES = [Record(0, NOW, b"key", b"value"), Record(1, NOW - 5, None, b""), Record(2, NOW, b"", None, (("h", None),))]


@given(record_lists(), codecs)
def test_round_trip(records: list[Record], codec: int) -> None:
    raw = encode_batch(records, base_offset=records[0].offset, compression=codec)
    assert decode_batch(raw) == records
    assert decode_batch(memoryview(b"--" + raw + b"--"), 2) == records
    header = parse_header(raw)
    assert header.size == len(raw)
    assert (header.count, header.compression) == (len(records), codec)
    assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)


@given(record_lists(gaps=False, base=0), codecs)
def test_builder_makes_the_same_bytes(records: list[Record], codec: int) -> None:
    builder = BatchBuilder()
    sizes = [builder.append(r.timestamp, r.key, r.value, r.headers) for r in records]
    assert builder.count == len(records)
    plain = builder.build()
    assert sizes == sorted(sizes)
    assert builder.size == sizes[-1] == len(plain)
    assert plain == encode_batch(records)
    fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 6, "base_sequence": 7, "transactional": True}
    assert builder.build(compression=codec, **fields) == encode_batch(records, compression=codec, **fields)
    assert builder.base_timestamp == records[0].timestamp


def test_builder_with_more_records_than_its_tables() -> None:
    builder = BatchBuilder()
    for index in range(varint.SMALL_COUNT + 3):
        builder.append(NOW + index, b"k", b"%d" % index)
    records = decode_batch(builder.build(compression=compression.ZSTD))
    assert [(r.offset, r.timestamp, r.value) for r in records] == [
        (index, NOW + index, b"%d" % index) for index in range(varint.SMALL_COUNT + 3)
    ]


def test_an_empty_batch_is_not_built() -> None:
    with pytest.raises(ValueError, match="at least one"):
        BatchBuilder().build()
    with pytest.raises(ValueError, match="at least one"):
        encode_batch([])


@pytest.mark.parametrize("offsets", [[4], [5, 5], [6, 5], [5, 5 + 2**31]])
def test_offsets_that_do_not_rise_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offset"):
        encode_batch([Record(offset, NOW, None, b"") for offset in offsets], base_offset=5)


def test_unknown_codec_is_refused() -> None:
    with pytest.raises(UnsupportedCodec):
        encode_batch(VALUES, compression=5)


def test_log_append_time() -> None:
    raw = encode_batch(VALUES, timestamp_type=LOG_APPEND_TIME)
    assert [record.timestamp for record in decode_batch(raw)] == [NOW] * 3


def _around(payload: bytes, count: int = 1, codec: int = 0) -> bytes:
    fields = {"count": count, "last_offset_delta": max(0, count - 1), "base_timestamp": NOW, "max_timestamp": NOW}
    return build_batch(payload, attributes=codec, **fields)


ONE = b"\x10\x00\x00\x00\x02k\x02v\x00"  # eight bytes: attributes, two distances, "k", "v", no headers


@pytest.mark.parametrize(
    "payload",
    [
        ONE[:-1],
        ONE + b"\x00",
        ONE + ONE,
        b"\x0e" + ONE[1:],
        b"\x12" + ONE[1:],
        b"\x11" + ONE[1:],
        b"\x80\x80\x80\x80\x80\x00" + ONE[1:],
        ONE[:4] + b"\x7ek\x02v\x00",
        ONE[:6] + b"\xfe\xff\xff\xff\x0fv\x00",
        ONE[:-1] + b"\x01",
        ONE[:-1] + b"\x02",
        ONE[:-1] + b"\xfe\xff\xff\xff\x0f",
        b"\x14" + ONE[1:-1] + b"\x02\x01\x01",
        b"\x14" + ONE[1:-1] + b"\x02\x40\x01",
        b"\x14" + ONE[1:-1] + b"\x02\x00\x40",
        b"",
    ],
)
def test_records_that_do_not_fill_their_batch_are_corrupt(payload: bytes) -> None:
    assert decode_batch(_around(ONE)) == [Record(0, NOW, b"k", b"v")]
    with pytest.raises(CorruptBatch):
        decode_batch(_around(payload))


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1])
def test_count_that_lies_is_corrupt(codec: int, count: int) -> None:
    raw = bytearray(_around(ONE + ONE, 2, codec))
    struct.pack_into(">i", raw, COUNT_AT, count)
    struct.pack_into(">i", raw, LAST_OFFSET_DELTA_AT, max(0, count - 1))
    patch_crc(raw, 0)
    with pytest.raises(CorruptBatch):
        decode_batch(raw)


def test_negative_lengths_other_than_minus_one_are_null_as_in_java() -> None:
    assert decode_batch(_around(b"\x0c\x00\x00\x00\x07\x09\x00")) == [Record(0, NOW, None, None)]


def test_header_names_that_are_no_utf8_are_replaced_as_in_java() -> None:
    (record,) = decode_batch(_around(b"\x16" + ONE[1:-1] + b"\x02\x02\xff\x01"))
    assert record.headers == (("\ufffd", None),)


def test_wrong_checksum_is_corrupt_unless_it_is_not_asked_for() -> None:
    raw = bytearray(encode_batch(VALUES))
    raw[17] ^= 1
    with pytest.raises(CorruptBatch):
        decode_batch(raw)
    assert decode_batch(raw, check_crcs=False) == VALUES


def test_cut_batch_is_corrupt() -> None:
    raw = encode_batch(VALUES)
    for size in range(len(raw)):
        with pytest.raises(CorruptBatch):
            decode_batch(raw[:size])


@pytest.mark.parametrize("codec", range(5))
def test_decompression_is_bounded(codec: int) -> None:
    raw = encode_batch([Record(0, NOW, None, bytes(100_000))], compression=codec)
    assert len(decode_batch(raw, max_decompressed=101_000)) == 1
    with pytest.raises(DecompressionTooLarge):
        decode_batch(raw, max_decompressed=99_000)


@given(record_lists(gaps=False, base=0), codecs)
def test_kafka_python_reads_what_we_write(records: list[Record], codec: int) -> None:
    batch = kafka_python_records.DefaultRecordBatch(encode_batch(records, compression=codec))
    assert batch.validate_crc()
    seen = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert seen == records


@given(record_lists(gaps=False, base=0), codecs)
def test_aiokafka_reads_what_we_write(records: list[Record], codec: int) -> None:
    batch: Any = aiokafka_records.DefaultRecordBatch(encode_batch(records, compression=codec))
    assert batch.validate_crc()
    seen = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert seen == records


def _built_by(builder: Any, records: list[Record]) -> bytes:
    for r in records:
        assert builder.append(r.offset, r.timestamp, r.key, r.value, list(r.headers)) is not None
    return bytes(builder.build())


def _with_real_times(records: list[Record]) -> list[Record]:
    """kafka-python takes a time of -1 for none at all."""
    return [record._replace(timestamp=max(0, record.timestamp)) for record in records]


@given(record_lists(gaps=False, base=0).map(_with_real_times), codecs)
def test_we_read_what_kafka_python_and_aiokafka_write(records: list[Record], codec: int) -> None:
    fields = {"producer_id": 5, "producer_epoch": 6, "base_sequence": 7, "batch_size": 1 << 22}
    for module in (kafka_python_records, aiokafka_records):
        builder = module.DefaultRecordBatchBuilder(2, codec, True, **fields)
        raw = _built_by(builder, records)
        assert decode_batch(raw) == records
        header = parse_header(raw)
        if header.compression == compression.NONE:
            ours: dict[str, Any] = {"producer_id": 5, "producer_epoch": 6, "base_sequence": 7, "transactional": True}
            assert raw == encode_batch(records, leader_epoch=header.leader_epoch, **ours)


@examples(30)  # kio takes milliseconds a record
@given(record_lists())
def test_kio_reads_what_we_write(records: list[Record]) -> None:
    # It keeps whole seconds, up to the year 9999.
    records = [record._replace(timestamp=abs(record.timestamp) % 250_000_000_000 * 1000) for record in records]
    raw = encode_batch(records, base_offset=records[0].offset)
    batch, size = kio_read_batch(raw, 0)
    assert size == len(raw)
    seen = [
        Record(r.offset, round(r.timestamp.timestamp() * 1000), r.key, r.value, _kio_headers(r)) for r in batch.records
    ]
    assert seen == records


def _kio_headers(record: Any) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header.key.decode(), header.value) for header in record.headers)
