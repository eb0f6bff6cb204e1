"""The sink's columns, with the complaints of Spark's sink for Kafka."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)
from tests.spark.sink.conftest import frame

from ottla.formats import encoder
from ottla.spark.sink.columns import SinkColumns
from ottla.spark.sink.errors import BadSinkColumns

HEADERS = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("key binary", "Required attribute 'value' not found"),
        ("Value binary", "Required attribute 'value' not found"),
        ("value int", "value attribute unsupported type int. value must be a(n) string or binary"),
        ("value binary, key bigint", "key attribute unsupported type bigint. key must be a(n) string or binary"),
        ("value binary, partition bigint", "partition attribute unsupported type bigint. partition must be a(n) int"),
        (
            "value binary, headers strings",
            f"headers attribute unsupported type {HEADERS.replace('binary', 'string')}. headers must be a(n) {HEADERS}",
        ),
    ],
)
def test_frames_that_cannot_be_records(schema: str, text: str) -> None:
    with pytest.raises(BadSinkColumns) as caught:
        SinkColumns(frame(schema), "orders")
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("value binary", "topic option required when no 'topic' attribute is present. Use the topic option"),
        ("value binary, topic binary", "topic attribute unsupported type binary. topic must be a(n) string"),
    ],
)
def test_frames_without_a_topic(schema: str, text: str) -> None:
    with pytest.raises(BadSinkColumns) as caught:
        SinkColumns(frame(schema), None)
    assert text in str(caught.value)


def test_other_columns_are_left_out() -> None:
    schema = frame("offset bigint, value string, topic int, timestamp timestamp, key binary, value binary")
    columns = pickle.loads(pickle.dumps(SinkColumns(schema, "orders")))
    ours = [pa.array(["v"]), pa.array([b"k"])]
    rest = pa.array([1])
    rows = pa.RecordBatch.from_arrays([rest, ours[0], rest, rest, ours[1], rest], names=list("abcdef"))
    taken = columns.taken_from(rows, 0)
    assert taken.schema.names == ["value", "key"]
    assert taken.columns == ours


def test_a_null_topic_is_named_with_its_row() -> None:
    columns = SinkColumns(frame("topic string, value string"), None)
    rows = pa.RecordBatch.from_arrays([pa.array(["a", "b", None]), pa.array(["1", "2", "3"])], names=["topic", "value"])
    assert columns.taken_from(rows.slice(0, 2), 0).num_rows == 2
    with pytest.raises(BadSinkColumns, match=r"row 1002: null topic present in the data\. Use the topic option"):
        columns.taken_from(rows, 1000)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (VariantType(), "value is of type variant, which value_as cannot write"),
        (YearMonthIntervalType(), "value is of type interval year to month, which value_as cannot write"),
        (StructType([StructField("a", VariantType())]), "value.a is of type variant"),
        (ArrayType(VariantType()), "value.element is of type variant"),
        (MapType(StringType(), ArrayType(YearMonthIntervalType())), "value.value.element is of type interval year"),
    ],
)
def test_types_that_no_format_can_write(kind: DataType, text: str) -> None:
    """A variant would have been written as its inner bytes."""
    schema = StructType([StructField("id", VariantType()), StructField("value", kind)])
    with pytest.raises(BadSinkColumns, match=f"^{text}"):
        SinkColumns(schema, "orders", {"value": encoder("json")})
    SinkColumns(
        StructType([StructField("value", MapType(StringType(), IntegerType()))]), "orders", {"value": encoder("json")}
    )
