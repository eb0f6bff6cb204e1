"""Values to Avro: one record of Python's, or a column.

A union's branch is the first that can take the value; one that would round a number comes behind all others. Two
records in one union are told apart by their fields, or by a pair `(name, value)`. A field that the value does not have
is its default; one that the schema does not have is an error, since it would be lost without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from ottla.formats.avro.defaults import default_bytes
from ottla.formats.avro.numbers import bytes_of
from ottla.formats.avro.output import PRIMITIVE_WRITERS, Write, exact_writer, refused, write_long, write_string
from ottla.formats.avro.schema import NO_DEFAULT, AvroSchema
from ottla.formats.avro.shapes import member_names
from ottla.formats.errors import BadValue
from ottla.formats.framing import header
from ottla.formats.interface import Encoder, Load
from ottla.formats.source import SchemaSource

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = _EPOCH.replace(tzinfo=None)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
#: In the schema's unit, how many nanoseconds one is.
_UNIT_NS: Final = {"millis": 1_000_000, "micros": 1000, "nanos": 1}
#: Digits and zeros of a decimal that is looked at; one that has more fits no schema.
_DECIMAL_PLACES_MAX: Final = 1000
_MICROSECOND: Final = timedelta(microseconds=1)


class AvroEncoder(Encoder):
    def __init__(self, source: SchemaSource[AvroSchema]) -> None:
        self._source = source
        self._prefix: bytes | None = None if source.framed else b""
        self._writers: dict[bool, Write] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroEncoder, (self._source.pinned(),)

    def encode(self, values: Any) -> Any:
        from ottla.arrow.library import pa
        from ottla.formats.avro.storage import stored

        prefix, write = self._ready(arrow=True)
        rows: list[bytes | None] = []
        for number, value in enumerate(stored(values, self._source.column_schema())):
            try:
                rows.append(None if value is None else _written(prefix, write, value))
            except BadValue as error:
                raise BadValue(error.message, number) from None
        return pa.array(rows, pa.binary())

    def encode_one(self, value: Any) -> bytes:
        prefix, write = self._ready(arrow=False)
        return _written(prefix, write, value)

    def for_topic(self, topic: str) -> AvroEncoder:
        return AvroEncoder(self._source.for_topic(topic))

    def missing_for(self, value: Any) -> Load | None:
        return None if self._prefix is not None and False in self._writers else self._load

    def _load(self) -> None:
        self._ready(arrow=False)

    def _ready(self, *, arrow: bool) -> tuple[bytes, Write]:
        write = self._writers.get(arrow)
        if write is None:
            write = self._writers[arrow] = writer_of(self._source.column_schema(), arrow=arrow)
        if self._prefix is None:
            self._prefix = header(self._source.id_to_write())
        return self._prefix, write


def _written(prefix: bytes, write: Write, value: Any) -> bytes:
    out = bytearray(prefix)
    try:
        write(value, out)
    except RecursionError:
        raise BadValue("the value is nested too deep") from None
    return bytes(out)


def writer_of(schema: AvroSchema, *, arrow: bool = False) -> Write:
    """What writes values of a schema; `arrow`: as Arrow's columns have them (`shapes`)."""
    return _Writers(arrow).write(schema)


