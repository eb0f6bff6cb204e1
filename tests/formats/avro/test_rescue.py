"""What a rescue column has of fields that the column's schema does not know, and that it makes no good row bad."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.registry_server import RegistryServer

from ottla.formats import decoder
from ottla.formats.avro.encoding import writer_of
from ottla.formats.avro.schema import parse_schema
from ottla.formats.errors import BadSpec
from ottla.formats.framing import header

ID = {"name": "id", "type": "long"}


def order(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [ID, *fields]}


def rescued(registry: RegistryServer, writer: Any, reader: Any, values: list[Any]) -> tuple[list[Any], list[Any]]:
    """The rows and their errors."""
    schema_id = registry.add("orders", json.dumps(writer))
    registry.add("orders", json.dumps(reader))
    write = writer_of(parse_schema(json.dumps(writer)))
    rows = []
    for value in values:
        raw = bytearray(header(schema_id))
        write(value, raw)
        rows.append(bytes(raw))
    ours = decoder("avro:orders", **{"schema.registry.url": registry.url}, rescue_column="more")
    column, errors = ours.decode(pa.array(rows))
    return column.to_pylist(), errors.to_pylist()


NOTE = {"name": "note", "type": "string"}
HELLO = {"id": 1, "note": "hello"}
SAVED = {"id": 1, "more": '{"note":"hello"}'}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (["null", order(NOTE)], ["null", order()]),
        (["null", order(NOTE)], order()),
        (order(NOTE), ["null", order()]),
    ],
)
def test_a_record_in_a_union_with_null(registry: RegistryServer, writer: Any, reader: Any) -> None:
    rows, errors = rescued(registry, writer, reader, [HELLO])
    assert (rows, errors) == ([SAVED], [None])


def test_a_row_that_is_null(registry: RegistryServer) -> None:
    rows, errors = rescued(registry, ["null", order(NOTE)], ["null", order()], [None, HELLO])
    assert (rows, errors) == ([None, SAVED], [None, None])


def test_a_union_of_several_has_no_place_for_it(registry: RegistryServer) -> None:
    several = [order(), {**order(), "name": "Bill"}]
    with pytest.raises(BadSpec, match="beside the fields of a record"):
        rescued(registry, several, several, [])


@pytest.mark.parametrize(
    ("unknown", "value", "said"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, 2**62, str(2**62)),
        ({"type": "array", "items": {"type": "int", "logicalType": "date"}}, [2**31 - 1], f"[{2**31 - 1}]"),
        ("double", float("nan"), '"NaN"'),
        ({"type": "map", "values": "float"}, {"a": float("-inf"), "b": 0.5}, '{"a":"-Infinity","b":0.5}'),
        ({"type": "array", "items": "double"}, [float("inf")], '["Infinity"]'),
    ],
)
def test_a_value_that_python_or_json_cannot_say_makes_no_row_bad(
    registry: RegistryServer, unknown: Any, value: Any, said: str
) -> None:
    writer = order({"name": "x", "type": unknown})
    rows, errors = rescued(registry, writer, order(), [{"id": 1, "x": value}])
    assert (rows, errors) == ([{"id": 1, "more": f'{{"x":{said}}}'}], [None])


def test_a_field_that_an_alias_does_not_take_is_rescued(registry: RegistryServer) -> None:
    writer = order({"name": "old", "type": "int"}, {"name": "new", "type": "int"})
    reader = order({"name": "new", "type": "int", "aliases": ["old"]})
    rows, _ = rescued(registry, writer, reader, [{"id": 1, "old": 2, "new": 3}])
    assert rows == [{"id": 1, "new": 3, "more": '{"old":2}'}]
