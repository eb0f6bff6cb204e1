"""Tables to batches, compiled and in Python, against the builder of single records."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from mmap import mmap
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.arrow.batch_shapes import NOW
from tests.arrow.table_shapes import some_rows, some_table

from ottla.arrow import encoding
from ottla.arrow.decoding import decode
from ottla.arrow.encoding import Encoder, encode
from ottla.arrow.errors import BadColumns, BadRow, RowTooLarge
from ottla.arrow.given import pieces
from ottla.arrow.plain_encoding import WriteBounds
from ottla.arrow.schema import COLUMNS, HEADERS_TYPE
from ottla.records.batch import HEADER_SIZE, check_crc, parse_header
from ottla.records.compression import CODECS
from ottla.records.keyhash import partition_of_key
from ottla.records.record import Record, decode_batch, encode_batch


@pytest.fixture(params=["compiled", "in Python"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        built = pytest.importorskip("ottla.native.batches", exc_type=ImportError)
        patch.setattr(encoding, "_compiled", None if request.param == "in Python" else built)
        yield request.param


def encoder(partitions: int = 1, batch_bytes: int = 16_384, record_bytes_max: int = 1 << 20, **more: Any) -> Encoder:
    return Encoder(WriteBounds(partitions, NOW, batch_bytes, record_bytes_max), **more)


def read_back(batches: list[Any]) -> dict[int, list[tuple[Any, ...]]]:
    """Key, value, time and headers of each partition's records, which must be what the header says."""
    found: dict[int, list[tuple[Any, ...]]] = {}
    for batch in batches:
        raw = batch.build()
        header = parse_header(raw)
        assert check_crc(raw, 0, len(raw))
        records = decode_batch(raw)
        assert (header.size, header.count, header.base_offset) == (len(raw), batch.count, 0)
        assert [one.offset for one in records] == list(range(batch.count))
        assert header.max_timestamp == max(one.timestamp for one in records) == batch.max_timestamp
        assert header.base_timestamp == records[0].timestamp == batch.base_timestamp
        assert raw == encode_batch(records)
        found.setdefault(batch.partition, []).extend(
            (one.key, one.value, one.timestamp, one.headers) for one in records
        )
    return found


@pytest.mark.parametrize("ends", [(0, 1 << 20, 5), (4, 2, 5)])
def test_an_array_whose_ends_lie_outside_of_its_bytes_is_refused(ends: tuple[int, int, int]) -> None:
    buffers = [None, pa.py_buffer(struct.pack("<3i", *ends)), pa.py_buffer(b"short")]
    lie = pa.Array.from_buffers(pa.binary(), 2, buffers)
    with pytest.raises(BadColumns, match="not sound"):
        list(encoder().batches(pa.table({"value": lie})))
    with pytest.raises(BadColumns, match="not sound"):
        list(encoder().batches(pa.table({"value": [b"v", b"v"], "key": lie})))


