"""The forms of an unsigned varint agree: appended, by itself, its size, and as a length that counts from one."""

from __future__ import annotations

import pytest

from ottla.protocol.primitives import LENGTH_MAX, find_compact_length, put_uvarint, read_uvarint, uvarint, uvarint_size

EDGES = [edge + step for bits in (7, 14, 21, 28) for edge in (1 << bits,) for step in (-1, 0, 1)]


@pytest.mark.parametrize("value", [0, 1, 2, *EDGES, LENGTH_MAX])
def test_one_number_in_all_forms(value: int) -> None:
    appended = bytearray(b"before")
    put_uvarint(appended, value)
    assert appended == b"before" + uvarint(value)
    assert uvarint_size(value) == len(uvarint(value))
    assert read_uvarint(appended, 6) == (value, len(appended))
    assert find_compact_length(appended, 6, len(appended)) == (value - 1, len(appended))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff", b"\x80" * 6])
def test_a_length_that_does_not_end(data: bytes) -> None:
    assert find_compact_length(data, 0, len(data))[0] == -1
