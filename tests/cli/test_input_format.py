"""What `produce -f` reads: numbers as `consume -f` writes them, and none that there cannot be."""

from __future__ import annotations

import pytest

from ottla.cli.envelope import RecordEnvelope, envelope
from ottla.cli.input_format import InputFormat
from ottla.cli.lines import LineFault
from ottla.cli.record_format import parse_format
from ottla.client.records import ConsumerRecord


@pytest.mark.parametrize("form", ["", "{ascii}", "{big64}", "{little64}", "{hex64}"])
@pytest.mark.parametrize(("timestamp", "read"), [(-1, None), (0, 0), (1_795_255_200_000, 1_795_255_200_000)])
def test_a_record_without_a_time_goes_out_and_comes_in(form: str, timestamp: int, read: int | None) -> None:
    text = f"%d{form} %v\\n"
    line = parse_format(text, b"")(ConsumerRecord("t", 0, 0, timestamp, 0, None, b"v", [], -1))
    found = InputFormat(text).next_record(line, 0, is_last=True)
    assert found is not None
    assert (found[0].timestamp, found[0].value, found[1]) == (read, b"v", len(line))


def test_a_time_is_waited_for() -> None:
    reading = InputFormat("%d\\n")
    assert reading.next_record(b"-", 0, is_last=False) is None
    assert reading.next_record(b"-1", 0, is_last=False) is None
    with pytest.raises(LineFault, match="is not a number"):
        reading.next_record(b"-\n", 0, is_last=False)


def test_an_envelope_without_a_time_goes_out_and_comes_in() -> None:
    line = envelope(
        topic="t", partition=0, offset=0, is_append_time=False, timestamp=-1, headers=[], key=None, value=b"v"
    )
    assert RecordEnvelope(line).timestamp is None


@pytest.mark.parametrize("digits", ["-001", "+001", " 001", "0_01", "1e+1"])
def test_a_length_is_made_of_digits(digits: str) -> None:
    """A negative one would go back to what was read before, and round for ever."""
    with pytest.raises(LineFault, match="is not a number"):
        InputFormat("%V{4}%v").next_record(f"{digits}abc".encode(), 0, is_last=True)
    with pytest.raises(LineFault, match="is not a number"):
        InputFormat("%V{hex16}%v").next_record(f"-{digits[1:]}abc".encode(), 0, is_last=True)


def test_lengths_of_digits() -> None:
    for text, line in (("%V{4}%v", b"0003abc"), ("%V{hex16}%v", b"000aABCDEFGHIJ"), ("%V{hex16}%v", b"000Aabcdefghij")):
        found = InputFormat(text).next_record(line, 0, is_last=True)
        assert found is not None
        assert found[1] == len(line)
