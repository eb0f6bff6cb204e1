from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import TopicPartition
from ottla.storage.formats import clean_shutdown, move_marker
from ottla.storage.formats.errors import FormatError


@given(st.integers(-1, 2**63 - 1))
def test_what_was_written_is_read(epoch):
    assert clean_shutdown.decode(clean_shutdown.encode(epoch)) == epoch


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data):
    for decode in (clean_shutdown.decode, move_marker.decode):
        with suppress(FormatError):
            decode(data)


def test_bytes_are_kafkas():
    assert clean_shutdown.encode(11) == b'{"version":0,"brokerEpoch":11}'


def test_the_empty_marker_of_older_versions_is_a_clean_stop():
    assert clean_shutdown.decode(b"") == clean_shutdown.NO_BROKER_EPOCH


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[]",
        b'{"version":1,"brokerEpoch":1}',
        b'{"version":0}',
        b'{"version":0,"brokerEpoch":true}',
        b'{"version":0,"brokerEpoch":' + b"9" * 30 + b"}",
        b"[" * 2000,
        b'{"version":0,"brokerEpoch":-2}',
    ],
)
def test_damage_is_refused(text):
    with pytest.raises(FormatError):
        clean_shutdown.decode(text)


@given(st.integers(0, 2**63 - 1))
def test_a_move_marker_is_read_back(end_offset):
    assert move_marker.decode(move_marker.encode(end_offset)) == end_offset


def test_a_move_marker_names_its_partition():
    partition = TopicPartition("a.b-c", 4)
    assert move_marker.parse_name(move_marker.file_name(partition)) == partition
    assert move_marker.parse_name("a.b-c-4") is None
    assert move_marker.parse_name("x.ottla-moved") is None
