"""JSON with columns as Spark's DDL names them: `json:id BIGINT, name STRING`.

What becomes of a record is what Spark's `from_json` makes of it (PERMISSIVE): a member that is missing or does not fit
is a null; of a record that is no JSON object all are; a column `_corrupt_record STRING` in the schema gets the text of
both. What is not in the schema is passed over.

Columns are read by compiled code (`json_programs.py`), which leaves to Python each row in which anything is wrong or
doubtful. Where there is no compiled code, pyarrow's reader takes whole columns, where it gives exactly the same: for
types whose values are the same in both, and for rows in which it finds nothing to object to. It reads lines, so rows
that could run into each other are kept from it. Where it objects, halves are tried, and Python reads what is small.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from ottla.formats.ddl import ArrayOf, DdlType, Simple, StructOf, arrow_type_of, parsed_ddl
from ottla.formats.errors import BadRecord, BadSpec, BadValue
from ottla.formats.interface import RECORD_BYTES_MAX, Decoder, Encoder
from ottla.formats.json_values import PARSER, SPACE, TextWanted, behind_space, converter, with_texts
from ottla.formats.settings import FormatSettings
from ottla.native import compiled_json

if TYPE_CHECKING:
    from ottla.formats.column_reading import ColumnReading

CORRUPT: Final = "_corrupt_record"
#: Types of which pyarrow's reader takes just what Python's reader here takes, and makes the same of it.
_AT_ONCE: Final = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "double", "string"})
#: Times are read as texts, which become times at once where all are written alike, and far from a calendar's ends.
_TIMES: Final = frozenset({"timestamp", "timestamp_ntz", "date"})
_DAY: Final = r"^[1-8]\d{3}-\d\d-\d\d"
_SECOND: Final = _DAY + r"[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"
_ZONED: Final = _SECOND + r"(Z|[+-](0\d|1[0-7]):[0-5]\d)$"
#: Fewer rows are not worth another try with half of them.
_ROWS_AT_ONCE_MIN: Final = 128


class JsonDecoder(Decoder):
    def __init__(self, schema: StructOf) -> None:
        self._schema = schema
        self._keeps_corrupt = (CORRUPT, Simple("string")) in schema.fields
        #: What is parsed: all but the column for what cannot be.
        self._parsed = StructOf(tuple(one for one in schema.fields if not self._keeps_corrupt or one[0] != CORRUPT))
        self._convert = converter(self._parsed)
        self._times = frozenset(
            name for name, kind in self._parsed.fields if isinstance(kind, Simple) and kind.name in _TIMES
        )
        #: As pyarrow's reader is asked for it.
        self._lines = StructOf(
            tuple((name, Simple("string") if name in self._times else kind) for name, kind in self._parsed.fields)
        )
        self._is_simple = bool(self._parsed.fields) and _reads_at_once(self._lines)
        self._columns: ColumnReading | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonDecoder, (self._schema,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonDecoder) and self._schema == other._schema

    def __hash__(self) -> int:
        return hash(self._schema)

    @property
    def arrow_type(self) -> Any:
        return arrow_type_of(self._schema)

    def decode_one(self, data: bytes) -> Any:
        value, fault = self._read(data)
        if fault is not None:
            raise BadRecord(fault)
        return value

    def decode(self, values: Any) -> tuple[Any, Any]:
        from ottla.arrow.library import pa

        if not len(values):
            return pa.nulls(0, self.arrow_type), pa.nulls(0, pa.string())
        compiled = compiled_json()
        if compiled is None:
            return self._in_python(values)
        if self._columns is None:
            from ottla.formats.column_reading import ColumnReading
            from ottla.formats.json_programs import JsonPrograms

            programs = JsonPrograms(self._schema, CORRUPT if self._keeps_corrupt else None)
            self._columns = ColumnReading(compiled.read, programs, self._in_python)
        return self._columns.decode(values)

    def _in_python(self, values: Any) -> tuple[Any, Any]:
        from ottla.arrow.library import pa

        parts = list(self._parts(values)) if self._is_simple else [self._one_by_one(values)]
        if len(parts) == 1:
            return parts[0]
        columns, faults = zip(*parts, strict=True)
        return pa.concat_arrays(columns), pa.concat_arrays(faults)

    def _read(self, data: bytes) -> tuple[dict[str, Any] | None, str | None]:
        """The value, and what is wrong."""
        faults: list[str] = []
        found: dict[str, Any] | None = None
        try:
            found = self._value(data, faults)
        except (ValueError, RecursionError) as error:
            found = dict.fromkeys(name for name, _ in self._parsed.fields)
            why = "its values lie too deep within each other" if isinstance(error, RecursionError) else error
            faults.insert(0, f"no JSON object: {why}")
        if found is None or not faults:
            return found, "no JSON object: it is empty" if found is None else None
        if self._keeps_corrupt:
            found[CORRUPT] = data.decode(errors="replace")
        return found, faults[0]

    def _value(self, data: bytes, faults: list[str]) -> dict[str, Any] | None:
        if len(data) > RECORD_BYTES_MAX:
            raise ValueError(f"it has {len(data)} bytes, and {RECORD_BYTES_MAX} are read at most")
        text = data.decode()
        start = behind_space(text, 0)
        if start == len(text):
            return None
        if text[start] != "{":
            raise ValueError(f"it begins with {text[start]!r}")
        value, end = PARSER.raw_decode(text, start)
        if behind_space(text, end) < len(text):
            raise ValueError(f"something stands behind it, at character {end}")
        try:
            found = self._convert(value, faults)
        except TextWanted:
            faults.clear()
            found = self._convert(with_texts(text, start, self._parsed)[0], faults)
        if self._keeps_corrupt:
            found[CORRUPT] = None
        made: dict[str, Any] = found
        return made

    # Columns

    def _one_by_one(self, values: Any) -> tuple[Any, Any]:
        from ottla.arrow.library import pa

        found: list[dict[str, Any] | None] = []
        faults: list[str | None] = []
        for data in values.to_pylist():
            value, fault = (None, None) if data is None else self._read(data)
            found.append(value)
            faults.append(fault)
        return pa.array(found, self.arrow_type), pa.array(faults, pa.string())

    def _parts(self, values: Any) -> Iterator[tuple[Any, Any]]:
        from ottla.arrow.library import pa

        found = self._at_once(values)
        if found is not None:
            yield found, pa.nulls(len(values), pa.string())
        elif len(values) < 2 * _ROWS_AT_ONCE_MIN:
            yield self._one_by_one(values)
        else:
            half = len(values) // 2
            yield from self._parts(values.slice(0, half))
            yield from self._parts(values.slice(half))

    def _at_once(self, values: Any) -> Any:
        """The column, where pyarrow's reader finds nothing wrong in any row; None otherwise."""
        from ottla.arrow.library import pa

        rows = values.drop_null() if values.null_count else values
        if not len(rows):
            return pa.nulls(len(values), self.arrow_type)
        try:
            table = _lines_read(rows, arrow_type_of(self._lines))
            if table is None:
                return None
            columns = []
            for field in self.arrow_type:
                if self._keeps_corrupt and field.name == CORRUPT:
                    columns.append(pa.nulls(len(rows), field.type))
                    continue
                column = table.column(field.name).combine_chunks()
                columns.append(_times_of(column, field.type) if field.name in self._times else column)
        except pa.ArrowException:
            return None
        found = pa.StructArray.from_arrays(columns, fields=list(self.arrow_type))
        return found if rows is values else _spread(found, values)


