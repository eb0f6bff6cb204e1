"""The columns as Spark has them; `ottla.arrow.schema` has the same in Arrow's types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from pyspark.sql import types

from ottla.arrow.schema import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, TOPIC, VALUE
from ottla.spark.options import OptionError


@cache
def _types() -> dict[str, Any]:
    header = types.StructType(
        [types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())]
    )
    return {
        KEY: types.BinaryType(),
        VALUE: types.BinaryType(),
        TOPIC: types.StringType(),
        PARTITION: types.IntegerType(),
        OFFSET: types.LongType(),
        TIMESTAMP: types.TimestampType(),
        TIMESTAMP_TYPE: types.IntegerType(),
        HEADERS: types.ArrayType(header),
    }


def spark_schema(columns: Iterable[str]) -> Any:
    """The schema of these columns, in their order."""
    return types.StructType([types.StructField(name, _types()[name]) for name in columns])


def columns_in(schema: Any) -> tuple[str, ...]:
    """The columns that a schema names, which a user may have given: names and types must be ours."""
    known = _types()
    for field in schema.fields:
        wanted = known.get(field.name)
        if wanted is None:
            raise OptionError(f"there is no column {field.name}: there are {', '.join(known)}")
        if field.dataType.simpleString() != wanted.simpleString():
            raise OptionError(
                f"column {field.name} is {wanted.simpleString()}, not {field.dataType.simpleString()}: "
                "leave the schema out and cast the column"
            )
    return tuple(field.name for field in schema.fields)
