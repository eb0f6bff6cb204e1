"""The columns as Spark has them; `ottla.arrow.schema` has the same in Arrow's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_type

from ottla.arrow.library import pa
from ottla.arrow.schema import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, TOPIC, VALUE
from ottla.spark.options import OptionError

if TYPE_CHECKING:
    from ottla.formats import Decoder


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


def spark_schema(columns: Iterable[str], decoders: Mapping[str, Decoder] | None = None) -> Any:
    """The schema of these columns, in their order."""
    known = _types_with(decoders or {})
    return types.StructType([types.StructField(name, known[name]) for name in columns])


def as_spark_wants(kind: Any) -> Any:
    """An Arrow type with the names of inner fields, and the unit of times, that Spark insists on."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, as_spark_wants(one.type)) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", as_spark_wants(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(as_spark_wants(kind.key_type), as_spark_wants(kind.item_type))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return kind


def as_spark_has_it(column: Any, kind: Any) -> Any:
    """The column in one of these types. What a time has below a microsecond is cut off: Spark has no finer ones."""
    from pyarrow import compute  # a slow import, for what few columns need

    if column.type == kind:
        return column
    return column.cast(options=compute.CastOptions(target_type=kind, allow_time_truncate=True))


def _decoded_type(decoder: Decoder) -> Any:
    return from_arrow_type(decoder.arrow_type, prefer_timestamp_ntz=True)


def _types_with(decoders: Mapping[str, Decoder]) -> dict[str, Any]:
    return _types() | {name: _decoded_type(one) for name, one in decoders.items()}


def columns_in(schema: Any, decoders: Mapping[str, Decoder]) -> tuple[str, ...]:
    """The columns that a schema names, which a user may have given: names and types must be ours."""
    known = _types_with(decoders)
    for field in schema.fields:
        wanted = known.get(field.name)
        if wanted is None:
            raise OptionError(f"there is no column {field.name}: there are {', '.join(known)}")
        if field.dataType.simpleString() != wanted.simpleString():
            instead = "leave the schema out and cast the column"
            if field.name in decoders:
                instead = f"load the frame again, whose schema {field.name}_as gives otherwise by now; or {instead}"
            raise OptionError(
                f"column {field.name} is {wanted.simpleString()}, not {field.dataType.simpleString()}: {instead}"
            )
        if not field.nullable:
            raise OptionError(f"column {field.name} cannot be NOT NULL: any column of a source in Python may be null")
    names = tuple(field.name for field in schema.fields)
    if len(set(names)) < len(names):
        raise OptionError(f"the schema has a column twice: {', '.join(names)}")
    return names
