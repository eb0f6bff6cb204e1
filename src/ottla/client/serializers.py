"""Between values and bytes. Named as in Kafka's own set, whose bytes they write; or any callable.

`bytes`, `str` (UTF-8), `int32` and `int64` (big-endian), `float32` and `float64` (big-endian IEEE), `uuid` (its text),
`json` (UTF-8, compact). None stays null everywhere: it is what deletes a key in a compacted topic. `avro` and
`protobuf` are those of `schemas`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Final

from ottla.client.arguments import a_kind_of, shown
from ottla.client.errors import SerializationFailed, SettingsError
from ottla.client.schemas import (
    SchemaDeserializer,
    SchemaSerializer,
    names_a_schema_format,
    schema_deserializer,
    schema_serializer,
    schema_settings,
)

Serializer = Callable[[Any], bytes | None]
Deserializer = Callable[[bytes], Any]


def _packed(code: str, name: str) -> tuple[Serializer, Deserializer]:
    form = struct.Struct(code)

    def serialize(value: Any) -> bytes:
        return form.pack(value)

    def deserialize(data: bytes) -> Any:
        if len(data) != form.size:
            raise ValueError(f"{name} takes {form.size} bytes, not {len(data)}")
        return form.unpack(data)[0]

    return serialize, deserialize


def _str_out(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is no str")
    return value.encode()


def _bytes_out(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{type(value).__name__} is no bytes")
    return bytes(value)


def _uuid_out(value: Any) -> bytes:
    return str(value).encode("ascii")


def _uuid_in(data: bytes) -> Any:
    from uuid import UUID

    return UUID(data.decode("ascii"))


def _json_out(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_NAMED: Final[dict[str, tuple[Serializer, Deserializer]]] = {
    "bytes": (_bytes_out, bytes),
    "str": (_str_out, lambda data: data.decode()),
    "int32": _packed(">i", "int32"),
    "int64": _packed(">q", "int64"),
    "float32": _packed(">f", "float32"),
    "float64": _packed(">d", "float64"),
    "uuid": (_uuid_out, _uuid_in),
    "json": (_json_out, json.loads),
}
_ALIASES: Final = {"string": "str", "long": "int64", "int": "int64", "integer": "int32", "double": "float64"}


def serializer_for(wanted: Any, field: str, settings: Any = None) -> Serializer | SchemaSerializer | None:
    """A serializer by its name, or the callable itself; None leaves bytes as they are."""
    if names_a_schema_format(wanted):
        return schema_serializer(
            wanted, field, {} if settings is None else schema_settings(settings, field.partition(".")[0])
        )
    return None if wanted is None or wanted in ("bytes", bytes) else _pair(wanted, field, 0)


def deserializer_for(wanted: Any, field: str, settings: Any = None) -> Deserializer | SchemaDeserializer | None:
    if names_a_schema_format(wanted):
        return schema_deserializer(
            wanted, field, {} if settings is None else schema_settings(settings, field.partition(".")[0])
        )
    return None if wanted is None or wanted in ("bytes", bytes) else _pair(wanted, field, 1)


def _pair(wanted: Any, field: str, which: int) -> Any:
    if callable(wanted):
        return wanted
    name = wanted.lower() if isinstance(wanted, str) else ""
    pair = _NAMED.get(_ALIASES.get(name, name))
    if pair is None:
        known = ", ".join(_NAMED)
        raise SettingsError(f"{field} must be one of {known}, avro, protobuf or a callable, not {shown(wanted)}")
    return pair[which]


def serialized(
    value: Any, serializer: Serializer | SchemaSerializer | None, what: str, topic: str = ""
) -> bytes | None:
    """The bytes of a key or value; raises SerializationFailed, or SchemaNotLoaded."""
    if value is None:
        return None
    if isinstance(serializer, SchemaSerializer):
        return serializer(value, topic)
    if serializer is not None:
        try:
            value = serializer(value)
        except Exception as error:
            raise SerializationFailed(f"the {what} cannot be serialized: {error}") from error
    if value is None or value.__class__ is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value)  # a copy: the caller may go on writing to it
        except ValueError as error:  # of a view that was released
            raise SerializationFailed(f"the {what} cannot be read: {error}") from error
    raise SerializationFailed(
        f"the {what} is {a_kind_of(value)}, not bytes: name a {what}_serializer (str, json, int64, ...)"
    )
