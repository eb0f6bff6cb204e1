"""Avro to values: one record as Python has it, or a column.

Records are read by a *plan*: what `resolution` made of the writer's schema and the reader's. In Confluent's framing
each record names its writer's schema, and a plan is made for each id that is met; plain records have one writer's
schema, which is the reader's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final

from ottla.formats.avro.resolution import Form, fields_taken, reader_of
from ottla.formats.avro.schema import AvroSchema
from ottla.formats.avro.shapes import others
from ottla.formats.errors import BadRecord, BadSpec, SchemaNotFound
from ottla.formats.framing import HEADER_BYTES, schema_id_of
from ottla.formats.interface import RECORD_BYTES_MAX, Load
from ottla.formats.schema_decoder import SchemaDecoder
from ottla.formats.source import SchemaSource
from ottla.native import compiled_avro
from ottla.records.errors import RecordError
from ottla.records.varint import read_varlong

if TYPE_CHECKING:
    from ottla.formats.column_reading import ColumnReading

#: Plans that are kept; a topic whose records come from more schemas has them made again.
PLANS_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    #: A whole record, behind its header.
    read: Callable[[bytes, int], Any]
    #: What of it the reader does not know, where that is asked for.
    rescue: Callable[[bytes, int], str | None] | None = None


class AvroDecoder(SchemaDecoder[AvroSchema]):
    def __init__(self, source: SchemaSource[AvroSchema], *, rescue_column: str | None = None) -> None:
        super().__init__(source, rescue_column=rescue_column)
        self._plans: dict[tuple[int, Form], Plan] = {}
        self._columns: ColumnReading | None = None

    # Columns

    def decode(self, values: Any) -> tuple[Any, Any]:
        compiled = compiled_avro()
        if compiled is None or self._rescue_column is not None:
            return super().decode(values)
        if self._columns is None:
            from ottla.formats.avro.programs import AvroPrograms
            from ottla.formats.column_reading import ColumnReading

            self._columns = ColumnReading(compiled.read, AvroPrograms(self._source), super().decode)
        return self._columns.decode(values)

    def _type_of_column(self) -> Any:
        from ottla.formats.avro.columns import arrow_type_of

        schema = self._source.column_schema()
        if self._rescue_column is not None and _record_of(schema) is None:
            raise BadSpec("a rescue column stands beside the fields of a record, and the schema is none")
        return arrow_type_of(schema)

    def _row_of(self, data: bytes) -> Any:
        plan, pos = self._plan_for(data, Form.ARROW)
        row = plan.read(data, pos)
        if plan.rescue is not None and row is not None:
            row[self._rescue_column] = plan.rescue(data, pos)
        return row

    # Single records

    def decode_one(self, data: bytes) -> Any:
        plan, pos = self._plan_for(data, Form.OBJECTS)
        return plan.read(data, pos)

    def missing_for(self, data: bytes) -> Load | None:
        try:
            schema_id = schema_id_of(data) if self._framed else 0
        except BadRecord:
            return None  # `decode_one` says so
        if (schema_id, Form.OBJECTS) in self._plans or self._source.refuses(schema_id):
            return None
        return partial(self._load, schema_id)

    def _load(self, schema_id: int) -> None:
        with suppress(BadRecord):  # known now, and the record's own error
            self._plan(schema_id, Form.OBJECTS)

    # Plans

    def _plan_for(self, data: bytes, form: Form) -> tuple[Plan, int]:
        if len(data) > RECORD_BYTES_MAX:
            raise BadRecord(f"{len(data)} bytes are more than a record may have, {RECORD_BYTES_MAX}")
        if not self._framed:
            return self._plan(0, form), 0
        return self._plan(schema_id_of(data), form), HEADER_BYTES

    def _plan(self, schema_id: int, form: Form) -> Plan:
        found = self._plans.get((schema_id, form))
        if found is None:
            found = self._made(schema_id, form)
            if len(self._plans) >= PLANS_MAX:
                self._plans.clear()
            self._plans[schema_id, form] = found
        return found

    def _made(self, schema_id: int, form: Form) -> Plan:
        """A schema that is none, or that the reader's cannot take, is an error of each record that has it.

        So is an id that the registry does not have, which it may have later; but not that it lacks the reader's.
        """
        reader = self._source.column_schema() if form is Form.ARROW else self._source.given_schema()
        try:
            writer = self._source.writer_schema(schema_id)
            read = reader_of(writer, reader or writer, form)
        except SchemaNotFound as error:
            raise BadRecord(str(error)) from error
        except BadRecord as error:  # it is another language's
            return Plan(read=partial(_refuse, str(error)))
        except (BadSpec, RecursionError) as error:
            return Plan(read=partial(_refuse, f"schema {schema_id} does not go with the reader's: {error}"))
        if form is not Form.ARROW or self._rescue_column is None or reader is None:
            return Plan(read=_whole(read))
        record = _record_of(reader)
        return Plan(read=_whole(read), rescue=None if record is None else _rescuer(writer, record))


def _refuse(message: str, _data: bytes, _pos: int) -> Any:
    raise BadRecord(message)


def _whole(read: Callable[[bytes, int], tuple[Any, int]]) -> Callable[[bytes, int], Any]:
    """A reader of records that are neither cut off nor longer than their value."""

    def read_whole(data: bytes, start: int) -> Any:
        try:
            value, end = read(data, start)
        except IndexError:
            raise BadRecord(f"the record ends within its value, after {len(data)} bytes") from None
        except RecursionError:
            raise BadRecord("the value is nested too deep") from None
        except RecordError as error:  # of a number's bytes
            raise BadRecord(str(error)) from None
        if end != len(data):
            raise BadRecord(f"{len(data) - end} bytes are left behind the value")
        return value

    return read_whole


def _record_of(schema: AvroSchema) -> AvroSchema | None:
    """The record that a row is: the schema, or what its union has beside null."""
    found = others(schema) if schema.kind == "union" else [schema]
    return found[0] if len(found) == 1 and found[0].kind == "record" else None


def _rescuer(writer: AvroSchema, reader: AvroSchema) -> Callable[[bytes, int], str | None]:
    """The fields that only the writer knows, as JSON. The bytes are a value that was read before."""
    if writer.kind == "union":
        branches = [_rescuer(one, reader) for one in writer.branches]

        def rescue_branch(data: bytes, start: int) -> str | None:
            number, start = read_varlong(data, start)
            return branches[number](data, start)

        return rescue_branch
    taken = fields_taken(writer, reader)
    unknown = [one for one in writer.fields if one.name not in taken]
    if not unknown:
        return lambda _data, _start: None
    wanted = replace(writer, fields=unknown)
    read, read_raw = reader_of(writer, wanted, Form.OBJECTS), reader_of(writer, wanted, Form.RAW)

    def rescue(data: bytes, start: int) -> str:
        try:
            try:
                found = read(data, start)[0]
            except BadRecord:  # a time that Python cannot say, which makes no row bad that does not have it
                found = read_raw(data, start)[0]
            return _json_of(found)
        except RecursionError:
            raise BadRecord("the value is nested too deep") from None

    return rescue


def _json_of(value: Any) -> str:
    try:
        return _JSON.encode(value)
    except ValueError:
        return _JSON.encode(_with_words(value))


def _with_words(value: Any) -> Any:
    """With texts for numbers that JSON does not have."""
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _with_words(one) for name, one in value.items()}
    return [_with_words(one) for one in value] if isinstance(value, list) else value


def _in_json(value: Any) -> str:
    """Bytes as Avro's own JSON has them, and times and decimals as their texts."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


_JSON: Final = json.JSONEncoder(allow_nan=False, default=_in_json, ensure_ascii=False, separators=(",", ":"))
