import struct
from contextlib import suppress

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.formats import producer_snapshot
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.producer_snapshot import ProducerEntry

i16 = st.integers(-(2**15), 2**15 - 1)
i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
entries = st.lists(st.builds(ProducerEntry, i64, i16, i32, i64, i32, i64, i32, i64), max_size=10)


@given(entries)
def test_what_was_written_is_read(producers):
    assert producer_snapshot.decode(producer_snapshot.encode(producers)) == producers


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with suppress(FormatError):
        producer_snapshot.decode(data)


@given(entries, st.data())
def test_any_flipped_bit_is_noticed(producers, data):
    good = producer_snapshot.encode(producers)
    bit = data.draw(st.integers(0, 8 * len(good) - 1))
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        producer_snapshot.decode(bytes(bad))


@pytest.mark.parametrize("count", [-1, 1, 2**31 - 1])
def test_a_count_that_lies_is_refused_although_the_checksum_is_right(count):
    body = struct.pack(">i", count)
    with pytest.raises(FormatError, match="announces"):
        producer_snapshot.decode(struct.pack(">hI", 1, crc32c.crc32c(body)) + body)


def test_an_unknown_version_is_refused():
    with pytest.raises(FormatError, match="version 2"):
        producer_snapshot.decode(b"\x00\x02" + producer_snapshot.encode([])[2:])


def test_bytes_are_as_specified():
    data = producer_snapshot.encode([ProducerEntry(1, 2, 3, 4, 5, 6, 7, -1)])
    assert data[:2] == b"\x00\x01"
    assert data[6:10] == b"\x00\x00\x00\x01"
    assert data[10:] == bytes.fromhex(
        "0000000000000001000200000003000000000000000400000005000000000000000600000007" + "ff" * 8
    )
