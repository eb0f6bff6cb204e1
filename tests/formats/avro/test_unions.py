"""Which branch of a union a value is written by."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.formats import decoder, encoder
from ottla.formats.avro.encoding import writer_of
from ottla.formats.avro.schema import parse_schema
from ottla.formats.errors import BadValue

MAP = {"type": "map", "values": "string"}
LIST = {"type": "array", "items": "string"}
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1}


def written(schema: Any, value: Any) -> bytes:
    out = bytearray()
    writer_of(parse_schema(json.dumps(schema)))(value, out)
    return bytes(out)


@pytest.mark.parametrize(
    ("union", "value", "branch"),
    [
        (["float", "double"], 0.5, 0),
        (["float", "double"], 0.1, 1),
        (["float", "double"], 1e39, 1),
        (["float", "double"], float("nan"), 0),
        (["float", "double"], float("-inf"), 0),
        (["float", "double"], 2**60, 0),
        (["float", "int"], 2**24 + 1, 1),
        (["null", "double", "long"], 2**53 + 1, 2),
        (["double", "long"], 2**53, 0),
        # Where no branch holds it, the first is taken that holds it rounded.
        (["null", "float", "int"], 0.1, 1),
        (["float", "long"], 2**70 + 1, 0),
        (["double", PRICE], Decimal("0.1"), 1),
        (["double", PRICE], Decimal("0.15"), 0),
        (["int", "float"], 5, 0),
        (["double", "bytes"], bytearray(b"12"), 1),
        (["double", "bytes"], memoryview(b"12"), 1),
        # A list is no map, though two letters can be unpacked as a key and a value.
        ([MAP, LIST], ["ab", "cd"], 1),
        ([MAP, LIST], ["abc"], 1),
        ([MAP, LIST], [], 1),
        ([MAP, LIST], {}, 0),
        ([MAP, LIST], {"a": "b"}, 0),
        (["null", MAP], [("a", "b")], 1),
        # A pair that names no branch is a list like any other.
        (["null", LIST], ("a", "b"), 1),
        (["null", LIST], ("", "b"), 1),
        (["null", LIST], ("array", ["b"]), 1),
    ],
)
def test_the_first_branch_that_holds_a_value(union: list[Any], value: Any, branch: int) -> None:
    assert written(union, value)[0] == 2 * branch


@pytest.mark.parametrize("value", [["ab"], [1], [("a", "b", "c")], [["a", "b"]], [()]])
def test_a_list_that_is_no_map(value: Any) -> None:
    with pytest.raises(BadValue, match=r"list .* is no map"):
        written(MAP, value)


def test_numbers_of_a_column_are_not_rounded(tmp_path: Path) -> None:
    """A union of float and double is a column of doubles."""
    path = tmp_path / "it.avsc"
    path.write_text(json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": ["float", "double"]}]}))
    column = pa.array([{"x": 0.1}, {"x": 0.5}])
    raw = encoder(f"avro:{path}").encode(column)
    assert [len(one) for one in raw.to_pylist()] == [9, 5]
    assert decoder(f"avro:{path}").decode(raw)[0].to_pylist() == [{"x": 0.1}, {"x": 0.5}]
