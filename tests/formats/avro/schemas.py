"""Avro schemas at random, with values of them, and one schema with everything in it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "Everything",
    "namespace": "tests",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "text", "type": "string"},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["HEARTS", "SPADES"]}},
        {"name": "maybe", "type": ["null", "string"]},
        {"name": "numbers", "type": {"type": "array", "items": "long"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {
            "name": "inner",
            "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": ["null", "double"]}]},
        },
        {"name": "more", "type": {"type": "array", "items": "Inner"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at_ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "at_us", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "when_ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "when_us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "here_us", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {
            "name": "rate",
            "type": {"type": "fixed", "name": "Rate", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 4},
        },
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "wide", "type": ["int", "long"]},
        {"name": "either", "type": ["null", "string", "boolean", "Suit", "Inner"]},
    ],
}
VALUE: dict[str, Any] = {
    "flag": True,
    "small": -(2**31),
    "large": 2**63 - 1,
    "single": 1.5,
    "double": -2.25,
    "raw": b"\x00\xff",
    "text": "héllo",
    "four": b"abcd",
    "suit": "SPADES",
    "maybe": None,
    "numbers": [0, -1, 300],
    "counts": {"a": 1, "b": -2},
    "inner": {"x": 0.5},
    "more": [{"x": None}, {"x": 2.0}],
    "day": dt.date(2026, 1, 2),
    "at_ms": dt.time(23, 59, 59, 999_000),
    "at_us": dt.time(0, 0, 0, 1),
    "when_ms": dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC),
    "when_us": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    "here_us": dt.datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001  # a local one has no zone
    "price": Decimal("-12345678.90"),
    "rate": Decimal("1.2500"),
    "id": UUID(int=5),
    "wide": 2**40,
    "either": {"x": 1.0},
}

_LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=20)),
    ("string", st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 30), timezones=st.just(dt.UTC)),  # noqa: DTZ001
    ),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        # fastavro writes -128 and its like with a byte more than Java does, and ours.
        st.integers(-(10**9) + 1, 10**9 - 1)
        .filter(lambda n: n not in {-(2**7), -(2**15), -(2**23)})
        .map(lambda n: Decimal(n).scaleb(-3)),
    ),
]
Pair = tuple[Any, st.SearchStrategy[Any]]


@st.composite
def pairs(draw: st.DrawFn, depth: int = 3) -> Pair:
    """A schema as JSON, without names of its own, and a strategy for its values."""
    kind = draw(st.sampled_from(["leaf", "leaf", "array", "map", "maybe", "record", "enum", "fixed"]))
    if kind == "leaf" or not depth:
        return draw(st.sampled_from(_LEAVES))
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=6, unique=True))
        return {"type": "enum", "name": "E", "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(0, 9))
        return {"type": "fixed", "name": "F", "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        fields = [draw(pairs(depth - 1)) for _ in range(draw(st.integers(0, 4)))]
        schema = {
            "type": "record",
            "name": "R",
            "fields": [{"name": f"f{at}", "type": one} for at, (one, _) in enumerate(fields)],
        }
        return schema, st.fixed_dictionaries({f"f{at}": values for at, (_, values) in enumerate(fields)})
    inner, values = draw(pairs(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(st.text("abc", max_size=3), values, max_size=3)
    if inner == "null" or isinstance(inner, list):
        return inner, values
    return ["null", inner], st.none() | values


@st.composite
def values_of_schemas(draw: st.DrawFn) -> tuple[str, Any]:
    schema, values = draw(pairs())
    return json.dumps(renamed(schema)), draw(values)


def renamed(schema: Any) -> Any:
    """With a name of its own for each named type."""
    return _renamed(schema, count())


def _renamed(schema: Any, numbers: Iterator[int]) -> Any:
    if isinstance(schema, list):
        return [_renamed(one, numbers) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _renamed(one, numbers) if key in {"type", "items", "values"} else one for key, one in schema.items()}
    if schema["type"] in {"record", "enum", "fixed"}:
        made["name"] = f"N{next(numbers)}"
    if schema["type"] == "record":
        made["fields"] = [{**one, "type": _renamed(one["type"], numbers)} for one in schema["fields"]]
    return made
