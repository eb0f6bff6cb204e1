"""Source batches made ready for a target: each is one that a broker takes, with the records that are to be copied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.batches import Preparation
from ottla.mirror.pairs import Pair
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import DELETE_HORIZON, MAGIC_AT, parse_header
from ottla.records.builder import BatchBuilder, attribute_bits, build_batch, encode_record
from ottla.records.control import ControlType, control_batch
from ottla.records.errors import CorruptBatch, UnsupportedMagic
from ottla.records.plain import is_plain
from ottla.records.record import decode_batch
from ottla.records.rewrite import filter_batch
from ottla.records.scan import scan_batch

PRODUCER = (1 << 62) + 7
CODECS = [0, 1, 2, 3, 4]


def batch(base: int, values: list[bytes], codec: int = 0, **fields: int | bool) -> bytes:
    builder = BatchBuilder()
    for number, value in enumerate(values):
        builder.append(1_000 + number, b"k" if number % 2 else None, value, (("h", None),) if number % 3 == 0 else ())
    return builder.build(compression=codec, base_offset=base, **fields)  # type: ignore[arg-type]


def prepared(buf: bytes, source: int = 0, target: int = 0, aborted: AbortedTransactions | None = None) -> Preparation:
    preparation = Preparation(PRODUCER, source, target, aborted, check_crcs=True)
    pos = 0
    while pos < len(buf):
        pos = preparation.take(buf, pos)
    return preparation


def contents(buf: bytes | bytearray) -> list[tuple[object, ...]]:
    return [record[1:] for record in decode_batch(buf)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_whole_batch_keeps_its_bytes_but_for_its_header(codec: int) -> None:
    original = batch(500, [b"v" * 30] * 20, codec, producer_id=5, producer_epoch=2, base_sequence=7, leader_epoch=3)
    (ready,) = prepared(original, 500, 2**31 + 4).batches
    assert is_plain(ready.data), "a target takes it without a look at its records"
    assert ready.data[61:] == original[61:]
    header = parse_header(ready.data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (PRODUCER, 0, 4)
    assert (ready.target, ready.target_end) == (2**31 + 4, 2**31 + 24)
    assert (ready.last_source, ready.source_end) == (519, 520)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_with_gaps_is_made_anew_without(codec: int) -> None:
    whole = batch(10, [b"v%d" % n for n in range(8)], codec)
    gapped = filter_batch(scan_batch(whole), [1, 2, 5])
    preparation = prepared(gapped, 10, 100)
    (ready,) = preparation.batches
    assert is_plain(ready.data)
    assert parse_header(ready.data).compression == codec
    assert contents(ready.data) == contents(gapped)
    assert preparation.pairs == [Pair(11, 100), Pair(15, 102)]
    assert (ready.last_source, ready.source_end, preparation.source) == (15, 18, 18)


def test_times_count_from_the_first_record_where_they_did_from_a_delete_horizon() -> None:
    whole = batch(0, [b"v%d" % n for n in range(3)])
    cleaned = filter_batch(scan_batch(whole), [0, 1, 2], delete_horizon_ms=999_999)
    assert parse_header(cleaned).attributes & DELETE_HORIZON
    (ready,) = prepared(cleaned).batches
    assert is_plain(ready.data)
    assert contents(ready.data) == contents(whole)


def test_times_that_a_broker_has_set_stay() -> None:
    appended = build_batch(
        encode_record(0, 0, None, b"a", ()) + encode_record(1, 5, None, b"b", ()),
        count=2,
        last_offset_delta=1,
        base_timestamp=10,
        max_timestamp=77,
        attributes=attribute_bits(timestamp_type=1),
    )
    (ready,) = prepared(appended).batches
    assert is_plain(ready.data)
    assert [record.timestamp for record in decode_batch(ready.data)] == [77, 77]


def test_a_batch_that_begins_before_the_place_is_cut_there() -> None:
    preparation = prepared(batch(10, [b"%d" % n for n in range(5)]), 13, 3)
    (ready,) = preparation.batches
    assert [record.value for record in decode_batch(ready.data)] == [b"3", b"4"]
    assert preparation.pairs == [Pair(13, 3)]
    assert prepared(batch(10, [b"x"] * 5), 15, 3).batches == [], "all of it was copied"


def test_markers_and_empty_batches_are_passed_over() -> None:
    marker = control_batch(
        ControlType.COMMIT, timestamp=1, producer_id=5, producer_epoch=0, coordinator_epoch=0, base_offset=2
    )
    emptied = build_batch(b"", count=0, last_offset_delta=3, base_timestamp=-1, max_timestamp=-1, base_offset=3)
    written = batch(0, [b"a", b"b"], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    preparation = prepared(written + marker + emptied + batch(7, [b"c"]))
    assert [ready.target for ready in preparation.batches] == [0, 2]
    assert all(is_plain(ready.data) for ready in preparation.batches)
    assert preparation.pairs == [Pair(0, 0), Pair(7, 2)]
    assert preparation.source == 8


def test_what_was_aborted_is_left_out_for_a_reader_of_committed_records() -> None:
    def of(producer: int, base: int) -> bytes:
        return batch(base, [b"x"] * 2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    abort = control_batch(
        ControlType.ABORT, timestamp=1, producer_id=5, producer_epoch=0, coordinator_epoch=0, base_offset=4
    )
    fetched = of(5, 0) + of(6, 2) + abort + of(5, 5)
    assert prepared(fetched, aborted=AbortedTransactions([(0, 5)])).pairs == [Pair(2, 0), Pair(5, 2)]
    assert prepared(fetched).pairs == [Pair(0, 0), Pair(2, 2), Pair(5, 4)]


def test_damage_is_found_before_it_is_copied() -> None:
    damaged = bytearray(batch(0, [b"v" * 50]))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch):
        prepared(bytes(damaged))


def test_records_of_an_older_format_are_refused_by_name() -> None:
    old = bytearray(batch(0, [b"v"]))
    old[MAGIC_AT] = 1
    with pytest.raises(UnsupportedMagic):
        prepared(bytes(old))


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(CODECS), st.sets(st.integers(0, 5))), max_size=8),
    st.integers(0, 20),
    st.integers(0, 2**40),
)
def test_copies_have_the_records_of_their_sources_in_a_row(
    shapes: list[tuple[int, int, set[int]]], begin: int, target: int
) -> None:
    fetched, base = b"", 0
    for count, codec, gone in shapes:
        whole = batch(base, [b"%d" % (base + n) for n in range(count)], codec)
        keep = [n for n in range(count) if n not in gone]
        if keep:
            fetched += filter_batch(scan_batch(whole), keep)
        base += count
    wanted = []
    pos = 0
    while pos < len(fetched):
        wanted += [record for record in decode_batch(fetched, pos) if record.offset >= begin]
        pos += parse_header(fetched, pos).size
    preparation = prepared(fetched, begin, target)
    assert all(is_plain(ready.data) for ready in preparation.batches)
    got = [record for ready in preparation.batches for record in decode_batch(ready.data)]
    assert [record[1:] for record in got] == [record[1:] for record in wanted]
    following = target
    for ready in preparation.batches:
        assert ready.target == following
        following = ready.target_end
    assert preparation.target == following == target + len(wanted)


@pytest.mark.parametrize(
    ("base", "first", "last"),
    [
        (2**63 - 1, 0, 1),
        (0, -(2**63), 2**63 - 1),  # made anew they count from the first
        (0, 2**63 - 1, -(2**63)),
    ],
)
def test_times_that_no_batch_can_hold_are_a_damaged_batch(base: int, first: int, last: int) -> None:
    """Made anew because of a gap. The error names the batch, where another would end the mirror's task."""
    records = [encode_record(0, first, b"k", b"v", ()), encode_record(2, last, b"k", b"v", ())]
    made = build_batch(b"".join(records), count=2, last_offset_delta=2, base_timestamp=base, max_timestamp=base)
    with pytest.raises(CorruptBatch, match="offset 0"):
        prepared(made)


@pytest.mark.parametrize(("base", "last"), [(0, 2**63 - 1), (2**63 - 1, -(2**63))])
def test_times_far_from_each_other_are_copied(base: int, last: int) -> None:
    records = [encode_record(0, 0, b"k", b"v", ()), encode_record(2, last, b"k", b"v", ())]
    made = build_batch(b"".join(records), count=2, last_offset_delta=2, base_timestamp=base, max_timestamp=base)
    assert [one[0] for one in contents(prepared(made).batches[0].data)] == [base, base + last]
