"""A walk sees what the columns say, refuses what they refuse, and goes no further than it may."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.records.generated_records import batches

from ottla.records.batch import ATTRIBUTES_AT, HEADER_SIZE, parse_header
from ottla.records.builder import build_batch, encode_record
from ottla.records.compression import CODECS, compress
from ottla.records.errors import CorruptBatch, DecompressionTooLarge, RecordError
from ottla.records.record import Record, encode_batch
from ottla.records.scan import scan_batch
from ottla.records.walk import Seen, WalkAllowance, WalkTooLong, find_time, unpacked, walk_records

PLENTY = WalkAllowance(records=1000, bytes=1 << 20)


def seen(raw: bytes, within: WalkAllowance | None = None) -> list[Seen]:
    header, payload = unpacked(raw, 0, within=within, check_crcs=False)
    return list(walk_records(header, payload, within))


def scanned(raw: bytes) -> list[Seen]:
    columns = scan_batch(raw, check_crcs=False)
    return [
        (timestamp, offset, length >= 0)
        for timestamp, offset, length in zip(columns.timestamps, columns.offsets, columns.key_length, strict=True)
    ]


@given(batches())
def test_what_the_columns_say(raw: bytes) -> None:
    assert seen(raw) == seen(raw, PLENTY) == scanned(raw)


@given(batches(), st.data())
def test_damage_is_found_as_by_the_columns(raw: bytes, data: st.DataObject) -> None:
    spoilt = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        spoilt[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = scanned(bytes(spoilt))
    except RecordError:
        with pytest.raises(RecordError):
            seen(bytes(spoilt))
    else:
        assert seen(bytes(spoilt)) == expected


@given(st.binary(max_size=60), st.integers(1, 4), st.sampled_from([0, 5, 2**63 - 1]), st.sampled_from([5, 2**63 - 2]))
@example(b"\x1e\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x01\x01\x00", 1, 0, 5)
@example(b"\x0c\x00\x00\x02\x01\x01\x00", 1, 2**63 - 1, 5)
def test_any_payload(payload: bytes, count: int, base_offset: int, base_timestamp: int) -> None:
    raw = build_batch(
        payload,
        count=count,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=5,
        base_offset=base_offset,
    )
    try:
        expected = scanned(raw)
    except RecordError:
        with pytest.raises(RecordError):
            seen(raw)
    else:
        assert seen(raw) == expected


@pytest.mark.parametrize("codec", CODECS.values())
def test_an_allowance_ends_at_its_last_record_and_byte(codec: int) -> None:
    raw = encode_batch([Record(n, 7, b"k", bytes(50)) for n in range(100)], compression=codec)
    size = len(unpacked(raw, 0)[1])
    assert len(seen(raw, WalkAllowance(100, size))) == 100
    for within in (WalkAllowance(99, size), WalkAllowance(100, size - 1)):
        with pytest.raises(WalkTooLong):
            seen(raw, within)
    # Beyond what anybody takes: that is the batch's fault, and not the place's.
    with pytest.raises(DecompressionTooLarge):
        unpacked(raw, 0, bytes_max=size - 1, within=WalkAllowance(100, size))


@pytest.mark.parametrize("codec", [name for name in CODECS if name not in ("none", "lz4")])
def test_a_block_that_unfolds_to_nothing_goes_beyond_an_allowance(codec: str) -> None:
    """All its streams are gone through, however little comes out."""
    empty = compress(CODECS[codec], b"")
    streams = empty * (1000 // len(empty))
    raw = bytearray(build_batch(streams, count=1, last_offset_delta=0, base_timestamp=5, max_timestamp=5))
    raw[ATTRIBUTES_AT + 1] = CODECS[codec]
    with pytest.raises(WalkTooLong):
        unpacked(bytes(raw), 0, within=WalkAllowance(10, len(streams) - 1), check_crcs=False)
    with pytest.raises(CorruptBatch, match="in 0 bytes"):
        unpacked(bytes(raw), 0, within=WalkAllowance(10, len(streams)), check_crcs=False)


def test_headers_count_as_records() -> None:
    raw = encode_batch([Record(n, 7, b"k", b"v", (("", None),) * 30) for n in range(3)])
    assert len(seen(raw, WalkAllowance(90, 1000))) == 3
    with pytest.raises(WalkTooLong):
        seen(raw, WalkAllowance(89, 1000))


def test_a_walk_keeps_nothing() -> None:
    """88 bytes a record as columns, and 100 for each header as objects: a few kilobytes would take all memory."""
    count = 30_000
    many = build_batch(
        encode_record(0, 0, b"k", None, ()) * count,
        count=count,
        last_offset_delta=count - 1,
        base_timestamp=5,
        max_timestamp=5,
        attributes=4,
    )
    one = encode_batch([Record(0, 5, b"k", None, (("", None),) * count)], compression=4)
    for raw in (many, one):
        assert len(raw) < 10_000
        header, payload = unpacked(raw, 0)
        tracemalloc.start()
        assert sum(1 for _ in walk_records(header, payload)) == header.count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100_000


def test_the_first_record_with_a_time() -> None:
    raw = encode_batch([Record(10 + n, time, b"k", b"v") for n, time in enumerate([5, 9, 7, 9])], base_offset=10)
    assert find_time(raw, 6, 0) == (9, 11)
    assert find_time(raw, 6, 12) == (7, 12)
    assert find_time(raw, 7, 0, exactly=True) == (7, 12)
    assert find_time(raw, 8, 0, exactly=True) is None
    assert find_time(raw, 10, 0) is None
    assert parse_header(raw).size > HEADER_SIZE
