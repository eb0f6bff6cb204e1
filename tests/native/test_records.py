"""The compiled decoder and encoder of records against those in Python: the same objects and bytes, or a doubt."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.native.conftest import IS_PURE, NOTHING_COMPILED
from tests.records.generated_records import batches, headers, small_bytes
from tests.searches import examples

from ottla.client.records import ConsumerRecord
from ottla.records import builder, record
from ottla.records.batch import BatchHeader, parse_header
from ottla.records.builder import BatchBuilder, encode_record
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch
from ottla.records.record import Record, batch_payload, decode_batch, decode_placed, encode_batch

compiled = pytest.importorskip("ottla.native.records", reason=NOTHING_COMPILED)

INT64 = st.integers(-(2**63), 2**63 - 1)
#: A build that watches its memory, on a busy machine, takes its time.
UNHURRIED = examples(60)
DAMAGES = 25


@pytest.fixture(params=["compiled", "in Python"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in Python":
            patch.setattr(record, "_compiled", None)
            patch.setattr(builder, "_encode_compiled", None)
        else:
            assert record._compiled is (None if IS_PURE else compiled)
            patch.setattr(record, "_compiled", compiled)
            patch.setattr(builder, "_encode_compiled", compiled.encode)
        yield request.param


def decoded(payload: bytes, header: BatchHeader) -> list[Record] | None:
    timestamp = header.max_timestamp if header.is_log_append_time else None
    return compiled.decode(Record, payload, header.count, header.base_offset, header.base_timestamp, timestamp, None)


def judged(payload: bytes, header: BatchHeader) -> list[Record] | None:
    try:
        return record._judged(payload, header)
    except CorruptBatch:
        return None


@UNHURRIED
@given(batches())
def test_sound_batches_become_the_same_records(raw: bytes) -> None:
    header, payload = batch_payload(raw, 0, DECOMPRESSED_BYTES_MAX)
    found = decoded(payload, header)
    assert found is not None
    expected = record._judged(payload, header)
    assert found == expected
    # Since Python 3.14 a tuple remembers its hash, and must not be made with one.
    assert [hash(one) for one in found] == [hash(one) for one in expected] == [hash(tuple(one)) for one in found]
    assert all(type(one) is Record for one in found)


@UNHURRIED
@given(batches())
def test_placed_records(raw: bytes) -> None:
    header = parse_header(raw)
    kind = 1 if header.is_log_append_time else 0
    found = decode_placed(ConsumerRecord, "orders", 3, raw, 0)
    assert all(type(one) is ConsumerRecord for one in found)
    assert found == [
        ConsumerRecord(
            "orders", 3, one.offset, one.timestamp, kind, one.key, one.value, one.headers, header.leader_epoch
        )
        for one in decode_batch(raw)
    ]


@UNHURRIED
@given(batches(), st.integers(0, 2**32))
def test_damage_is_decoded_alike_or_doubted(raw: bytes, seed: int) -> None:
    """What is decoded in spite of the damage is what Python makes of it; what Python refuses is never decoded."""
    chance = random.Random(seed)
    header, payload = batch_payload(raw, 0, DECOMPRESSED_BYTES_MAX)
    for _ in range(DAMAGES):
        damaged = damage(payload, chance)
        claimed = header._replace(count=max(0, header.count + chance.choice([0, 0, 0, 1, -1])))
        found = decoded(damaged, claimed)
        if found is not None:
            assert found == judged(damaged, claimed)


def damage(payload: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(payload)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(damaged) + 1)
        match chance.randrange(6):
            case 0:
                del damaged[place:]
            case 1:
                damaged.insert(place, chance.choice([0, 0x80, 0xFF]))
            case _ if place < len(damaged):
                damaged[place] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    return bytes(damaged)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x0e",
        b"\x0e\0\0\0\x01",
        b"\x0c\0\0\0\x01\x01\0\0",
        # Lengths that would wrap around, and one beyond the record.
        b"\xfe\xff\xff\xff\x0f\0\0\0\x01\x01\0\0",
        b"\x10\0\0\0\xfe\xff\xff\xff\x0f\x01\0\0\0",
        b"\x0e\0\0\0\x01\x7e\0\0",
        b"\x0e\0\0\0\x01\x01\xfe\xff",
        # Eleven bytes of a time, and one whose tenth byte has more than its bit.
        b"\x22\0" + b"\x80" * 10 + b"\x01\0\x01\x01\0\0",
        b"\x20\0" + b"\xff" * 9 + b"\x03\0\x01\x01\0\0",
        # More headers than bytes.
        b"\x0e\0\0\0\x01\x01\x7e\0",
    ],
)
def test_what_is_not_sound_is_doubted(payload: bytes) -> None:
    for count in (1, 2, 2**31 - 1):
        assert compiled.decode(Record, payload, count, 0, 0, None, None) is None


def test_numbers_beyond_64_bits_are_left_to_python() -> None:
    raw = encode_batch([Record(5, 10, None, b"x"), Record(6, 20, None, b"y")], base_offset=5)
    _, payload = batch_payload(raw, 0, DECOMPRESSED_BYTES_MAX)
    assert compiled.decode(Record, payload, 2, 2**63 - 1, 0, None, None) is None
    assert compiled.decode(Record, payload, 2, 5, 2**63 - 5, None, None) is None
    with pytest.raises(OverflowError):
        compiled.decode(Record, payload, 2, 2**63, 0, None, None)


def test_what_is_no_tuple_is_refused() -> None:
    with pytest.raises(TypeError):
        compiled.decode(dict, b"", 0, 0, 0, None, None)  # type: ignore[type-var]
    with pytest.raises(TypeError):
        compiled.decode(ConsumerRecord, b"", 0, 0, 0, None, ("topic", 0))  # type: ignore[arg-type]


@UNHURRIED
@given(INT64, INT64, st.none() | small_bytes, st.none() | small_bytes)
def test_single_records_become_the_same_bytes(
    offset_delta: int, time_delta: int, key: bytes | None, value: bytes | None
) -> None:
    expected = encode_record(offset_delta, time_delta, key, value, ())
    assert compiled.encode(offset_delta, time_delta, key, value) == expected
    if value is not None:
        assert compiled.encode(offset_delta, time_delta, key, memoryview(bytearray(value))) == expected


def test_what_cannot_be_encoded_is_refused() -> None:
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            compiled.encode(number, 0, None, None)
        with pytest.raises(ValueError, match="64 bits"):
            compiled.encode(0, number, None, None)
    for wrong in ("text", 5):
        with pytest.raises(TypeError):
            compiled.encode(0, 0, None, wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            compiled.encode(0, 0, wrong, b"")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        compiled.encode(0, 0, None)  # type: ignore[call-arg]


@UNHURRIED
@given(st.lists(st.tuples(st.none() | small_bytes, st.none() | small_bytes, headers), min_size=1, max_size=20))
def test_a_builder_makes_the_same_batch_in_both_ways(
    records: list[tuple[bytes | None, bytes | None, builder.Headers]],
) -> None:
    def built() -> bytes:
        one = BatchBuilder()
        for index, (key, value, beside) in enumerate(records):
            assert one.append(1000 - index, key, value, beside) == one.size
        return one.build()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "_encode_compiled", None)
        in_python = built()
    assert built() == in_python


def test_records_come_out_alike(way: str) -> None:
    raw = encode_batch(
        [Record(7, 10, b"k", None, (("h", None), ("\u00fc", b"v"))), Record(9, 5, None, b"v" * 9000)], base_offset=7
    )
    assert decode_batch(raw) == [
        Record(7, 10, b"k", None, (("h", None), ("\u00fc", b"v"))),
        Record(9, 5, None, b"v" * 9000),
    ], way
