import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.formats import epoch_checkpoint
from ottla.storage.formats.errors import FormatError


@given(st.sets(st.integers(0, 2**31 - 1), max_size=20), st.data())
def test_what_was_written_is_read(epochs, data):
    starts = sorted(data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=len(epochs), max_size=len(epochs))))
    entries = list(zip(sorted(epochs), starts, strict=True))
    assert epoch_checkpoint.decode(epoch_checkpoint.encode(entries)) == entries


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    try:
        entries = epoch_checkpoint.decode(data)
    except FormatError:
        return
    assert entries == sorted(set(entries))


def test_bytes_are_kafkas():
    assert epoch_checkpoint.encode([(0, 3), (2, 40)]) == b"0\n2\n0 3\n2 40\n"


@pytest.mark.parametrize("text", [b"0\n2\n1 5\n1 6\n", b"0\n2\n2 5\n1 6\n", b"0\n2\n1 6\n2 5\n", b"0\n1\n1 5 7\n"])
def test_epochs_out_of_order_are_refused(text):
    with pytest.raises(FormatError):
        epoch_checkpoint.decode(text)
