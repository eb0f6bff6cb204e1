"""The Arrow types of Avro's."""

from __future__ import annotations

from typing import Any, Final

from ottla.arrow.library import pa
from ottla.formats.avro.schema import AvroSchema
from ottla.formats.avro.shapes import is_widened, member_names, others
from ottla.formats.errors import BadSpec
from ottla.formats.rows import FieldCount

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),  # Spark's JVM has no other
    "enum": pa.string(),
}
#: In the units that Spark has, and no others: nanoseconds of a day, microseconds since 1970.
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time64("ns"),
    "time-micros": pa.time64("ns"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
}
#: Digits of a 128-bit decimal, which is what Spark has.
_DECIMAL128_DIGITS: Final = 38


def arrow_type_of(schema: AvroSchema) -> Any:
    """Raises BadSpec for a type that contains itself: columns are as deep as their type says."""
    return _type_of(schema, frozenset(), FieldCount())


def _type_of(schema: AvroSchema, within: frozenset[str], count: FieldCount) -> Any:
    count.add(1)
    if schema.logical == "decimal":
        decimal = pa.decimal128 if schema.precision <= _DECIMAL128_DIGITS else pa.decimal256
        return decimal(schema.precision, schema.scale)
    if schema.logical is not None:
        return _LOGICAL[schema.logical]
    if schema.kind == "record":
        assert schema.name is not None
        if schema.name in within:
            raise BadSpec(f"the Avro record {schema.name} contains itself: it can be no column, only single records")
        inside = within | {schema.name}
        return pa.struct([pa.field(one.name, _type_of(one.schema, inside, count)) for one in schema.fields])
    if schema.kind == "array":
        return pa.list_(_type_of(schema.inner, within, count))
    if schema.kind == "map":
        return pa.map_(pa.string(), _type_of(schema.inner, within, count))
    if schema.kind == "union":
        return _union_type(schema, within, count)
    return _PLAIN[schema.kind]


def _union_type(schema: AvroSchema, within: frozenset[str], count: FieldCount) -> Any:
    branches = others(schema)
    if not branches:
        return pa.null()
    if is_widened(schema):
        return pa.int64() if branches[0].kind in {"int", "long"} else pa.float64()
    names = member_names(schema)
    if names is None:
        return _type_of(branches[0], within, count)
    return pa.struct(
        [pa.field(name, _type_of(branch, within, count)) for name, branch in zip(names, branches, strict=True)]
    )