def numbered(rows: int, size: int) -> pa.Array:
    """Values of a large type that begin with their row's number, every third null. Zeros behind it take no memory."""
    ends = array("q", range(0, (rows + 1) * size, size))
    valid = bytes(sum(1 << bit for bit in range(8) if (8 * at + bit) % 3) for at in range(rows // 8 + 1))
    memory = mmap(-1, rows * size)
    for row in range(rows):
        struct.pack_into("<i", memory, row * size, row)
    return pa.Array.from_buffers(pa.large_binary(), rows, [pa.py_buffer(one) for one in (valid, ends, memory)])


def test_values_of_more_than_two_gigabytes_together() -> None:
    """The rows behind the first two gigabytes of a column were refused, in however small pieces."""
    values = numbered(2200, 1 << 20)
    table = pa.table({"value": values, "partition": pa.array(range(2200), pa.int64())})
    halves = list(pieces(table, 1 << 16))
    assert [(one.row, len(one.values)) for one in halves] == [(0, 1100), (1100, 1100)]
    for one in halves:
        assert one.values.type == pa.binary()
        assert one.values.nbytes < 2**31
        assert one.partitions[0].as_py() == one.row
        assert one.values.is_valid().to_pylist() == [row % 3 != 0 for row in range(one.row, one.row + 1100)]
    for row in (1100, 2197):
        assert halves[1].values[row - 1100].as_py() == row.to_bytes(4, "little") + bytes((1 << 20) - 4)
    small = list(pieces(table.slice(2100), 60))
    assert [(one.row, len(one.values)) for one in small] == [(0, 60), (60, 40)]
    one_header_each = pa.LargeListArray.from_arrays(
        pa.array(range(2201), pa.int64()),
        pa.StructArray.from_arrays([pa.array(["h"] * 2200), values], ["key", "value"]),
    )
    (last,) = pieces(pa.table({"value": pa.nulls(2200), "headers": one_header_each}).slice(2195), 60)
    assert last.headers.to_pylist() == [
        [{"key": "h", "value": row.to_bytes(4, "little") + bytes((1 << 20) - 4) if row % 3 else None}]
        for row in range(2195, 2200)
    ]
    with pytest.raises(BadColumns, match="value"):
        list(pieces(pa.table({"value": numbered(2, 1 << 31)}), 60))


def test_tables_of_every_shape_become_the_records_that_they_say() -> None:
    for seed in range(20):
        chance = Random(seed)
        rows = some_rows(chance, 40)
        table = some_table(chance, rows)
        batches = list(encoder(5, batch_bytes=chance.choice((1, 300, 9000, 16_384))).batches(table))
        found = read_back(batches)
        everything = sorted(repr(record) for records in found.values() for record in records)
        wanted: dict[int, list[tuple[Any, ...]]] = {}
        free = []
        for value, key, partition, time, headers in zip(*rows.values(), strict=True):
            record = (key, value, NOW if time is None else time, tuple((h["key"], h["value"]) for h in headers or ()))
            if partition is None and key is None:
                free.append(record)
            else:
                wanted.setdefault(partition_of_key(key, 5) if partition is None else partition, []).append(record)
        for partition, records in wanted.items():
            among = [record for record in found[partition] if record in records]
            assert [one for one in among if one not in free] == [one for one in records if one not in free], seed
        assert everything == sorted(repr(one) for records in (*wanted.values(), free) for one in records)


def test_both_ways_make_the_same_bytes() -> None:
    for seed in range(20):
        chance = Random(seed)
        table = some_table(chance, some_rows(chance, 60))
        made = []
        for compiled in (encoding._compiled, None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(encoding, "_compiled", compiled)
                one = encoder(5, batch_bytes=chance.choice((300,)), turns=[4, 1, 2])
                made.append([list(one.batches(table)), list(one.batches(table))])
        assert made[0] == made[1], seed


def test_batches_are_cut_where_the_next_record_would_not_fit() -> None:
    for limit in range(100, 400, 7):
        batches = list(encoder(batch_bytes=limit).batches(pa.table({"value": [b"x" * 50] * 20})))
        sizes = [len(batch.raw) for batch in batches]
        assert all(size <= max(limit, HEADER_SIZE + 57) for size in sizes)
        one_more = 57
        assert all(size + one_more > limit for size in sizes[:-1])


def test_a_record_over_the_batch_size_has_one_of_its_own() -> None:
    batches = list(encoder(batch_bytes=100).batches(pa.table({"value": [b"a", b"x" * 500, b"b"]})))
    assert [batch.count for batch in batches] == [1, 1, 1]


def test_a_record_over_the_largest_request_is_named_by_its_row_and_size() -> None:
    table = pa.concat_tables([pa.table({"value": [b"x"] * 3}), pa.table({"value": [b"x", b"y" * 1000]})])
    size = len(encode_batch([Record(0, NOW, None, b"y" * 1000)]))
    assert sum(batch.count for batch in encoder(record_bytes_max=size).batches(table)) == 5
    with pytest.raises(RowTooLarge, match=f"row 4: a record of {size} bytes is over max.request.size") as caught:
        list(encoder(record_bytes_max=size - 1).batches(table))
    assert (caught.value.row, caught.value.size, caught.value.limit) == (4, size, size - 1)


def test_rows_without_a_key_stay_with_a_partition_until_its_batch_is_full() -> None:
    one = encoder(3, batch_bytes=300, turns=[2, 0])
    batches = list(one.batches(pa.table({"value": [b"x" * 50] * 12})))
    assert [(batch.partition, batch.count) for batch in batches] == [(2, 4), (0, 4), (2, 4)] or [
        (batch.partition, batch.count) for batch in sorted(batches, key=lambda batch: batch.partition)
    ] == [(0, 4), (2, 4), (2, 4)]
    # The next table begins with the next turn.
    assert [batch.partition for batch in one.batches(pa.table({"value": [b"y"]}))] == [0]


def test_keys_go_where_javas_producer_sends_them() -> None:
    keys = [b"", b"a", b"alice", b"ab" * 40]
    batches = list(encoder(12).batches(pa.table({"value": [b""] * 4, "key": keys})))
    found = {record.key: batch.partition for batch in batches for record in decode_batch(batch.raw)}
    assert found == {key: partition_of_key(key, 12) for key in keys}


@pytest.mark.parametrize("codec", CODECS)
def test_what_was_written_is_read_again(codec: str) -> None:
    rows = {
        "key": [b"k", None, b""],
        "value": [b"v" * 100, b"", None],
        "headers": [[{"key": "h", "value": None}], [], [{"key": "\u00fc", "value": b"2"}]],
        "timestamp": [1_000_000, 2_000_000, 3_000_000],
    }
    table = pa.table(
        {
            **{name: pa.array(rows[name], pa.binary()) for name in ("key", "value")},
            "headers": pa.array(rows["headers"], HEADERS_TYPE),
            "timestamp": pa.array(rows["timestamp"], pa.timestamp("us", tz="UTC")),
        }
    )
    ((partition, raw),) = encode(table, partitions=1, now_ms=NOW, compression=codec)
    assert (partition, parse_header(raw).compression) == (0, CODECS[codec])
    (found,) = decode(raw, topic="t", partition=0, columns=COLUMNS)
    assert {name: found.column(name).to_pylist() for name in ("key", "value", "headers")} == {
        name: rows[name] for name in ("key", "value", "headers")
    }
    assert found.column("timestamp").equals(table["timestamp"].combine_chunks())
    # And what was read can be written.
    assert len(list(encoder().batches(found))) == 1


def test_a_producers_name_and_sequence() -> None:
    (batch,) = encoder().batches(pa.table({"value": [b"x", b"y"]}))
    raw = batch.build(compression=CODECS["lz4"], producer_id=7, producer_epoch=2, base_sequence=40)
    header = parse_header(raw)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (7, 2, 40, 2)
    assert check_crc(raw, 0, len(raw))
    assert raw == encode_batch(
        decode_batch(batch.raw), compression=CODECS["lz4"], producer_id=7, producer_epoch=2, base_sequence=40
    )


# What callers give


def test_text_and_large_types_are_taken_for_bytes() -> None:
    for kind in (pa.string(), pa.large_string(), pa.large_binary(), pa.string_view(), pa.binary_view()):
        table = pa.table({"value": pa.array(["\u00fc", None, ""]).cast(kind)})
        (batch,) = encoder().batches(table)
        assert [one.value for one in decode_batch(batch.raw)] == ["\u00fc".encode(), None, b""]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_become_milliseconds(unit: str) -> None:
    many = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    column = pa.array([7 * many, None], pa.timestamp(unit))
    (batch,) = encoder().batches(pa.table({"value": [b"x", b"y"], "timestamp": column}))
    assert [one.timestamp for one in decode_batch(batch.raw)] == [7000, NOW]


def test_frames_of_polars() -> None:
    frame = pl.DataFrame({"key": ["a", None], "value": ["one", "two"], "partition": [1, 0]})
    batches = list(encoder(2).batches(frame))
    assert read_back(batches) == {0: [(None, b"two", NOW, ())], 1: [(b"a", b"one", NOW, ())]}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"key": [b"k"]}, "no column 'value'"),
        ({"value": [b"v"], "keys": [b"k"]}, "no column 'keys'"),
        ({"value": [1]}, "'value' is int64"),
        ({"value": [b"v"], "partition": ["1"]}, "'partition' is string"),
        ({"value": [b"v"], "partition": [2**40]}, "'partition' is int64"),
        ({"value": [b"v"], "timestamp": ["now"]}, "'timestamp' is string"),
        ({"value": [b"v"], "headers": [[b"h"]]}, "'headers' is list"),
    ],
)
def test_columns_that_no_record_has(table: dict[str, Any], said: str) -> None:
    with pytest.raises(BadColumns, match=said):
        list(encoder().batches(pa.table(table)))


