"""Whatever bytes come, decoders raise nothing but their own error, and the two of them agree."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import example, given
from hypothesis import strategies as st
from tests.records.generated_records import NOW, batches
from tests.searches import examples

from ottla.records.batch import COUNT_AT, HEADER_SIZE, LENGTH_AT, MAGIC_AT, iterate, parse_header, validate_header
from ottla.records.control import parse_control
from ottla.records.errors import RecordError
from ottla.records.record import Record, decode_batch
from ottla.records.scan import scan_batch
from ottla.records.validate import AppendRules, check_header, check_records, produced_batch

BOUND = 1 << 20


def _decoded(raw: bytes, *, check_crcs: bool) -> list[Record] | None:
    try:
        return decode_batch(raw, max_decompressed=BOUND, check_crcs=check_crcs)
    except RecordError:
        return None


def _read_every_way(raw: bytes) -> None:
    for check_crcs in (True, False):
        records = _decoded(raw, check_crcs=check_crcs)
        try:
            columns = scan_batch(raw, max_decompressed=BOUND, check_crcs=check_crcs)
        except RecordError:
            # What alone the columns cannot hold are numbers beyond 64 bits.
            assert records is None or any(not -(2**63) <= r.timestamp < 2**63 for r in records)
            continue
        assert records is not None
        assert columns.offsets.tolist() == [record.offset for record in records]
        assert [columns.headers(index) for index in range(len(records))] == [record.headers for record in records]
    try:
        for _, header in iterate(raw, 0, len(raw)):
            validate_header(header)
    except RecordError:
        pass
    rules = AppendRules(max_message_bytes=1 << 20, compacted=True, before_max_ms=5, after_max_ms=5)
    for version in (3, 9):
        try:
            header = produced_batch(raw, 0, len(raw), api_version=version)
            check_header(header, raw, 0, rules, NOW)
            check_records(header, raw, 0, rules, NOW, bytes_max=BOUND)
        except RecordError:
            pass


@given(st.binary(max_size=200))
@example(bytes(HEADER_SIZE))
@example(bytes(17))
def test_random_bytes(raw: bytes) -> None:
    _read_every_way(raw)


@examples(400)
@given(batches(), st.data())
def test_mutated_batches(raw: bytes, data: st.DataObject) -> None:
    mutated = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 5))):
        # Most of a large batch is value bytes: aim at the header and at the first records instead.
        place = data.draw(st.integers(0, min(len(mutated) - 1, HEADER_SIZE + 60)))
        mutated[place] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 127, 128, 255])))
    if data.draw(st.booleans()):
        del mutated[data.draw(st.integers(0, len(mutated))) :]
    _read_every_way(bytes(mutated))


@given(st.binary(max_size=120), st.integers(0, 4), st.integers(-1, 2**31 - 1))
def test_random_records_under_a_sound_header(payload: bytes, codec: int, count: int) -> None:
    raw = bytearray(HEADER_SIZE) + payload
    struct.pack_into(">i", raw, LENGTH_AT, len(raw) - 12)
    raw[MAGIC_AT] = 2
    raw[22] = codec
    struct.pack_into(">i", raw, COUNT_AT, count)
    struct.pack_into(">i", raw, 23, 2**31 - 1)
    assert parse_header(raw).count == count
    _read_every_way(bytes(raw))


@given(st.none() | st.binary(max_size=8), st.none() | st.binary(max_size=8))
def test_control_records(key: bytes | None, value: bytes | None) -> None:
    with contextlib.suppress(RecordError):
        parse_control(key, value)
