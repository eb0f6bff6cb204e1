"""Avro's primitives as bytes. A writer is called with a value and what the bytes are put behind; it raises BadValue."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from operator import index
from typing import Any, Final, TypeAlias

from ottla.formats.avro.numbers import DOUBLE, FLOAT
from ottla.formats.errors import BadValue
from ottla.records.varint import encode

Write: TypeAlias = Callable[[Any, bytearray], None]

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1


def write_long(value: Any, out: bytearray) -> None:
    out += encode(whole(value, "long", _LONG_MAX))


def write_int(value: Any, out: bytearray) -> None:
    write_long(whole(value, "int", _INT_MAX), out)


def whole(value: Any, what: str, most: int) -> int:
    """A number of numpy's too, and no bool."""
    if value.__class__ is not int:
        if isinstance(value, bool):
            raise BadValue(f"a bool is no {what}")
        try:
            value = index(value)
        except TypeError:
            raise refused(value, what) from None
    if not -most - 1 <= value <= most:
        raise BadValue(f"{value} is no {what}")
    number: int = value
    return number


def write_null(value: Any, _out: bytearray) -> None:
    if value is not None:
        raise refused(value, "null")


def write_boolean(value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise refused(value, "boolean")
    out.append(value)


def write_float(value: Any, out: bytearray) -> None:
    try:
        out += FLOAT.pack(number(value, "float"))
    except OverflowError:
        raise BadValue(f"{value} is no float of 32 bits") from None


def write_double(value: Any, out: bytearray) -> None:
    out += DOUBLE.pack(number(value, "double"))


def exact_writer(kind: str) -> Write:
    """Of a float or a double; it refuses numbers that would be rounded."""
    form = FLOAT if kind == "float" else DOUBLE

    def write(value: Any, out: bytearray) -> None:
        held = number(value, kind)
        try:
            raw = form.pack(held)
        except OverflowError:
            raise refused(value, kind) from None
        if not isnan(held) and (held != value or form.unpack(raw)[0] != held):
            raise refused(value, kind)
        out += raw

    return write


def number(value: Any, what: str) -> float:
    if isinstance(value, bool | str | bytes | bytearray | memoryview) or value is None:
        raise refused(value, what)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise refused(value, what) from None


def write_bytes(value: Any, out: bytearray) -> None:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise refused(value, "bytes")
    raw = bytes(value)
    write_long(len(raw), out)
    out += raw


def write_string(value: Any, out: bytearray) -> None:
    if not isinstance(value, str):
        raise refused(value, "string")
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise BadValue("a string that UTF-8 cannot write") from None
    write_long(len(raw), out)
    out += raw


def refused(value: Any, what: Any) -> BadValue:
    """Why a value of another type is not written."""
    if value is None:
        return BadValue(f"None is no {what}")
    return BadValue(f"{type(value).__name__} {str(value)[:80]!r} is no {what}")


PRIMITIVE_WRITERS: Final[dict[str, Write]] = {
    "null": write_null,
    "boolean": write_boolean,
    "int": write_int,
    "long": write_long,
    "float": write_float,
    "double": write_double,
    "bytes": write_bytes,
    "string": write_string,
}