def test_what_is_no_table() -> None:
    with pytest.raises(BadColumns, match="not list"):
        list(encoder().batches([b"x"]))


def test_rows_that_cannot_be_records() -> None:
    value = [b"v"] * 2
    with pytest.raises(BadRow, match="row 1: there is no partition 3: the topic has 3"):
        list(encoder(3).batches(pa.table({"value": value, "partition": [0, 3]})))
    with pytest.raises(BadRow, match="row 0: there is no partition -1"):
        list(encoder(3).batches(pa.table({"value": value, "partition": [-1, 3]})))
    with pytest.raises(BadRow, match="row 1: its timestamp lies before 1970"):
        list(encoder().batches(pa.table({"value": value, "timestamp": [0, -1]})))
    headers = pa.array([[], [{"key": None, "value": b"x"}]], HEADERS_TYPE)
    with pytest.raises(BadRow, match="row 1: a header has no key"):
        list(encoder().batches(pa.table({"value": value, "headers": headers})))
    headers = pa.array([[None], []], HEADERS_TYPE)
    with pytest.raises(BadRow, match="row 0: a header has no key"):
        list(encoder().batches(pa.table({"value": value, "headers": headers})))


def test_no_rows_make_no_batches() -> None:
    assert list(encoder().batches(pa.table({"value": pa.array([], pa.binary())}))) == []


@pytest.mark.parametrize(
    "wrong",
    [{"partitions": 0}, {"batch_bytes": 0}, {"record_bytes_max": 2**31}, {"turns": [1]}, {"turns": []}],
)
def test_bounds_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|bytes"):
        encoder(**wrong)
