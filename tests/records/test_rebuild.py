"""A batch with records left out is what a scan of all of its columns would make, byte for byte."""

from __future__ import annotations

from random import Random

import pytest
from tests.storage.log_world import NOW

from ottla.records.batch import set_log_append_time
from ottla.records.errors import CorruptBatch
from ottla.records.keys import find_spans, read_keys, read_offsets, with_values
from ottla.records.rebuild import with_records
from ottla.records.record import Record, encode_batch
from ottla.records.rewrite import filter_batch
from ottla.records.scan import scan_batch


def random_batch(rng: Random) -> bytes:
    def some_bytes(longest: int) -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.choice([0, 1, 40, longest]))

    records = []
    offset = rng.choice([0, 5, 2**40])
    base = offset
    for _ in range(rng.choice([1, 2, 30])):
        headers = (("h", some_bytes(9)),) * rng.choice([0, 0, 2])
        time = NOW + rng.choice([0, 1, -5, 100, 10**6, -(10**9), 10**12])
        records.append(Record(offset, time, some_bytes(300), some_bytes(20_000), headers))
        offset += rng.choice([1, 1, 1, 70, 9000])
    batch = bytearray(
        encode_batch(
            records, base_offset=base, compression=rng.choice([0, 0, 1, 2, 3, 4]), producer_id=rng.choice([-1, 9])
        )
    )
    if rng.random() < 0.2:
        set_log_append_time(batch, 0, NOW + 17)
    return bytes(batch)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_it_is_what_the_scan_gives(first: int) -> None:
    for seed in range(first, first + 100):
        rng = Random(seed)
        columns = scan_batch(random_batch(rng))
        payload, count = bytes(columns.payload), columns.header.count
        assert read_keys(payload, 0, len(payload), count) == [columns.key(number) for number in range(count)]
        assert read_offsets(payload, 0, count, *columns.header[:7:6]) == list(columns.offsets)

        keep = sorted(rng.sample(range(count), rng.randint(1, count)))
        wanted = bytes(number in keep for number in range(count))
        spans = find_spans(payload, 0, len(payload), wanted)
        assert with_values(payload, spans) == [
            span for span, number in zip(spans, keep, strict=True) if columns.value_length[number] >= 0
        ], f"seed {seed}"
        horizon = rng.choice([None, NOW + 1000])
        built, latest = with_records(columns.header, payload, spans, horizon)
        assert built == filter_batch(columns, keep, delete_horizon_ms=horizon), f"seed {seed}"
        assert latest == scan_batch(built).header.max_timestamp

        if horizon is not None:
            # A batch that has its horizon keeps it.
            again = scan_batch(built)
            rest = sorted(rng.sample(range(len(keep)), rng.randint(1, len(keep))))
            payload = bytes(again.payload)
            spans = find_spans(payload, 0, len(payload), bytes(number in rest for number in range(len(keep))))
            assert with_records(again.header, payload, spans, None)[0] == filter_batch(again, rest), f"seed {seed}"


@pytest.mark.parametrize("horizon", [None, NOW])
@pytest.mark.parametrize("base", [2**63 - 1, -(2**63)])
def test_times_beyond_64_bits_raise_nothing_but_their_own_error(base: int, horizon: int | None) -> None:
    away = 1 if base > 0 else -1
    columns = scan_batch(encode_batch([Record(n, NOW + n * away, b"k", b"v", ()) for n in range(3)], base_offset=0))
    payload = bytes(columns.payload)
    header = columns.header._replace(base_timestamp=base)
    spans = find_spans(payload, 0, len(payload), b"\0\1\1")
    with pytest.raises(CorruptBatch):
        with_records(header, payload, spans, horizon)


def test_damaged_records_raise_nothing_but_their_own_error() -> None:
    refused = 0
    for seed in range(600):
        rng = Random(seed)
        batch = bytearray(random_batch(rng))
        columns = scan_batch(bytes(batch))
        payload = bytearray(columns.payload)
        for _ in range(rng.randint(1, 3)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        if rng.random() < 0.3:
            del payload[rng.randrange(len(payload)) :]
        data, count = bytes(payload), columns.header.count
        try:
            keys = read_keys(data, 0, len(data), count)
            assert len(keys) == count
            read_offsets(data, 0, count, 0, columns.header.last_offset_delta)
            spans = find_spans(data, 0, len(data), b"\1" * count)
            with_values(data, spans)
            with_records(columns.header, data, spans, NOW)
        except CorruptBatch:
            refused += 1
    assert refused > 90