def _reads_at_once(kind: DdlType) -> bool:
    if isinstance(kind, StructOf):
        return all(_reads_at_once(one) for _, one in kind.fields)
    if isinstance(kind, ArrayOf):
        return _reads_at_once(kind.element)
    return isinstance(kind, Simple) and kind.name in _AT_ONCE


def _lines_read(rows: Any, kind: Any) -> Any:
    """A table with a row for each; None where rows could have run into each other. Raises ArrowException.

    What begins and ends with a brace, and has no line's end, cannot go on in the next line, which begins with one too:
    nowhere in JSON a brace opens behind one that closes. So each line is an object, or several, or a fault; and where
    there are no more than lines, each is one.
    """
    from pyarrow import compute
    from pyarrow import json as arrow_json

    from ottla.arrow.library import pa

    texts = rows.cast(pa.string())  # or it is no UTF-8
    if compute.max(compute.binary_length(rows)).as_py() > RECORD_BYTES_MAX:
        return None
    if not _are_between_braces(rows):
        rows = compute.ascii_trim(texts, SPACE).cast(rows.type)
        if not _are_between_braces(rows):
            return None
    ends = pa.array([0, len(rows)], pa.int32())
    lines = compute.binary_join(pa.ListArray.from_arrays(ends, rows), b"\n")[0].as_buffer()
    raw = lines.to_pybytes()
    if raw.count(b"\n") != len(rows) - 1 or b"\r" in raw or b"\0" in raw:
        return None
    table = arrow_json.read_json(
        pa.BufferReader(lines),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(raw) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore", newlines_in_values=False
        ),
    )
    return table if table.num_rows == len(rows) else None


def _are_between_braces(rows: Any) -> bool:
    from pyarrow import compute

    found: bool = compute.all(compute.and_(compute.starts_with(rows, "{"), compute.ends_with(rows, "}"))).as_py()
    return found