class _Writers:
    def __init__(self, arrow: bool) -> None:
        self._arrow = arrow
        #: By record; empty while one is being made, which is when it refers to itself.
        self._records: dict[int, list[Write]] = {}

    def write(self, schema: AvroSchema) -> Write:
        if schema.logical is not None:
            return _logical_writer(schema)
        if schema.kind == "record":
            made = self._records.get(id(schema))
            if made is None:
                made = self._records[id(schema)] = []
                made.append(self._record(schema))
                return made[0]
            found = made
            return lambda value, out: found[0](value, out)
        if schema.kind == "array":
            return _array_writer(self.write(schema.inner))
        if schema.kind == "map":
            return _map_writer(self.write(schema.inner))
        if schema.kind == "union":
            return self._union(schema)
        if schema.kind == "enum":
            return _enum_writer(schema)
        if schema.kind == "fixed":
            return _fixed_writer(schema)
        return PRIMITIVE_WRITERS[schema.kind]

    def _record(self, schema: AvroSchema) -> Write:
        known = {one.name for one in schema.fields}
        steps = []
        for one in schema.fields:
            default = None if one.default is NO_DEFAULT else default_bytes(one.schema, one.default)
            steps.append((one.name, self.write(one.schema), default))
        name = schema.bare_name

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, Mapping):
                raise refused(value, schema)
            if not known.issuperset(value):
                unknown = next(one for one in value if one not in known)
                raise BadValue(f"{name} has no field {unknown!r}")
            for field, write_field, default in steps:
                if default is not None and field not in value:
                    out += default
                    continue
                try:
                    write_field(value.get(field), out)
                except BadValue as error:
                    raise BadValue(f"{field}: {error.message}") from None

        return write

    def _union(self, schema: AvroSchema) -> Write:
        branches = [_Branch(number, one, self.write(one)) for number, one in enumerate(schema.branches)]
        names = member_names(schema)
        if self._arrow and names is not None:
            return _member_writer(schema, names, branches)
        nulls = [one.number for one in branches if one.schema.kind == "null"]
        tried = _in_order(branches)
        known = {name for one in branches for name in one.names}

        def write(value: Any, out: bytearray) -> None:
            if value is None and nulls:
                write_long(nulls[0], out)
                return
            by_name = value.__class__ is tuple and len(value) == 2 and isinstance(value[0], str) and value[0] in known
            fault = None
            start = len(out)
            for branch in tried:
                if by_name and value[0] not in branch.names:
                    continue
                write_long(branch.number, out)
                try:
                    branch.write(value[1] if by_name else value, out)
                except BadValue as error:
                    del out[start:]
                    fault = error if branch.schema.kind != "null" else fault
                else:
                    return
            single = fault is not None and len(branches) - len(nulls) == 1
            raise fault if single and fault is not None else refused(value, schema)

        return write


class _Branch:
    """Of a union that is written."""

    def __init__(self, number: int, schema: AvroSchema, write: Write) -> None:
        self.number = number
        self.schema = schema
        self.write = write
        #: What a pair `(name, value)` may call it.
        self.names = {name for name in (schema.name, schema.bare_name, schema.kind) if name}


def _in_order(branches: list[_Branch]) -> list[_Branch]:
    """As they are tried. A list is an array before it is the pairs of a map, which nothing else can be."""
    tried = [one for one in branches if one.schema.kind == "array"]
    tried += [one for one in branches if one.schema.kind != "array"]
    if sum(_is_number(one.schema) for one in branches) < 2:
        return tried
    exact = {
        one.number: _Branch(one.number, one.schema, exact_writer(one.schema.kind))
        for one in branches
        if one.schema.kind in {"float", "double"}
    }
    return [exact.get(one.number, one) for one in tried] + [one for one in tried if one.number in exact]


def _is_number(schema: AvroSchema) -> bool:
    return schema.logical == "decimal" or (schema.logical is None and schema.kind in {"int", "long", "float", "double"})


def _member_writer(schema: AvroSchema, names: list[str], branches: list[_Branch]) -> Write:
    """Of a struct that has one member for each branch but null: the one that is there is written."""
    present = [one for one in branches if one.schema.kind != "null"]
    members = [(name, one.number, one.write) for name, one in zip(names, present, strict=True)]
    null = next((one.number for one in branches if one.schema.kind == "null"), None)

    def write(value: Any, out: bytearray) -> None:
        if value is not None and not isinstance(value, Mapping):
            raise refused(value, schema)
        for name, number, write_member in members:
            member = None if value is None else value.get(name)
            if member is not None:
                write_long(number, out)
                write_member(member, out)
                return
        if null is None:
            raise refused(None, schema)
        write_long(null, out)

    return write


