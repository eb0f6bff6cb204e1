"""From what a JSON text holds to values of a schema's types, by the rules of Spark's `from_json`.

A member that does not fit its type is a null and a fault, and the others stay; so is a whole list or map of which one
value does not fit. Numbers are kept as the text that they were until their type is known, so that none loses digits on
the way.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from json.decoder import JSONDecoder
from typing import Any, Final, TypeAlias

from ottla.formats.ddl import ArrayOf, DdlType, MapOf, Simple, StructOf, ddl_text

#: Takes what the parser made and the list of faults; a value of the type, or None.
Convert: TypeAlias = Callable[[Any, list[str]], Any]

_RANGES: Final = {"tinyint": 2**7, "smallint": 2**15, "int": 2**31, "bigint": 2**63}
#: A whole number of more digits fits no type but a decimal's, and those have 38.
_DIGITS_MAX: Final = 100
_NOT_NUMBERS: Final = {
    **dict.fromkeys(("Infinity", "+Infinity", "+INF"), float("inf")),
    **dict.fromkeys(("-Infinity", "-INF"), float("-inf")),
    "NaN": float("nan"),
}
#: What JSON takes for space.
SPACE: Final = " \t\r\n"
_SPACE: Final = re.compile(f"[{SPACE}]*")
_SHOWN_MAX: Final = 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=200, rounding=ROUND_HALF_UP)
#: What Spark passes over around a time, and before its zone; all of it or nothing, or many blanks would take long.
_BLANK: Final = r"[\0- \x7f]*+"
_OFFSET: Final = r"[+-](?:\d\d?(?::\d\d?)?|\d{4})"
_ZONE: Final = rf"(Z|(?:UTC|GMT|UT)(?:{_OFFSET})?|{_OFFSET})?"
#: It may end early, and has a zone only where it has seconds.
_CLOCK: Final = rf"[T ](\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*+))?{_BLANK}{_ZONE})?)?"
#: A year alone is its first day, and so is a month.
_TIME: Final = re.compile(rf"{_BLANK}(\d{{4}})(?:-(\d\d?)(?:-(\d\d?)(?:{_CLOCK})?)?)?{_BLANK}", re.ASCII)
#: What stands behind a day and a T or a blank is passed over.
_DATE: Final = re.compile(rf"{_BLANK}(\d{{4}})(?:-(\d\d?)(?:-(\d\d?)(?:[T ].*)?)?)?{_BLANK}", re.ASCII | re.DOTALL)
_AHEAD_MAX: Final = timedelta(hours=18)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class Number(str):
    """A number as the text had it."""

    __slots__ = ()


class Word(str):
    """NaN, Infinity or -Infinity."""

    __slots__ = ()


class Misfit(ValueError):
    """A value that is not of the type."""


class TextWanted(Exception):
    """An object or a list where a text belongs: `with_texts` reads the record once more."""


PARSER: Final = JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Word)


def converter(kind: DdlType) -> Convert:
    """For a type: nulls stay nulls."""
    if isinstance(kind, StructOf):
        return _struct(kind)
    if isinstance(kind, ArrayOf):
        return _array(kind)
    if isinstance(kind, MapOf):
        return _map(kind)
    if kind.name in _RANGES:
        return _whole(kind, _RANGES[kind.name])
    made = {
        "boolean": _boolean,
        "float": _double,
        "double": _double,
        "string": _string,
        "binary": _binary,
        "date": _date,
        "timestamp": _timestamp,
        "timestamp_ntz": _timestamp_ntz,
        "decimal": _decimal,
    }
    return _simple(kind, made[kind.name])


def _misfit(kind: DdlType, value: Any) -> str:
    shown = str(value) if isinstance(value, Number | Word) else repr(value)
    return f"{shown[:_SHOWN_MAX]} is no {ddl_text(kind)}"


def _simple(kind: Simple, made: Callable[[Any, Simple], Any]) -> Convert:
    def convert(value: Any, faults: list[str]) -> Any:
        if value is None:
            return None
        try:
            return made(value, kind)
        except (ValueError, OverflowError, DecimalException, binascii.Error):
            faults.append(_misfit(kind, value))
            return None

    return convert


def _whole(kind: Simple, limit: int) -> Convert:
    def convert(value: Any, faults: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is Number and len(value) <= _DIGITS_MAX:
            try:
                number = int(value)
            except ValueError:
                pass  # it has a point, or an exponent
            else:
                if -limit <= number < limit:
                    return number
        faults.append(_misfit(kind, value))
        return None

    return convert


def _boolean(value: Any, _: Simple) -> bool:
    if not isinstance(value, bool):
        raise Misfit
    return value


def _double(value: Any, _: Simple) -> float:
    if isinstance(value, Number):
        return float(value)
    if isinstance(value, str) and value in _NOT_NUMBERS:
        return _NOT_NUMBERS[value]
    raise Misfit


def _string(value: Any, _: Simple) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise TextWanted
    value.encode()  # half a surrogate pair is no text
    return str(value)


def _binary(value: Any, _: Simple) -> bytes:
    if type(value) is not str:
        raise Misfit
    return base64.b64decode(value, validate=True)


def _decimal(value: Any, kind: Simple) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str) or len(value) > _DIGITS_MAX:
        raise Misfit
    text = value.replace(",", "")  # wherever they stand
    if _DECIMAL.fullmatch(text) is None:
        raise Misfit
    found = Decimal(text)
    if found.adjusted() >= kind.precision - kind.scale:
        raise Misfit
    rounded = found.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    if rounded.adjusted() >= kind.precision - kind.scale and rounded:
        raise Misfit
    return rounded


def _date(value: Any, _: Simple) -> date:
    match = _matched(value, _DATE)
    return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))


def _timestamp(value: Any, _: Simple) -> datetime:
    """A text in ISO 8601, in UTC where it names no zone; a number counts seconds."""
    if type(value) is Number and len(value) <= _DIGITS_MAX:
        return _EPOCH + timedelta(seconds=int(value))
    found, zone = _time_of(value)
    return found.replace(tzinfo=UTC) if zone is None else found.replace(tzinfo=zone).astimezone(UTC)


def _timestamp_ntz(value: Any, _: Simple) -> datetime:
    found, zone = _time_of(value)
    if zone is not None:
        raise Misfit
    return found


def _time_of(value: Any) -> tuple[datetime, timezone | None]:
    match = _matched(value, _TIME)
    year, month, day = (int(part or 1) for part in match.groups()[:3])
    hour, minute, second = (int(part or 0) for part in match.groups()[3:6])
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    found = datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - its zone is the caller's
    return found, _zone(match[8])


def _matched(value: Any, form: re.Pattern[str]) -> re.Match[str]:
    match = form.fullmatch(value) if type(value) is str else None
    if match is None:
        raise Misfit
    return match


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    offset = text.lstrip("ZUTCGM")
    if not offset:
        return UTC
    digits = offset[1:]
    hours, minutes = digits.split(":") if ":" in digits else (digits[:2], digits[2:] or "0")
    ahead = timedelta(hours=int(hours), minutes=int(minutes))
    if ahead > _AHEAD_MAX or int(minutes) > 59:
        raise Misfit
    return timezone(-ahead if offset[0] == "-" else ahead)


def with_texts(text: str, pos: int, kind: DdlType) -> tuple[Any, int]:
    """As the parser reads the value at `pos`, and where it ends; but where a text belongs, an object or a list is the
    text that it has here. The text was parsed before, and is JSON."""
    first = text[pos]
    if first not in "{[":
        return PARSER.raw_decode(text, pos)
    if kind == Simple("string"):
        end = PARSER.raw_decode(text, pos)[1]
        return text[pos:end], end
    if first == "{" and isinstance(kind, StructOf | MapOf):
        return _object_with_texts(text, pos, kind)
    if first == "[" and isinstance(kind, ArrayOf):
        found = []
        pos = behind_space(text, pos + 1)
        while text[pos] != "]":
            value, pos = with_texts(text, pos, kind.element)
            found.append(value)
            pos = _behind_comma(text, pos)
        return found, pos + 1
    return PARSER.raw_decode(text, pos)


def _object_with_texts(text: str, pos: int, kind: StructOf | MapOf) -> tuple[dict[str, Any], int]:
    members = dict(kind.fields) if isinstance(kind, StructOf) else {}
    found: dict[str, Any] = {}
    pos = behind_space(text, pos + 1)
    while text[pos] != "}":
        name, pos = PARSER.raw_decode(text, pos)
        pos = behind_space(text, behind_space(text, pos) + 1)
        one = kind.value if isinstance(kind, MapOf) else members.get(name)
        found[name], pos = PARSER.raw_decode(text, pos) if one is None else with_texts(text, pos, one)
        pos = _behind_comma(text, pos)
    return found, pos + 1


def _behind_comma(text: str, pos: int) -> int:
    pos = behind_space(text, pos)
    return behind_space(text, pos + 1) if text[pos] == "," else pos


def behind_space(text: str, pos: int) -> int:
    match = _SPACE.match(text, pos)
    assert match is not None
    return match.end()


def _struct(kind: StructOf) -> Convert:
    members = [(name, converter(one)) for name, one in kind.fields]

    def convert(value: Any, faults: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            faults.append(_misfit(kind, value))
            return None
        found = {}
        for name, made in members:
            before = len(faults)
            found[name] = made(value.get(name), faults)
            if len(faults) > before:
                faults[before] = f"{name}: {faults[before]}"
        return found

    return convert


def _array(kind: ArrayOf) -> Convert:
    made = converter(kind.element)

    def convert(value: Any, faults: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            faults.append(_misfit(kind, value))
            return None
        return _all_made(made, value, faults)

    return convert


def _map(kind: MapOf) -> Convert:
    made = converter(kind.value)

    def convert(value: Any, faults: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not dict:
            faults.append(_misfit(kind, value))
            return None
        try:
            "".join(value).encode()
        except UnicodeEncodeError:  # half a surrogate pair is no text
            faults.append(_misfit(kind, value))
            return None
        made_of = _all_made(made, value.values(), faults)
        return None if made_of is None else dict(zip(value, made_of, strict=True))

    return convert


def _all_made(made: Convert, values: Iterable[Any], faults: list[str]) -> list[Any] | None:
    """None where one does not fit at all. An object of which a member does not fit is still an object."""
    found = []
    for value in values:
        one = made(value, faults)
        if one is None and value is not None:
            return None
        found.append(one)
    return found