def _times_of(texts: Any, kind: Any) -> Any:
    """Raises ArrowInvalid where they are written in several ways, or one is no time."""
    from pyarrow import compute

    from ottla.arrow.library import pa

    def all_are(pattern: str) -> bool:
        return compute.all(compute.match_substring_regex(texts, pattern), min_count=0).as_py() is not False

    if pa.types.is_date32(kind):
        pattern, through = _DAY + "$", kind
    elif kind.tz is not None and all_are(_ZONED):
        pattern, through = _ZONED, kind
    else:
        pattern, through = _SECOND + "$", pa.timestamp("us")
    if not all_are(pattern):
        raise pa.ArrowInvalid("times are written in several ways")
    return texts.cast(through).cast(kind)


def _spread(found: Any, values: Any) -> Any:
    """With nulls where the values have them."""
    from pyarrow import compute

    from ottla.arrow.library import pa

    valid = values.is_valid()
    places = compute.subtract(compute.cumulative_sum(compute.cast(valid, pa.int64())), 1)
    return found.take(compute.if_else(valid, places, pa.scalar(None, pa.int64())))


class JsonEncoder(Encoder):
    """As Spark's `to_json`: members that are null are left out, a map is an object, with its nulls, a decimal is a
    number, and a double that is none a text. Times keep their microseconds, of which Spark writes three digits."""

    def encode(self, values: Any) -> Any:
        from ottla.arrow.library import pa
        from ottla.formats.rows import rows_of

        encoded: list[bytes | None] = []
        mapped = _mapped(values.type)
        for row, value in enumerate(rows_of(values, "no JSON")):
            try:
                encoded.append(None if value is None else self.encode_one(value if mapped is None else mapped(value)))
            except BadValue as error:
                raise BadValue(error.message, row) from None
            except TypeError as error:  # of a map's key
                raise BadValue(f"no JSON: {error}", row) from None
        return pa.array(encoded, pa.binary())

    def encode_one(self, value: Any) -> bytes:
        try:
            found = _without_nulls(value)
            try:
                return _dumped(found).encode()
            except (_NoPlainNumber, ValueError):  # ValueError: of NaN
                return _text_of(found).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadValue(f"no JSON: {error}") from None


class _NoPlainNumber(Exception):
    """There is a decimal, which `json` cannot write as a number."""


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_plain_text)


def _as_plain_text(value: Any) -> str:
    if isinstance(value, Decimal):
        raise _NoPlainNumber
    return _as_text(value)


def _text_of(value: Any) -> str:
    """The same, piece by piece, with the numbers that `json` does not write."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{_dumped(_name(name))}:{_text_of(one)}' for name, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_text_of, value))}]"
    if isinstance(value, Decimal | float) and not math.isfinite(value):
        return _dumped("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    return str(value) if isinstance(value, Decimal) else _dumped(value)


class _Object(dict[str, Any]):
    """Of a map: its nulls are written."""


def _mapped(kind: Any) -> Callable[[Any], Any] | None:
    """What makes objects of the maps in values of an Arrow type, lists of pairs in Python; None without any."""
    from ottla.arrow.library import pa

    types = pa.types
    if types.is_map(kind):
        of_item = _mapped(kind.item_type) or _as_it_is
        return lambda pairs: None if pairs is None else _Object((_name(key), of_item(one)) for key, one in pairs)
    if types.is_float32(kind):
        return _shortest
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        of_one = _mapped(kind.value_type)
        return of_one and (lambda values: None if values is None else [of_one(one) for one in values])
    if types.is_struct(kind):
        of_members = {field.name: one for field in kind if (one := _mapped(field.type)) is not None}
        return _of_struct(of_members) if of_members else None
    return None


def _of_struct(of_members: dict[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        return value and {name: of_members.get(name, _as_it_is)(one) for name, one in value.items()}

    return convert


def _shortest(value: float | None) -> float | None:
    """The double with the fewest digits that is this float: 1.1, and not 1.100000023841858."""
    if value is None or not math.isfinite(value):
        return value
    shorter = (float(f"{value:.{digits}g}") for digits in range(6, 10))  # nine say any
    return next(one for one in shorter if array("f", [one])[0] == value)


def _as_it_is(value: Any) -> Any:
    return value


def _name(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, str | int | float) else _as_text(key)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, _Object):
        return {name: _without_nulls(one) for name, one in value.items()}
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def decoder(what: str, _settings: FormatSettings) -> Decoder:
    if not what:
        raise BadSpec("json needs its columns behind a colon, as in json:id BIGINT, name STRING")
    return JsonDecoder(parsed_ddl(what))


def encoder(_what: str, _settings: FormatSettings) -> Encoder:
    return JsonEncoder()
