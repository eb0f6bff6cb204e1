"""The header view: fields, checksum, and what is patched in place."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from tests.records.generated_records import NOW, batches

from ottla.records import batch
from ottla.records.batch import BatchHeader
from ottla.records.errors import CorruptBatch, UnsupportedCodec, UnsupportedMagic
from ottla.records.plain import STAMPED_FIELDS
from ottla.records.record import Record, decode_batch, encode_batch


def three() -> bytearray:
    records = [Record(i, NOW + i, b"k", b"v") for i in range(3)]
    return bytearray(encode_batch(records, producer_id=7, producer_epoch=1, base_sequence=2))


def test_field_positions_are_those_of_the_struct() -> None:
    raw = batch.HEADER.pack(1, 100, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5)
    header = batch.parse_header(raw)
    positions = {
        "base_offset": (batch.BASE_OFFSET_AT, ">q"),
        "length": (batch.LENGTH_AT, ">i"),
        "leader_epoch": (batch.LEADER_EPOCH_AT, ">i"),
        "magic": (batch.MAGIC_AT, ">b"),
        "crc": (batch.CRC_AT, ">I"),
        "attributes": (batch.ATTRIBUTES_AT, ">h"),
        "last_offset_delta": (batch.LAST_OFFSET_DELTA_AT, ">i"),
        "base_timestamp": (batch.BASE_TIMESTAMP_AT, ">q"),
        "max_timestamp": (batch.MAX_TIMESTAMP_AT, ">q"),
        "producer_id": (batch.PRODUCER_ID_AT, ">q"),
        "producer_epoch": (batch.PRODUCER_EPOCH_AT, ">h"),
        "base_sequence": (batch.BASE_SEQUENCE_AT, ">i"),
        "count": (batch.COUNT_AT, ">i"),
    }
    assert tuple(positions) == BatchHeader._fields
    for name, (position, form) in positions.items():
        assert struct.unpack_from(form, raw, position) == (getattr(header, name),), name
    assert header.size == 112
    assert (header.last_offset, header.next_offset) == (6, 7)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_header_is_read_at_any_place_of_any_buffer(kind: type) -> None:
    raw = bytes(three())
    header = batch.parse_header(kind(b"abc" + raw), 3)
    assert header == batch.parse_header(raw)
    assert header.size == len(raw)


@pytest.mark.parametrize("size", [0, 1, 60])
def test_header_cut_short_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch):
        batch.parse_header(three()[:size])
    with pytest.raises(CorruptBatch):
        batch.parse_header(b"x" * 5 + three()[:size], 5)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48])
def test_length_below_the_header_is_corrupt(length: int) -> None:
    raw = three()
    struct.pack_into(">i", raw, batch.LENGTH_AT, length)
    with pytest.raises(CorruptBatch):
        batch.parse_header(raw)


def test_length_of_the_header_alone_is_an_empty_batch() -> None:
    raw = three()
    struct.pack_into(">i", raw, batch.LENGTH_AT, 49)
    assert batch.parse_header(raw).size == batch.HEADER_SIZE


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"magic": 0}, UnsupportedMagic),
        ({"magic": 1}, UnsupportedMagic),
        ({"magic": 3}, CorruptBatch),
        ({"magic": -1}, CorruptBatch),
        ({"attributes": 5}, UnsupportedCodec),
        ({"attributes": 7}, UnsupportedCodec),
        ({"base_offset": -1}, CorruptBatch),
        ({"last_offset_delta": -1, "count": 0}, CorruptBatch),
        ({"count": -1}, CorruptBatch),
        ({"count": 4}, CorruptBatch),
        ({"length": 48}, CorruptBatch),
    ],
)
def test_headers_that_no_log_holds(changes: dict[str, int], error: type[Exception]) -> None:
    header = batch.parse_header(three())
    batch.validate_header(header)
    with pytest.raises(error):
        batch.validate_header(header._replace(**changes))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_compacted_batches_have_fewer_records_than_offsets(count: int) -> None:
    batch.validate_header(batch.parse_header(three())._replace(count=count))


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(-1, 5, -1), (0, 0, 0), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2)],
)
def test_sequence_numbers_start_again_at_zero(base: int, delta: int, last: int) -> None:
    header = batch.parse_header(three())._replace(base_sequence=base, last_offset_delta=delta)
    assert header.last_sequence == last


def test_attribute_bits() -> None:
    header = batch.parse_header(three())
    assert not (header.is_control)
    assert not (header.is_transactional)
    assert not (header.is_log_append_time)
    assert header.delete_horizon_ms is None
    header = header._replace(attributes=3 | 0x08 | 0x10 | 0x20 | 0x40)
    assert header.is_control
    assert header.is_transactional
    assert header.is_log_append_time
    assert header.compression == 3
    assert header.delete_horizon_ms == header.base_timestamp == NOW


@given(batches())
def test_checksum_covers_from_the_attributes_to_the_end(raw: bytes) -> None:
    assert batch.check_crc(b"12" + raw, 2, len(raw))
    assert batch.compute_crc(raw, 0, len(raw)) == crc32c(raw[21:]) == batch.parse_header(raw).crc


def test_checksum_of_a_batch_that_is_not_all_there() -> None:
    raw = bytes(three())
    assert not batch.check_crc(raw[:-1], 0, len(raw))
    assert not batch.check_crc(raw, 0, 60)
    assert not batch.check_crc(raw, 1, len(raw))


@given(batches(), st.data())
def test_any_changed_bit_behind_the_checksum_is_seen(raw: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(batch.CRC_AT, len(raw) - 1))
    changed = bytearray(raw)
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    assert not batch.check_crc(changed, 0, len(raw))


def test_offset_and_epoch_are_stamped_without_touching_the_checksum() -> None:
    raw = bytearray(b"xyz") + three()
    view = memoryview(raw)
    STAMPED_FIELDS.pack_into(view, 3, 2**62, len(raw) - 3 - batch.LOG_OVERHEAD, 17)
    header = batch.parse_header(raw, 3)
    assert (header.base_offset, header.leader_epoch) == (2**62, 17)
    assert batch.check_crc(raw, 3, header.size)
    assert [record.offset for record in decode_batch(raw, 3)] == [2**62, 2**62 + 1, 2**62 + 2]


def test_log_append_time_is_every_records_time() -> None:
    raw = three()
    batch.set_log_append_time(raw, 0, NOW + 500)
    assert [record.timestamp for record in decode_batch(raw)] == [NOW + 500] * 3
    batch.set_max_timestamp(raw, 0, NOW + 2, log_append_time=False)
    assert raw == three()


def test_time_that_is_already_right_leaves_the_batch_alone() -> None:
    raw = three()
    struct.pack_into(">I", raw, batch.CRC_AT, 0)
    batch.set_max_timestamp(raw, 0, NOW + 2, log_append_time=False)
    assert batch.parse_header(raw).crc == 0


def test_new_time_clears_the_delete_horizon_as_kafka_does() -> None:
    raw = three()
    struct.pack_into(">h", raw, batch.ATTRIBUTES_AT, 0x7F70)
    batch.set_log_append_time(raw, 0, NOW)
    assert batch.parse_header(raw).attributes == 0x38
    assert batch.check_crc(raw, 0, len(raw))


@given(st.lists(batches(), max_size=4), st.integers(0, 200), st.binary(max_size=3))
def test_iterate_gives_whole_batches_and_stops_at_a_partial_one(raws: list[bytes], cut: int, before: bytes) -> None:
    whole = before + b"".join(raws)
    end = max(len(before), len(whole) - cut)
    expected = []
    position = len(before)
    for raw in raws:
        if position + len(raw) <= end:
            expected.append((position, batch.parse_header(raw)))
        position += len(raw)
    assert list(batch.iterate(whole, len(before), end)) == expected
    assert list(batch.iterate(memoryview(whole)[:end], len(before), len(whole) + 100)) == expected


def test_iterate_refuses_a_length_that_cannot_be() -> None:
    raw = bytes(three()) + bytes(100)
    found = batch.iterate(raw, 0, len(raw))
    assert next(found)[0] == 0
    with pytest.raises(CorruptBatch):
        next(found)
