"""Messages of magic 0 and 1 made into batches: the same records, for readers of batches."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from tests.records.test_old_messages import FORMS, RECORDS, message, wrapper, written

from ottla.records.batch import iterate
from ottla.records.builder import BatchBuilder
from ottla.records.compression import GZIP
from ottla.records.errors import CorruptBatch, RecordError
from ottla.records.old_batches import as_batches
from ottla.records.old_messages import parse_message, unfold
from ottla.records.record import Record, decode_batch

NEWER = BatchBuilder()
NEWER.append(9, b"k", b"newer")
BATCH = NEWER.build(base_offset=50)


def read(data: bytes) -> list[Record]:
    return [record for pos, _ in iterate(data, 0, len(data)) for record in decode_batch(data, pos)]


@pytest.mark.parametrize(("magic", "codec"), FORMS)
def test_what_another_writer_wrote_has_the_same_records_as_batches(magic: int, codec: int) -> None:
    old = written(magic, codec, 7) + written(magic, codec, 20)
    messages, at = [], 0
    while at < len(old):
        one = parse_message(old, at, at)
        messages += unfold(one)
        at += one.size
    batches = as_batches(old + BATCH, check_crcs=True)
    *found, newer = read(batches)
    assert found == [Record(one.offset, one.timestamp, one.key, one.value, ()) for one in messages]
    assert len(found) == 2 * len(RECORDS)
    assert newer.value == b"newer"
    assert {header.compression for _, header in iterate(batches, 0, len(batches))} == {codec, 0}


def test_offsets_that_a_cleaner_has_left_stay() -> None:
    inner = message(offset=1, value=b"a") + message(offset=4, value=b"b")
    alone = message(offset=110) + message(offset=112)
    assert [one.offset for one in read(as_batches(wrapper(inner, offset=104) + alone, check_crcs=True))] == [
        *(101, 104, 110, 112)
    ]


def test_a_time_of_the_broker_stays_one() -> None:
    old = message(attributes=8, timestamp=5) + wrapper(message(timestamp=1), more=8, offset=3)
    batches = as_batches(old, check_crcs=True)
    headers = [header for _, header in iterate(batches, 0, len(batches))]
    assert [(one.is_log_append_time, one.max_timestamp) for one in headers] == [(True, 5), (True, 7)]


def test_what_is_wrong_is_raised_where_it_comes_first() -> None:
    good, bad = message(offset=3), bytearray(message(offset=4))
    bad[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum of the message at offset 4"):
        as_batches(bytes(bad), check_crcs=True)
    assert [one.offset for one in read(as_batches(good, check_crcs=True))] == [3]
    both = as_batches(good + bytes(bad), check_crcs=True)
    assert both.endswith(bad)
    with pytest.raises(CorruptBatch, match="the last message of the wrapper"):
        as_batches(wrapper(message(magic=0, offset=8), magic=0, offset=9), check_crcs=True)
    cut = message(offset=3, value=b"long enough for a header" * 9)[:-1]
    assert as_batches(cut, check_crcs=True) == cut


def test_damage_is_an_error_or_a_batch() -> None:
    chance = Random(4)
    sound = written(0) + written(1, first=4) + written(1, GZIP, 8) + written(0, GZIP, 12)
    for _ in range(3_000):
        bad = bytearray(sound)
        for _ in range(chance.choice((1, 1, 4))):
            bad[chance.randrange(len(bad))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        with suppress(RecordError):
            made = as_batches(bytes(bad), check_crcs=False)
            for pos, header in iterate(made, 0, len(made)):
                if header.magic == 2:
                    decode_batch(made, pos)
