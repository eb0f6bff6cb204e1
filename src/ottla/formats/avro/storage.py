"""A column as what Avro stores: numbers in place of times, in the schema's units. Arrow does that without objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.arrow.library import pa
from ottla.formats.avro.schema import AvroSchema
from ottla.formats.avro.shapes import member_names, others
from ottla.formats.errors import BadValue

_UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}


def stored(values: Any, schema: AvroSchema) -> Iterable[Any]:
    """The rows of a column, as the writers of `encoding` take them; raises BadValue for a time that does not fit."""
    aligned, numbers = _types(schema, values.type)
    try:
        return values.cast(aligned).cast(numbers).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    except pa.ArrowInvalid as error:
        raise BadValue(
            f"the column does not go with the Avro schema: {error}", _row_at_fault(values, aligned)
        ) from None
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise BadValue(f"the column does not go with the Avro schema: {error}") from None


def _row_at_fault(values: Any, aligned: Any) -> int | None:
    """The first row that is refused by itself."""
    for number in range(len(values)):
        try:
            values.slice(number, 1).cast(aligned)
        except pa.ArrowInvalid:
            return number
    return None


def _types(schema: AvroSchema, found: Any) -> tuple[Any, Any]:
    """The column's type with the schema's units, and with numbers for times; what differs otherwise stays."""
    if pa.types.is_null(found):
        return pa.int8(), pa.int8()  # pyarrow loses the nulls of a slice where they become nulls
    if pa.types.is_dictionary(found):
        return _types(schema, found.value_type)
    if schema.kind == "union":
        return _union_types(schema, found)
    if pa.types.is_temporal(found):
        return _times(schema, found)
    if schema.kind == "record" and pa.types.is_struct(found):
        by_name = {one.name: one.schema for one in schema.fields}
        return _struct(found, by_name)
    if schema.kind == "array" and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        inner = _types(schema.inner, found.value_type)
        return pa.list_(inner[0]), pa.list_(inner[1])
    if schema.kind == "map" and pa.types.is_map(found):
        inner = _types(schema.inner, found.item_type)
        return pa.map_(found.key_type, inner[0]), pa.map_(found.key_type, inner[1])
    return found, found


def _union_types(schema: AvroSchema, found: Any) -> tuple[Any, Any]:
    names = member_names(schema)
    if names is not None and pa.types.is_struct(found):
        return _struct(found, dict(zip(names, others(schema), strict=True)))
    if names is None and others(schema):
        return _types(others(schema)[0], found)
    return found, found


def _struct(found: Any, by_name: dict[str, AvroSchema]) -> tuple[Any, Any]:
    aligned, numbers = [], []
    for one in found:
        schema = by_name.get(one.name)
        types = (one.type, one.type) if schema is None else _types(schema, one.type)
        aligned.append(pa.field(one.name, types[0]))
        numbers.append(pa.field(one.name, types[1]))
    return pa.struct(aligned), pa.struct(numbers)


def _times(schema: AvroSchema, found: Any) -> tuple[Any, Any]:
    logical = schema.logical
    if logical == "date":
        return pa.date32(), pa.int32()
    what, _, unit = (logical or "").rpartition("-")
    if what == "time":
        return (pa.time32("ms"), pa.int32()) if unit == "millis" else (pa.time64("us"), pa.int64())
    if what in {"timestamp", "local-timestamp"} and pa.types.is_timestamp(found):
        if (what == "timestamp") is (found.tz is None):
            raise BadValue(
                f"a {found} cannot be a {logical}: it must be {'with' if found.tz is None else 'without'} a time zone"
            )
        return pa.timestamp(_UNITS[unit], found.tz), pa.int64()
    raise BadValue(f"a {found} cannot be a {schema}")
