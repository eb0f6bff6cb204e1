"""`stage_plain` and `stage_in_transaction` take what `records.plain` says is plain, and nothing else: the expression in
them is that definition."""

from __future__ import annotations

from random import Random
from struct import Struct

import pytest
from tests.storage.log_world import NOW, World, batch, put

from ottla.config.log import LogConfig
from ottla.records.batch import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LOW_ATTRIBUTES_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_ID_AT,
    BatchHeader,
    header_fields,
    header_format,
    patch_crc,
)
from ottla.records.plain import COUNTED_RECORDS_MAX, LONE_RECORD_AT, LONE_SIZE_END, is_plain
from ottla.records.record import most_records

COUNT = Struct(">i")
SEQUENCE = header_fields("producer_id", "producer_epoch", "base_sequence")
#: No bound of a topic or a segment comes into it.
WIDE = LogConfig(message_timestamp_after_max_ms=2**62)


#: Of the producer whose transaction is open.
PRODUCER, EPOCH = 7, 3


def some_batch(rng: Random, in_transaction: float = 0.05) -> bytearray:
    """`in_transaction`: how many of them."""
    of_producer = (PRODUCER, EPOCH, 1) if in_transaction > 0.5 else (rng.randrange(2**40), 0, 0)
    count = rng.choice([1, 1, 1, 2, COUNTED_RECORDS_MAX, COUNTED_RECORDS_MAX + 1])
    values = [rng.randbytes(rng.choice([0, 1, 40, 56, 57, 64, 200, 8170, 8190, 9000])) for _ in range(count)]
    data = bytearray(
        batch(
            *values,
            producer=(-1, -1, -1) if rng.random() < 0.7 - in_transaction else of_producer,
            compression=rng.choice([0, 0, 0, 1, 2, 3, 4]),
            transactional=rng.random() < in_transaction,
        )
    )
    chance = rng.random()
    if chance < 0.35:
        # A bit of the header, or of the first record's length; the largest timestamp is for the topic to judge.
        at = rng.choice([at for at in range(HEADER_SIZE + 3) if not MAX_TIMESTAMP_AT <= at < PRODUCER_ID_AT])
        data[at] ^= 1 << rng.randrange(8)
        if not LENGTH_AT <= at < LENGTH_AT + 4 and rng.random() < 0.8:
            patch_crc(data, 0)
    elif chance < 0.5:
        # As many records as it says, or as its bytes can unfold to, and one more; none; a length that is negative.
        most = most_records(data[LOW_ATTRIBUTES_AT] & COMPRESSION_MASK, len(data) - HEADER_SIZE)
        claimed = rng.choice([0, -1, most, most + 1, 2**31 - 1])
        COUNT.pack_into(data, LAST_OFFSET_DELTA_AT, claimed - 1)
        COUNT.pack_into(data, COUNT_AT, claimed)
        patch_crc(data, 0)
    elif chance < 0.55:
        data[HEADER_SIZE] ^= 1
        patch_crc(data, 0)
    elif chance < 0.65:
        data = data[: rng.randrange(len(data) + 1)] if rng.random() < 0.5 else data + rng.randbytes(rng.randrange(1, 9))
    return data


@pytest.mark.parametrize("seed", range(3))
def test_what_is_plain_is_staged_at_once(seed: int) -> None:
    rng = Random(seed)
    log = World(config=WIDE).open()
    plain = others = 0
    for _ in range(1500):
        data = some_batch(rng)
        expected = is_plain(data)
        first = log.staging.stage_plain(memoryview(bytearray(data)), 0, NOW)
        log.staging.discard()
        assert (first >= 0) == expected, data.hex()
        plain += expected
        others += not expected
    assert plain > 300
    assert others > 300


@pytest.mark.parametrize("seed", range(3))
def test_what_is_plain_but_for_its_open_transaction_is_staged_at_once(seed: int) -> None:
    rng = Random(seed)
    log = World(config=WIDE).open()
    put(log, batch(b"first", producer=(PRODUCER, EPOCH, 0), transactional=True))
    plain = others = elsewhere = 0
    for _ in range(1500):
        data = some_batch(rng, in_transaction=0.65)
        expected = is_plain(data, in_transaction=True)
        if expected and SEQUENCE.unpack_from(data) != (PRODUCER, EPOCH, 1):
            elsewhere += 1  # another producer's, which has none open, or not the next
            continue
        first = log.staging.stage_in_transaction(memoryview(bytearray(data)), 0, NOW)
        log.staging.discard()
        assert (first >= 0) == expected, data.hex()
        plain += expected
        others += not expected
    assert plain > 300
    assert others > 300
    assert elsewhere < 100


def test_of_a_transaction_that_is_not_open_nothing_is_staged_at_once() -> None:
    log = World(config=WIDE).open()
    data = batch(b"first", producer=(PRODUCER, EPOCH, 0), transactional=True)
    assert is_plain(data, in_transaction=True)
    assert not is_plain(data)
    assert not is_plain(batch(b"of nobody", transactional=True), in_transaction=True)
    assert log.staging.stage_in_transaction(data, 0, NOW) == -1


@pytest.mark.parametrize("size", [LONE_RECORD_AT + 64, LONE_SIZE_END - 1, LONE_SIZE_END, LONE_SIZE_END + 1])
def test_a_lone_record_around_the_bounds_of_its_length(size: int) -> None:
    value_bytes = next(n for n in range(size) if len(batch(bytes(n))) >= size)
    data = batch(bytes(value_bytes))
    assert abs(len(data) - size) <= 1
    assert (World(config=WIDE).open().staging.stage_plain(data, 0, NOW) == 0) == is_plain(bytes(data))
    assert is_plain(batch(bytes(value_bytes))) == (len(data) < LONE_SIZE_END)


def test_a_record_of_a_negative_length_is_not_plain() -> None:
    data = bytearray(batch(b"value"))
    assert is_plain(data)
    data[HEADER_SIZE] ^= 1
    patch_crc(data, 0)
    assert not is_plain(data)


def test_a_format_of_some_fields_of_the_header() -> None:
    data = batch(b"one", b"two", producer=(77, 3, 12), base_offset=9)
    assert header_fields("crc", "attributes").unpack_from(data)[1] == 0
    assert header_format("base_offset", "length", "leader_epoch") == ">qii"
    assert header_format("last_offset_delta") == f">{'8x4x4x1x4x2x'}i"
    assert header_fields("producer_epoch", "base_sequence").unpack_from(data) == (3, 12)
    assert header_fields(*BatchHeader._fields).size == HEADER_SIZE
    assert (CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, COUNT_AT) == (17, 21, 23, 57)
    with pytest.raises(AssertionError):
        header_format("length", "base_offset")
