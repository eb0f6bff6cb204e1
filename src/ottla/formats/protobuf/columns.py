"""Messages as rows of Arrow: the types, and what reads a row out of a message.

| Protobuf | Arrow |
|---|---|
| int32, int64, float, double, bool, string, bytes | the same |
| uint32; uint64 | int64; decimal(20, 0): Spark's numbers have signs |
| enum | string; a number that has no name is its digits |
| a message; repeated; map | a struct; a list; a map |
| google.protobuf.Timestamp, Duration | timestamp in us, UTC; duration in us |
| Int64Value and its like | the value, nullable |
| Struct, Value, ListValue | string, as JSON |

A field that has presence (a message, a oneof's member, proto3's optional, all of proto2) is null where it was not set;
others have their default, which is the same on the wire.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.unknown_fields import UnknownFieldSet

from ottla.arrow.library import pa
from ottla.formats.errors import BadRecord, BadSpec
from ottla.formats.rows import FieldCount

Shape: TypeAlias = Callable[[Any], Any]

TIMESTAMP: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
#: What holds any JSON.
JSON_LIKE: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_INT64_MAX: Final = 2**63 - 1
_TYPES: Final = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


def is_map(field: Any) -> bool:
    return field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry


# Types


def arrow_type_of(message: Any) -> Any:
    """Raises BadSpec for a message that contains itself: columns are as deep as their type says."""
    return _message_type(message, frozenset(), FieldCount())


def _message_type(message: Any, within: frozenset[str], count: FieldCount) -> Any:
    count.add(len(message.fields))
    name = message.full_name
    if name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if name == DURATION:
        return pa.duration("us")
    if name in JSON_LIKE:
        return pa.string()
    if name in WRAPPERS:
        return _single_type(message.fields_by_name["value"], within, count)
    if name in within:
        raise BadSpec(f"the Protobuf message {name} contains itself: it can be no column, only single records")
    inside = within | {name}
    return pa.struct([pa.field(field.name, _type_of(field, inside, count)) for field in message.fields])


def _type_of(field: Any, within: frozenset[str], count: FieldCount) -> Any:
    if is_map(field):
        entry = field.message_type.fields_by_name
        return pa.map_(_single_type(entry["key"], within, count), _single_type(entry["value"], within, count))
    single = _single_type(field, within, count)
    return pa.list_(single) if field.is_repeated else single


def _single_type(field: Any, within: frozenset[str], count: FieldCount) -> Any:
    if field.message_type is not None:
        return _message_type(field.message_type, within, count)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
    return _TYPES[field.cpp_type]


# Rows


def row_of(message: Any) -> Shape:
    """What makes a row of a message of this type; raises BadRecord."""
    name = message.full_name
    if name == TIMESTAMP:
        return _timestamp
    if name == DURATION:
        return _duration
    if name in JSON_LIKE:
        return _json
    if name in WRAPPERS:
        shape = _single(message.fields_by_name["value"])
        return _value if shape is None else lambda found: shape(found.value)
    steps = [(field.name, _getter(field)) for field in message.fields]

    def row(found: Any) -> dict[str, Any]:
        return {name: get(found) for name, get in steps}

    return row


def _getter(field: Any) -> Shape:
    if is_map(field):
        return _map_getter(field)
    get, shape = attrgetter(field.name), _single(field)
    if field.is_repeated:
        if shape is None:
            return lambda found: list(get(found))
        one = shape
        return lambda found: [one(value) for value in get(found)]
    if field.has_presence:
        return _present(field.name, shape)
    if shape is None:
        return get
    always = shape
    return lambda found: always(get(found))


def _present(name: str, shape: Shape | None) -> Shape:
    def value_or_none(found: Any) -> Any:
        if not found.HasField(name):
            return None
        value = getattr(found, name)
        return value if shape is None else shape(value)

    return value_or_none


def _map_getter(field: Any) -> Shape:
    entry = field.message_type.fields_by_name
    get, shape, shape_key = attrgetter(field.name), _single(entry["value"]), _single(entry["key"])

    def pairs(found: Any) -> list[tuple[Any, Any]]:
        """In the order of their keys: the wire has none."""
        entries = get(found)
        try:
            keys = sorted(entries)
        except TypeError:  # of proto2 the library has such a key as bytes
            raise BadRecord("a map's key that is no UTF-8") from None
        return [
            (key if shape_key is None else shape_key(key), entries[key] if shape is None else shape(entries[key]))
            for key in keys
        ]

    return pairs


def _single(field: Any) -> Shape | None:
    """What is made of one value; None where it stays as it is."""
    if field.message_type is not None:
        return row_of(field.message_type)
    if field.enum_type is not None:
        # Of several names of a number the first counts, as in Google's JSON.
        names = {value.number: value.name for value in reversed(list(field.enum_type.values))}
        return lambda number: names.get(number) or str(number)
    return None


def _value(found: Any) -> Any:
    return found.value


def _timestamp(found: Any) -> int:
    return _micros(found)


def _duration(found: Any) -> int:
    return _micros(found, towards_zero=found.nanos < 0)


def _micros(found: Any, *, towards_zero: bool = False) -> int:
    """What is below a microsecond is cut off: Spark has no finer times."""
    nanos: int = found.nanos
    micros: int = found.seconds * 1_000_000 + (-(-nanos // 1000) if towards_zero else nanos // 1000)
    if not -_INT64_MAX <= micros <= _INT64_MAX:
        raise BadRecord(f"{found.seconds} s are no time in microseconds of 64 bits")
    return micros


def _json(found: Any) -> str:
    try:
        return json.dumps(MessageToDict(found), ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:  # JSON has no infinity
        raise BadRecord(f"a {found.DESCRIPTOR.full_name} that is no JSON: {error}") from None


def unknown_fields(found: Any) -> str | None:
    """The fields of a message that its schema does not know, by their numbers, as JSON; bytes in base64."""
    unknown = UnknownFieldSet(found)
    return json.dumps(_by_number(unknown), separators=(",", ":")) if len(unknown) else None


def _by_number(unknown: Any) -> dict[str, list[Any]]:
    said: dict[str, list[Any]] = {}
    for field in unknown:
        said.setdefault(str(field.field_number), []).append(_said(field.data))
    return said


def _said(data: Any) -> Any:
    if isinstance(data, bytes):
        return b64encode(data).decode()
    return data if isinstance(data, int | float) else _by_number(data)  # a group has fields of its own
