from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.formats import partition_metadata
from ottla.storage.formats.errors import FormatError


@given(st.binary(min_size=16, max_size=16).filter(any))
def test_what_was_written_is_read(topic_id):
    assert partition_metadata.decode(partition_metadata.encode(topic_id)) == topic_id


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data):
    with suppress(FormatError):
        partition_metadata.decode(data)


def test_bytes_are_kafkas():
    assert partition_metadata.encode(bytes(range(16))) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"version: 0\n",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\nmore: 1",
    ],
)
def test_damage_is_refused(text):
    with pytest.raises(FormatError):
        partition_metadata.decode(text)
