"""Mappings into messages: what `columns` makes of messages, and what people write in Python."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isinf
from typing import Any, Final, TypeAlias

from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError, Message

from ottla.formats.errors import BadValue
from ottla.formats.protobuf.columns import DURATION, JSON_LIKE, TIMESTAMP, WRAPPERS, is_map

#: Puts a value into a message that is there.
Fill: TypeAlias = Callable[[Any, Any], None]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)


class Filling:
    """What fills messages of each type; it may be asked for a type within itself."""

    def __init__(self) -> None:
        self._fills: dict[str, Fill] = {}

    def of(self, message: Any) -> Fill:
        name = message.full_name
        if name in self._fills:
            return self._fills[name]
        if name in {TIMESTAMP, DURATION}:
            made = _fill_time(name)
        elif name in JSON_LIKE:
            made = _fill_json
        elif name in WRAPPERS:
            made = _fill_wrapper
        else:
            made = self._fill_fields(message)
        self._fills[name] = made
        return made

    def _fill_fields(self, message: Any) -> Fill:
        fields = message.fields_by_name
        oneofs = {field.name: oneof.name for oneof in message.oneofs for field in oneof.fields}
        setters: dict[str, Fill] = {}

        def fill(target: Any, value: Any) -> None:
            if isinstance(value, Message):
                _copy(value, target)
                return
            if not isinstance(value, Mapping):
                raise _refused(value, message.full_name)
            target.SetInParent()
            for name, one in value.items():
                if one is None:
                    continue
                setter = setters.get(name)
                if setter is None:
                    if name not in fields:
                        raise BadValue(f"{message.name} has no field {name!r}")
                    setter = setters[name] = self._setter(fields[name])
                if name in oneofs and (other := target.WhichOneof(oneofs[name])) is not None:
                    raise BadValue(f"{name}: {oneofs[name]} has {other}, and can have one of them alone")
                try:
                    setter(target, one)
                except BadValue as error:
                    raise BadValue(f"{name}: {error.message}") from None
                except (TypeError, ValueError, OverflowError) as error:
                    raise BadValue(f"{name}: {error}") from None

        return fill

    def _setter(self, field: Any) -> Fill:
        name = field.name
        if is_map(field):
            return self._map_setter(field)
        if field.message_type is not None:
            kind = field.message_type
            if field.is_repeated:

                def add(target: Any, values: Any) -> None:
                    for one in _listed(values):
                        self.of(kind)(getattr(target, name).add(), one)

                return add
            return lambda target, value: self.of(kind)(getattr(target, name), value)
        convert = _converter(field)
        if field.is_repeated:
            return lambda target, values: getattr(target, name).extend([convert(one) for one in _listed(values)])
        return lambda target, value: setattr(target, name, convert(value))

    def _map_setter(self, field: Any) -> Fill:
        name, entry = field.name, field.message_type.fields_by_name
        convert_key, value_kind = _converter(entry["key"]), entry["value"].message_type
        convert = None if value_kind is not None else _converter(entry["value"])

        def put(target: Any, value: Any) -> None:
            pairs = list(value.items()) if isinstance(value, Mapping) else _listed(value)
            # A text of two letters could be unpacked too.
            if not all(one.__class__ is tuple and len(one) == 2 for one in pairs):
                raise _refused(value, "map")
            entries = getattr(target, name)
            for given, one in pairs:
                key = convert_key(given)
                if convert is not None:
                    entries[key] = convert(one)
                    continue
                if key in entries:  # the last one counts, with nothing of the first
                    del entries[key]
                self.of(value_kind)(entries[key], one)

        return put


def _converter(field: Any) -> Callable[[Any], Any]:
    """What the library takes as it is, but for enums by their names and decimals that are whole numbers."""
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}

        def number(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            if value not in numbers and not value.removeprefix("-").isdecimal():
                raise BadValue(f"{field.enum_type.name} has no value {value!r}")
            return numbers[value] if value in numbers else int(value)

        return number
    if field.cpp_type == field.CPPTYPE_UINT64:
        return lambda value: int(value) if isinstance(value, Decimal) and value == int(value) else value
    if field.type == field.TYPE_FLOAT:
        return _single
    if field.type == field.TYPE_BYTES:
        return lambda value: bytes(value) if isinstance(value, bytearray | memoryview) else value
    return lambda value: value


def _single(value: Any) -> Any:
    """The library makes an infinity of what a float of 32 bits does not hold."""
    if isinstance(value, int | float | Decimal) and isinf(array("f", [float(value)])[0]) and not isinf(value):
        raise BadValue(f"{value} is no float of 32 bits")
    return value


def _copy(value: Message, target: Any) -> None:
    """Into a message of a class that another pool may have made; what is missing in it is said of the whole."""
    if value.DESCRIPTOR.full_name != target.DESCRIPTOR.full_name:
        raise _refused(value, target.DESCRIPTOR.full_name)
    try:
        target.MergeFromString(value.SerializePartialToString())
    except DecodeError as error:  # the other class has other fields
        raise BadValue(f"no {target.DESCRIPTOR.full_name}: {error}") from None
    target.SetInParent()


def _listed(values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__iter__"):
        raise _refused(values, "list")
    return list(values)


def _fill_time(name: str) -> Fill:
    def fill(target: Any, value: Any) -> None:
        if isinstance(value, Message):
            _copy(value, target)
            return
        if name == TIMESTAMP and isinstance(value, datetime):
            if value.tzinfo is None:
                raise BadValue(f"{value} must be with a time zone")
            value = value - _EPOCH
        elif name != DURATION or not isinstance(value, timedelta):
            raise _refused(value, name)
        seconds, rest = divmod(value, _SECOND)
        if name == DURATION and seconds < 0 and rest:
            seconds, rest = seconds + 1, rest - _SECOND  # both have the same sign in a duration
        target.seconds, target.nanos = seconds, rest // _MICROSECOND * 1000
        target.SetInParent()

    return fill


def _fill_wrapper(target: Any, value: Any) -> None:
    if isinstance(value, Message):
        value = getattr(value, "value", value)
    try:
        target.value = _converter(target.DESCRIPTOR.fields_by_name["value"])(value)
    except (TypeError, ValueError) as error:
        raise BadValue(str(error)) from None
    target.SetInParent()


def _fill_json(target: Any, value: Any) -> None:
    if isinstance(value, Message):
        _copy(value, target)
        return
    if not isinstance(value, str):
        raise _refused(value, "JSON")
    try:
        Parse(value, target)
    except ParseError as error:
        raise BadValue(str(error)) from None


def _refused(value: Any, what: str) -> BadValue:
    return BadValue(f"{type(value).__name__} {str(value)[:80]!r} is no {what}")
