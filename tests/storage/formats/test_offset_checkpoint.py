from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import TopicPartition
from ottla.storage.formats import offset_checkpoint
from ottla.storage.formats.errors import FormatError

topics = st.text("abcXYZ019._-", min_size=1, max_size=249)
partitions = st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1))
offsets = st.dictionaries(partitions, st.integers(0, 2**63 - 1), max_size=20)


@given(offsets)
def test_what_was_written_is_read(mapping):
    assert offset_checkpoint.decode(offset_checkpoint.encode(mapping)) == mapping


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    try:
        decoded = offset_checkpoint.decode(data)
    except FormatError:
        return
    assert all(0 <= offset < 2**63 for offset in decoded.values())


@given(st.text("01234 \n\tab-", max_size=80))
def test_near_misses_are_read_or_refused(text):
    with suppress(FormatError):
        offset_checkpoint.decode(text.encode())


def test_bytes_are_kafkas():
    mapping = {TopicPartition("a-b", 3): 17, TopicPartition("c", 0): 0}
    assert offset_checkpoint.encode(mapping) == b"0\n2\na-b 3 17\nc 0 0\n"


def test_an_empty_file_is_an_empty_checkpoint():
    assert offset_checkpoint.decode(b"") == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"0\n", "before its count"),
        (b"1\n0\n", "version 1"),
        (b"0\n2\na 0 1\n", "announces 2 entries and has 1"),
        (b"0\n1\na 0 1\nb 0 1\n", "announces 1 entries and has 2"),
        (b"0\n1\na 0\n", "2 fields"),
        (b"0\n1\na 0 -1\n", "offset '-1'"),
        (b"0\n1\na 0 9223372036854775808\n", "offset"),
        (b"0\n1\na 2147483648 1\n", "partition"),
        (b"0\n1\na 0 1_0\n", "offset '1_0'"),
        ("0\n1\na 0 \u0661\n".encode(), "offset"),
        (b"0\n2\na 0 1\na 0 2\n", "twice"),
        (b"0\n1\na 0 1\x00\n", "offset"),
        (b"\xff\n", "not text"),
    ],
)
def test_damage_is_named(text, reason):
    with pytest.raises(FormatError, match=reason):
        offset_checkpoint.decode(text)
