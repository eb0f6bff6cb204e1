"""Variable-length integers, against the definition and at the edges of their tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import varint
from ottla.records.errors import CorruptBatch

EDGES = sorted({sign * (1 << bits) + off for bits in range(0, 63, 7) for sign in (1, -1) for off in (-1, 0, 1)})


def by_definition(number: int) -> bytes:
    folded = 2 * number if number >= 0 else -2 * number - 1
    out = []
    while True:
        folded, low = divmod(folded, 128)
        out.append(low + (128 if folded else 0))
        if not folded:
            return bytes(out)


@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES))
def test_encoded_as_defined_and_read_back(number: int) -> None:
    raw = varint.encode(number)
    assert raw == by_definition(number)
    assert varint.read_varlong(b"\xff" + raw + b"\x7f", 1) == (number, 1 + len(raw))
    if -(2**31) <= number < 2**31:
        assert varint.read_varint(raw + b"\x01", 0) == (number, len(raw))
        folded, end = varint.read_folded(raw, 0)
        assert (folded, end) == ((number << 1) ^ (number >> 63), len(raw))


def test_small_numbers_are_in_the_table() -> None:
    assert [by_definition(number) for number in range(varint.SMALL_COUNT)] == list(varint.SMALL)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**80])
def test_more_than_64_bits_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        varint.encode(number)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_cut_number_is_behind_the_end(number: int) -> None:
    raw = varint.encode(number)
    for size in range(len(raw)):
        with pytest.raises(IndexError):
            varint.read_varlong(raw[:size], 0)


def test_too_many_bytes_are_corrupt() -> None:
    for read, most in ((varint.read_folded, 5), (varint.read_varint, 5), (varint.read_varlong, 10)):
        assert read(b"\x80" * (most - 1) + b"\x00", 0) == (0, most)
        with pytest.raises(CorruptBatch):
            read(b"\x80" * most + b"\x00", 0)


def test_bits_beyond_the_width_are_dropped_as_in_java() -> None:
    assert varint.read_varint(b"\xff\xff\xff\xff\x7f", 0) == (-(2**31), 5)
    assert varint.read_varlong(b"\xff" * 9 + b"\x7f", 0) == (-(2**63), 10)
