"""Batches to Arrow, compiled and in Python, against the decoder of objects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.arrow.batch_shapes import NOW, as_compiled, in_python, read, rows_by_objects, rows_of, some_batch, some_log
from tests.records.test_old_messages import FORMS, written

from ottla.arrow import decoding
from ottla.arrow.decoding import decode
from ottla.arrow.errors import BadColumns, UnrepresentableTime
from ottla.arrow.schema import COLUMNS, DEFAULT_COLUMNS, schema_of
from ottla.arrow.survey import ReadBounds
from ottla.client.consuming.assignment import AssignedPartition, Chunk
from ottla.client.errors import CorruptRecords
from ottla.model import TopicPartition
from ottla.native import compiled_batches, compiled_columns
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import LEADER_EPOCH_AT, iterate, patch_crc
from ottla.records.compression import CODECS, DECOMPRESSED_BYTES_MAX
from ottla.records.control import ControlType, control_batch
from ottla.records.errors import CorruptBatch, DecompressionTooLarge, UnsupportedMagic
from ottla.records.record import Record, encode_batch

LOGS = 25


@pytest.fixture(params=["compiled", "in Python"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with in_python() if request.param == "in Python" else as_compiled():
        yield request.param


def batch(offset: int, *values: bytes | None, **options: Any) -> bytes:
    records = [Record(offset + index, NOW, None, value) for index, value in enumerate(values)]
    return encode_batch(records, base_offset=offset, **options)


def test_logs_of_every_shape_become_the_rows_that_objects_would_be() -> None:
    for seed in range(LOGS):
        chance = Random(seed)
        raw = some_log(chance, 12)
        assert read(raw) == rows_by_objects(raw), seed
        for rows_max in (1, 7):
            assert read(raw, rows_max=rows_max) == rows_by_objects(raw), (seed, rows_max)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(codec: str) -> None:
    raw = b"".join(batch(at, b"one" * 50, None, b"", compression=CODECS[codec]) for at in range(0, 30, 3))
    assert read(raw) == rows_by_objects(raw)
    assert len(list(decode(raw, topic="t", partition=0))) == 1


def test_a_slice_of_offsets_is_cut_out_wherever_it_begins_and_ends() -> None:
    chance = Random(5)
    raw = some_log(chance, 8)
    offsets = [row[4] for row in rows_by_objects(raw)]
    edges = sorted({edge for offset in chance.sample(offsets, min(8, len(offsets))) for edge in (offset, offset + 1)})
    for first in (0, *edges):
        for until in (*edges, 2**63 - 1):
            assert read(raw, first=first, until=until) == rows_by_objects(raw, first, until)


def test_types_are_those_of_sparks_source() -> None:
    (found,) = decode(batch(0, b"x"), topic="orders", partition=7, columns=COLUMNS)
    assert found.schema == schema_of(COLUMNS)
    assert [str(kind) for kind in found.schema.types] == [
        "binary",
        "binary",
        "string",
        "int32",
        "int64",
        "timestamp[us, tz=UTC]",
        "int32",
        "list<element: struct<key: string, value: binary>>",
    ]
    assert schema_of().names == list(DEFAULT_COLUMNS)


def test_only_the_columns_that_are_asked_for_in_their_order() -> None:
    raw = batch(5, b"x", b"y")
    (found,) = decode(raw, topic="t", partition=0, columns=["offset", "value"])
    assert found.to_pydict() == {"offset": [5, 6], "value": [b"x", b"y"]}
    (found,) = decode(raw, topic="t", partition=9, columns=["partition"])
    assert found.to_pydict() == {"partition": [9, 9]}
    for wrong in ("value", [], ["value", "value"], ["values"]):
        with pytest.raises(BadColumns):
            list(decode(raw, topic="t", partition=0, columns=wrong))


def test_columns_that_are_not_asked_for_take_no_memory() -> None:
    raw = batch(0, *[b"x" * 1000] * 500)
    (found,) = decode(raw, topic="t", partition=0, columns=["offset"])
    assert found.nbytes == 8 * 500


def test_no_bytes_and_a_part_of_a_batch_have_no_rows() -> None:
    assert read(b"") == []
    whole, part = batch(0, b"one"), batch(1, b"two")
    for end in range(len(part)):
        assert read(whole + part[:end]) == rows_by_objects(whole)


def test_what_is_said_of_each_step() -> None:
    raw = batch(10, b"x", leader_epoch=4) + batch(20, b"y", b"z", leader_epoch=5)
    chosen = decoding.Decoder("t", 0, ("value",), ReadBounds(rows_max=1))
    first = chosen.step(raw, 0, len(raw))
    assert (first.next_offset, first.leader_epoch, first.ended) == (11, 4, False)
    second = chosen.step(raw, first.pos, len(raw))
    assert [rows.next_offset for rows in second.rows] == [21, 22]
    assert (second.next_offset, second.leader_epoch, second.pos, second.ended) == (22, 5, len(raw), True)
    third = chosen.step(raw, second.pos, len(raw))
    assert (third.rows, third.next_offset, third.ended) == ([], None, True)


def test_what_is_passed_over_moves_the_offset_on() -> None:
    marker = control_batch(
        ControlType.COMMIT, timestamp=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0, base_offset=7
    )
    chosen = decoding.Decoder("t", 0, ("value",), ReadBounds())
    assert chosen.step(marker, 0, len(marker)).next_offset == 8
    both = batch(5, b"x") + marker
    assert chosen.step(both, 0, len(both)).rows[0].next_offset == 8


def test_the_environment_can_ask_for_python_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")
    assert compiled_columns() is None
    assert compiled_batches() is None


# What is hidden


def test_aborted_transactions_are_left_out_and_nothing_else() -> None:
    def of(producer: int, offset: int, *, transactional: bool = True) -> bytes:
        return batch(offset, b"%d" % offset, producer_id=producer, producer_epoch=0, transactional=transactional)

    def marker(kind: ControlType, producer: int, offset: int) -> bytes:
        return control_batch(
            kind, timestamp=NOW, producer_id=producer, producer_epoch=0, coordinator_epoch=0, base_offset=offset
        )

    raw = b"".join(
        (
            of(1, 0),
            of(2, 1),
            marker(ControlType.COMMIT, 1, 2),
            of(1, 3),  # aborted
            of(1, 4, transactional=False),
            of(2, 5),
            marker(ControlType.ABORT, 1, 6),
            of(1, 7),
            marker(ControlType.COMMIT, 2, 8),
            marker(ControlType.COMMIT, 1, 9),
        )
    )
    for rows_max in (1, 2, 1000):
        found = read(raw, aborted=[(3, 1)], rows_max=rows_max)
        assert [row[4] for row in found] == [0, 1, 4, 5, 7]
        assert [row[4] for row in read(raw, aborted=[], rows_max=rows_max)] == [0, 1, 3, 4, 5, 7]


def test_a_group_that_is_cut_short_hides_what_it_has_to_when_it_goes_on(way: str) -> None:
    """What is read of a transaction that begins later must not hide what its producer had committed before."""
    first = batch(0, b"a" * 900, producer_id=1, producer_epoch=0, transactional=True, compression=CODECS["zstd"])
    second = batch(1, b"b" * 900, producer_id=1, producer_epoch=0, transactional=True, compression=CODECS["zstd"])
    commit, abort = (
        control_batch(kind, timestamp=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0, base_offset=at)
        for kind, at in ((ControlType.COMMIT, 2), (ControlType.ABORT, 4))
    )
    third = batch(3, b"c", producer_id=1, producer_epoch=0, transactional=True)
    raw = first + second + commit + third + abort + batch(5, b"d", producer_id=1, producer_epoch=0, transactional=True)
    # Compressed they fit together, unfolded they do not.
    found = read(raw, aborted=[(3, 1)], bytes_max=1000)
    assert [row[4] for row in found] == [0, 1, 5], way


def a_late_time_before_what_was_aborted() -> bytes:
    """A record that Arrow cannot hold the time of, one of a transaction, and the marker that aborts that."""
    return b"".join(
        (
            encode_batch([Record(0, 2**62, None, b"late")]),
            batch(1, b"aborted", producer_id=1, producer_epoch=0, transactional=True),
            control_batch(
                ControlType.ABORT, timestamp=NOW, producer_id=1, producer_epoch=0, coordinator_epoch=0, base_offset=2
            ),
        )
    )


def test_what_is_hidden_stays_hidden_when_it_is_read_again_after_an_error(way: str) -> None:
    raw, aborted = a_late_time_before_what_was_aborted(), AbortedTransactions([(1, 1)])
    with pytest.raises(UnrepresentableTime):
        decoding.Decoder("t", 0, COLUMNS, ReadBounds()).step(raw, 0, len(raw), aborted)
    found = decoding.Decoder("t", 0, ("value",), ReadBounds()).step(raw, 0, len(raw), aborted)
    assert [row for rows in found.rows for row in rows.batch.column(0).to_pylist()] == [b"late"], way


@pytest.mark.parametrize("goes_on", ["with rows", "with records"])
def test_a_consumer_that_goes_on_after_a_time_sees_nothing_that_was_aborted(goes_on: str, way: str) -> None:
    raw, one = a_late_time_before_what_was_aborted(), AssignedPartition(TopicPartition("t", 0))
    one.seek(0)
    one.chunks.append(Chunk(b"", raw, len(raw), [(1, 1)]))
    with pytest.raises(CorruptRecords, match="leave the column timestamp out"):
        one.take_arrow(COLUMNS, 10, check_crcs=True)
    taken: list[bytes | None] = []
    while one.has_records:
        if goes_on == "with rows":
            rows = one.take_arrow(("value",), 10, check_crcs=True)
            taken += [] if rows is None else rows.column(0).to_pylist()
        else:
            records = one.take(10, check_crcs=True, key_deserializer=None, value_deserializer=None)
            taken += [record.value for record in records]
    assert taken == [b"late"], way


# What ends an Arrow batch


def test_values_over_the_bound_together_start_another_arrow_batch() -> None:
    for codec in ("none", "zstd"):
        raw = b"".join(batch(at, b"x" * 1000, compression=CODECS[codec]) for at in range(10))
        found = list(decode(raw, topic="t", partition=0, bounds=ReadBounds(bytes_max=3500)))
        assert all(one.num_rows <= 4 for one in found)
        assert sum(one.num_rows for one in found) == 10
    mixed = batch(0, b"x" * 3000, compression=CODECS["zstd"]) + b"".join(batch(at, b"x" * 1000) for at in range(1, 4))
    found = list(decode(mixed, topic="t", partition=0, bounds=ReadBounds(bytes_max=3500)))
    assert found[0].num_rows <= 2, "Python's way ends behind the batch that goes over the bound"
    assert sum(one.num_rows for one in found) == 4
    with pytest.raises(ValueError, match="bytes_max"):
        list(decode(raw, topic="t", partition=0, bounds=ReadBounds(bytes_max=2**31 - 1)))


def test_a_batch_of_more_rows_than_wanted_comes_in_pieces() -> None:
    raw = batch(0, *[b"%d" % number for number in range(25)])
    found = list(decode(raw, topic="t", partition=0, columns=["value"], bounds=ReadBounds(rows_max=10)))
    assert [one.num_rows for one in found] == [10, 10, 5]
    assert found[1].column(0)[0].as_py() == b"10"


def test_another_type_of_time_starts_another_arrow_batch() -> None:
    raw = batch(0, b"x") + batch(1, b"y", timestamp_type=1) + batch(2, b"z", timestamp_type=1)
    found = list(decode(raw, topic="t", partition=0, columns=["timestampType"]))
    assert [one.column(0).to_pylist() for one in found] == [[0], [1, 1]]


# Bad input


def test_damage_is_raised_when_all_before_it_has_been_given_out() -> None:
    first, second, third = (bytearray(batch(at, b"value")) for at in range(3))
    second[-2] ^= 1
    found = decode(bytes(first + second + third), topic="t", partition=0, columns=COLUMNS)
    assert [row[4] for row in rows_of([next(found)])] == [0]
    with pytest.raises(CorruptBatch, match="checksum of the batch at offset 1"):
        next(found)


def test_damage_in_what_is_passed_over_is_found_too() -> None:
    """A bit could make a marker of records."""
    raw = bytearray(batch(0, b"value"))
    raw[22] |= 0x20
    with pytest.raises(CorruptBatch, match="checksum"):
        read(bytes(raw))
    assert read(bytes(raw), check_crcs=False) == []


def test_the_leader_epoch_is_not_summed() -> None:
    raw = bytearray(batch(0, b"value"))
    raw[LEADER_EPOCH_AT + 3] = 9
    assert len(read(bytes(raw))) == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused_by_name(magic: int) -> None:
    size = 14 + 8 * magic + 5
    message = (0).to_bytes(8, "big") + size.to_bytes(4, "big") + bytes(4) + bytes([magic, 0]) + bytes(size - 6)
    for raw in (message, message * 9):
        with pytest.raises(UnsupportedMagic, match=f"old format {magic}"):
            read(raw)
    found = decode(batch(0, b"x") + message * 9, topic="t", partition=0)
    assert next(found).num_rows == 1
    with pytest.raises(UnsupportedMagic):
        next(found)


@pytest.mark.parametrize(("magic", "codec"), FORMS)
def test_what_stands_before_messages_of_an_old_format_is_read(magic: int, codec: int) -> None:
    """As another writer makes them, behind batches of every shape; whatever stands behind them is not reached."""
    for seed in range(5):
        chance = Random(seed)
        before = some_log(chance, chance.randrange(4))
        raw = before + written(magic, codec, 2**40) + some_log(chance, 2)
        for columns in (COLUMNS, ("value",)):
            counts: list[int] = []
            found = decode(raw, topic="t", partition=3, columns=columns, bounds=ReadBounds(rows_max=20))
            with pytest.raises(UnsupportedMagic, match=f"old format {magic}"):
                counts.extend(batch.num_rows for batch in found)
            assert sum(counts) == len(rows_by_objects(before))


def test_an_unknown_format_is_damage() -> None:
    raw = bytearray(batch(0, b"x"))
    raw[16] = 3
    with pytest.raises(CorruptBatch, match="magic 3"):
        read(bytes(raw))


def test_header_names_that_are_not_utf8_are_replaced() -> None:
    raw = bytearray(encode_batch([Record(0, NOW, None, b"x", (("name", b"1"), ("\u00fc", None)))]))
    at = raw.index("\u00fc".encode())
    raw[at] = 0xFF
    patch_crc(raw, 0)
    assert read(bytes(raw))[0][7] == [{"key": "name", "value": b"1"}, {"key": "\ufffd\ufffd", "value": None}]


def test_many_headers_in_few_records() -> None:
    headers = tuple((f"h{number}", b"") for number in range(500))
    raw = encode_batch([Record(0, NOW, None, b"x", headers), Record(1, NOW, None, b"y")])
    assert read(raw) == rows_by_objects(raw)


def test_a_time_that_has_no_microseconds_is_named_and_can_be_left_out() -> None:
    raw = encode_batch([Record(3, 2**62, None, b"x")], base_offset=3)
    with pytest.raises(UnrepresentableTime, match="offset 3"):
        read(raw)
    (found,) = decode(raw, topic="t", partition=0, columns=["value"])
    assert found.num_rows == 1


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_of_more_bytes_than_any_reader_takes_is_refused(codec: str) -> None:
    bomb = encode_batch([Record(0, NOW, None, bytes(DECOMPRESSED_BYTES_MAX))], compression=CODECS[codec])
    with pytest.raises(DecompressionTooLarge, match="bound"):
        next(decode(bomb, topic="t", partition=0))


def test_memory_is_about_that_of_what_was_read() -> None:
    """Room was taken for as many bytes of keys as of values."""
    raw = batch(0, *[b"x" * 1000] * 500)
    (found,) = decode(raw, topic="t", partition=0, columns=["key", "value"])
    assert found.get_total_buffer_size() < 1.1 * len(raw)


def test_arrays_outlive_the_bytes_they_came_from() -> None:
    raw = bytearray(batch(0, b"before"))
    (found,) = decode(raw, topic="t", partition=0)
    raw[:] = bytes(len(raw))
    assert found.column("value").to_pylist() == [b"before"]
    assert isinstance(found, pa.RecordBatch)


def test_positions_of_batches_in_the_middle_of_a_buffer() -> None:
    chance = Random(3)
    raw = b"".join(some_batch(chance, at) for at in (0, 10**6, 2 * 10**6))
    (pos, _), *_ = list(iterate(raw, 0, len(raw)))[1:]
    chosen = decoding.Decoder("t", 3, COLUMNS, ReadBounds())
    found = chosen.step(raw, pos, len(raw))
    assert rows_of([rows.batch for rows in found.rows]) == rows_by_objects(raw[pos:])


def test_without_pyarrow_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; import ottla.arrow; ottla.arrow.decode"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("ArrowMissing: this needs pyarrow: pip install 'ottla[arrow]'")