def _array_writer(write_item: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__") or not hasattr(value, "__iter__"):
            raise refused(value, "array")
        if len(value):
            write_long(len(value), out)
            for number, item in enumerate(value):
                try:
                    write_item(item, out)
                except BadValue as error:
                    raise BadValue(f"[{number}]: {error.message}") from None
        out.append(0)

    return write


def _map_writer(write_value: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        pairs = list(value.items()) if isinstance(value, Mapping) else value
        # Of a list only pairs are taken, as Arrow has them: a text of two letters can be unpacked too.
        if not isinstance(pairs, list) or not all(one.__class__ is tuple and len(one) == 2 for one in pairs):
            raise refused(value, "map")
        if pairs:
            write_long(len(pairs), out)
            for key, one in pairs:
                write_string(key, out)
                try:
                    write_value(one, out)
                except BadValue as error:
                    raise BadValue(f"[{key!r}]: {error.message}") from None
        out.append(0)

    return write


def _enum_writer(schema: AvroSchema) -> Write:
    numbers = {symbol: number for number, symbol in enumerate(schema.symbols)}

    def write(value: Any, out: bytearray) -> None:
        number = numbers.get(value) if isinstance(value, str) else None
        if number is None:
            raise refused(value, f"{schema}, whose symbols are {', '.join(schema.symbols[:20])}")
        write_long(number, out)

    return write


def _fixed_writer(schema: AvroSchema) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, bytes | bytearray | memoryview) or len(bytes(value)) != schema.size:
            raise refused(value, f"{schema} of {schema.size} bytes")
        out += value

    return write


# Logical types


def _logical_writer(schema: AvroSchema) -> Write:
    logical = schema.logical
    assert logical is not None
    if logical == "decimal":
        return _decimal_writer(schema)
    if logical == "uuid":
        return _uuid_writer(schema)
    write, number = PRIMITIVE_WRITERS[schema.kind], _number_of(logical)

    def write_time(value: Any, out: bytearray) -> None:
        write(value if value.__class__ is int else number(value), out)

    return write_time


def _number_of(logical: str) -> Callable[[Any], Any]:
    """From what Python has for a time to a number; others are left for the number's writer to refuse."""
    if logical == "date":
        # A datetime is a date to Python, whose time of day would be lost without a word.
        return lambda value: value.toordinal() - _FIRST_DAY if _is_day(value) else value
    what, _, unit = logical.rpartition("-")
    each_ns = _UNIT_NS[unit]

    def whole_units(micros: int, value: Any) -> int:
        number, rest = divmod(micros * 1000, each_ns)
        if rest:
            raise BadValue(f"{value} is no whole number of {unit}")
        return number

    if what == "time":

        def of_day(value: Any) -> Any:
            if not isinstance(value, time):
                return value
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return whole_units(seconds * 1_000_000 + value.microsecond, value)

        return of_day
    local = what == "local-timestamp"

    def of_instant(value: Any) -> Any:
        if not isinstance(value, datetime):
            return value
        if local is not (value.tzinfo is None):
            raise BadValue(f"{value} must be {'without' if local else 'with'} a time zone")
        return whole_units((value - (_LOCAL_EPOCH if local else _EPOCH)) // _MICROSECOND, value)

    return of_instant


def _is_day(value: Any) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def _decimal_writer(schema: AvroSchema) -> Write:
    limit, size = 10**schema.precision, schema.size if schema.kind == "fixed" else None

    what = f"decimal({schema.precision}, {schema.scale})"

    def write(value: Any, out: bytearray) -> None:
        unscaled = _unscaled(value, schema)
        if unscaled is None or abs(unscaled) >= limit:
            raise refused(value, what)
        try:
            raw = bytes_of(unscaled, size)
        except OverflowError:
            raise refused(value, f"{what} of {size} bytes") from None
        if size is None:
            write_long(len(raw), out)
        out += raw

    return write


def _unscaled(value: Any, schema: AvroSchema) -> int | None:
    """The number without its point, at the schema's scale; None where that is not exact."""
    if isinstance(value, bool | float) or not isinstance(value, Decimal | int):
        return None
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > _DECIMAL_PLACES_MAX:
        return None
    shift = exponent + schema.scale
    whole: int = int("".join(map(str, digits)))
    whole, rest = divmod(whole * 10 ** max(shift, 0), 10 ** max(-shift, 0))
    if rest:
        return None
    return -whole if sign else whole


def _uuid_writer(schema: AvroSchema) -> Write:
    def write(value: Any, out: bytearray) -> None:
        try:
            found = value if isinstance(value, UUID) else UUID(value)
        except (ValueError, TypeError, AttributeError):
            raise refused(value, "uuid") from None
        if schema.kind == "fixed":
            out += found.bytes
        else:
            write_string(str(found), out)

    return write
