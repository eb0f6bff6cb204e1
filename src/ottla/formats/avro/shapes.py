"""What becomes of Avro's values: objects for one record, or what an Arrow column takes.

| Avro | object | Arrow |
|---|---|---|
| date, time-*, timestamp-* | date, time, datetime (nanoseconds: an int) | date32, time, timestamp |
| decimal, uuid | Decimal, UUID | decimal, string |
| map | dict | list of pairs |
| union of null and one other | the other, or None | the other, nullable |
| int and long; float and double | the number | int64; double |
| any other union | the branch's value | a struct member0, member1, ..., all but one null |

The last three rows are how Spark's `from_avro` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.formats.avro.numbers import number_of
from ottla.formats.avro.schema import DECIMAL_DIGITS_MAX, AvroSchema
from ottla.formats.errors import BadRecord

Shape: TypeAlias = Callable[[Any], Any]

_EXACT: Final = Context(prec=DECIMAL_DIGITS_MAX + 1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = _EPOCH.replace(tzinfo=None)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_DAY_US: Final = 86_400_000_000
INT64_MAX: Final = 2**63 - 1


def shape_of(schema: AvroSchema, *, arrow: bool) -> Shape | None:
    """What a value read by this schema is turned into; None where it stays as it is."""
    logical = schema.logical
    if logical is None:
        return None
    if logical == "decimal":
        return _decimal(schema)
    if logical == "uuid":
        return _uuid(schema, arrow)
    return _ARROW_TIMES.get(logical) if arrow else _OBJECT_TIMES.get(logical)


def decimal_bytes_max(schema: AvroSchema) -> int:
    """A sound one is never longer: the digits' bits, a sign, and as many again for writers that pad."""
    limit: int = 10**schema.precision
    return max(2 * (limit.bit_length() // 8 + 1), schema.size)


def _decimal(schema: AvroSchema) -> Shape:
    limit, scale, bytes_max = 10**schema.precision, -schema.scale, decimal_bytes_max(schema)

    def decimal(raw: bytes) -> Decimal:
        if len(raw) > bytes_max:
            raise BadRecord(f"a decimal of {len(raw)} bytes")
        unscaled = number_of(raw)
        if not -limit < unscaled < limit:
            raise BadRecord(f"a decimal of more than {schema.precision} digits")
        return Decimal(unscaled).scaleb(scale, _EXACT)

    return decimal


def _uuid(schema: AvroSchema, arrow: bool) -> Shape | None:
    if schema.kind == "fixed":
        return (lambda raw: str(UUID(bytes=raw))) if arrow else (lambda raw: UUID(bytes=raw))
    if arrow:
        return None

    def uuid(text: str) -> UUID:
        try:
            return UUID(text)
        except ValueError:
            raise BadRecord(f"{text[:40]!r} is no UUID") from None

    return uuid


def _millis_to_micros(number: int) -> int:
    micros = number * 1000
    if not -INT64_MAX <= micros <= INT64_MAX:
        raise BadRecord(f"{number} ms are no time in microseconds of 64 bits")
    return micros


def _nanos_of_day(nanos_each: int) -> Shape:
    def nanos_of_day(number: int) -> int:
        nanos = number * nanos_each
        if not 0 <= nanos < _DAY_US * 1000:
            raise BadRecord(f"{number} is no time of a day")
        return nanos

    return nanos_of_day


_ARROW_TIMES: Final[dict[str, Shape]] = {
    "timestamp-millis": _millis_to_micros,
    "local-timestamp-millis": _millis_to_micros,
    "time-millis": _nanos_of_day(1_000_000),
    "time-micros": _nanos_of_day(1000),
}


def _instant(epoch: datetime, micros_each: int) -> Shape:
    def instant(number: int) -> datetime:
        try:
            return epoch + timedelta(microseconds=number * micros_each)
        except OverflowError:
            raise BadRecord(f"{number} is a time outside of the years 1 to 9999") from None

    return instant


def _day(number: int) -> date:
    try:
        return date.fromordinal(number + _FIRST_DAY)
    except (ValueError, OverflowError):
        raise BadRecord(f"{number} is a day outside of the years 1 to 9999") from None


def _time_of_day(micros_each: int) -> Shape:
    def time_of_day(number: int) -> time:
        micros = number * micros_each
        if not 0 <= micros < _DAY_US:
            raise BadRecord(f"{number} is no time of a day")
        return (_LOCAL_EPOCH + timedelta(microseconds=micros)).time()

    return time_of_day


_OBJECT_TIMES: Final[dict[str, Shape]] = {
    "date": _day,
    "time-millis": _time_of_day(1000),
    "time-micros": _time_of_day(1),
    "timestamp-millis": _instant(_EPOCH, 1000),
    "timestamp-micros": _instant(_EPOCH, 1),
    "local-timestamp-millis": _instant(_LOCAL_EPOCH, 1000),
    "local-timestamp-micros": _instant(_LOCAL_EPOCH, 1),
}


# Unions


def is_widened(schema: AvroSchema) -> bool:
    """Whether a union is one of numbers that the wider of them holds."""
    kinds = {branch.kind for branch in schema.branches if branch.kind != "null"}
    plain = all(branch.logical is None for branch in schema.branches)
    return plain and kinds in ({"int", "long"}, {"float", "double"})


def others(schema: AvroSchema) -> list[AvroSchema]:
    """The branches of a union that are not null."""
    return [branch for branch in schema.branches if branch.kind != "null"]


def member_names(schema: AvroSchema) -> list[str] | None:
    """The names under which a union's branches stand in a struct; None where it is no struct."""
    if len(others(schema)) < 2 or is_widened(schema):
        return None
    return [f"member{number}" for number in range(len(others(schema)))]
