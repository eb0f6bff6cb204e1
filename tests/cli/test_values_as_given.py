"""What stands between a record's parts, or in a header, is taken as it was written: blanks, tabs and brackets, too."""

from __future__ import annotations

import pytest

from ottla.cli.assignments import assignments
from ottla.cli.lines import kafka_lines
from ottla.cli.produce import _headers
from ottla.cli.record_format import console_format
from ottla.client.records import ConsumerRecord

RECORD = ConsumerRecord("t", 0, 0, 0, 0, b"k", b"v", [], -1)


@pytest.mark.parametrize("value", [" ", "\t", "\n", "", "[,]", " , ", "="])
def test_a_value_of_property(value: str) -> None:
    assert assignments("--property", [f"key.separator={value}"]) == {"key.separator": value}


def test_a_blank_is_a_separator_and_not_the_marker_of_null() -> None:
    given = assignments("--property", ["parse.key= True ", "key.separator= ", "null.marker= "])
    parse = kafka_lines({name: value.encode() for name, value in given.items()})
    assert parse(b"k v")[:2] == (b"k", b"v")
    assert parse(b"k ")[:2] == (b"k", b"")
    shown = console_format(assignments("--property", ["print.key=TRUE ", "key.separator= ", "line.separator=[]"]))
    assert shown(RECORD) == b"k v[]"


@pytest.mark.parametrize("text", ["h= x ", "h: x "])
def test_a_header(text: str) -> None:
    assert _headers([text]) == [("h", b" x ")]
