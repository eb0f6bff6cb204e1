"""Protobuf to values: a message, or a row of a column.

What was written with a later schema is read with an earlier one, and the other way: that is Protobuf's own. So where
the spec names a message, a record's schema says only whether it is that one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from ottla.formats.errors import BadRecord, BadSpec, SchemaNotFound
from ottla.formats.framing import HEADER_BYTES, indexes_of, schema_id_of
from ottla.formats.interface import RECORD_BYTES_MAX, Load
from ottla.formats.protobuf.files import ProtobufSchema
from ottla.formats.schema_decoder import SchemaDecoder
from ottla.formats.source import SchemaSource
from ottla.native import compiled_protobuf

if TYPE_CHECKING:
    from ottla.formats.column_reading import ColumnReading

#: Schemas of records that are kept.
SCHEMAS_MAX: Final = 256


class ProtobufDecoder(SchemaDecoder[ProtobufSchema]):
    def __init__(self, source: SchemaSource[ProtobufSchema], *, rescue_column: str | None = None) -> None:
        super().__init__(source, rescue_column=rescue_column)
        #: By id; a text where it is none.
        self._schemas: dict[int, ProtobufSchema | str] = {}
        self._classes: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._given: Any = None
        self._row: Callable[[Any], Any] | None = None
        self._column_class: Any = None
        self._columns: ColumnReading | None = None

    # Columns

    def decode(self, values: Any) -> tuple[Any, Any]:
        compiled = compiled_protobuf()
        if compiled is None or self._rescue_column is not None:
            return super().decode(values)
        if self._columns is None:
            from ottla.formats.column_reading import ColumnReading
            from ottla.formats.protobuf.programs import ProtobufPrograms

            self._columns = ColumnReading(compiled.read, ProtobufPrograms(self._source, self._schema), super().decode)
        return self._columns.decode(values)

    def _type_of_column(self) -> Any:
        from ottla.formats.protobuf.columns import arrow_type_of, row_of

        message = self._source.column_schema().message
        found = arrow_type_of(message)
        self._row = row_of(message)
        self._column_class = GetMessageClass(message)
        return found

    def _row_of(self, data: bytes) -> Any:
        from ottla.formats.protobuf.columns import unknown_fields

        assert self._row is not None
        _, pos = self._kind_of(data, self._column_class)
        found = _parsed(self._column_class, data, pos)
        try:
            row = self._row(found)
        except UnicodeDecodeError as error:
            raise BadRecord(f"a string that is no UTF-8: {error.reason}") from None
        if self._rescue_column is not None:
            row[self._rescue_column] = unknown_fields(found)
        return row

    # Single records

    def decode_one(self, data: bytes) -> Any:
        """A message, of the class that the schema makes."""
        if self._given is None and self._source.names_its_schema:
            self._given = GetMessageClass(self._source.column_schema().message)
        kind, pos = self._kind_of(data, self._given)
        return _parsed(kind, data, pos)

    def missing_for(self, data: bytes) -> Load | None:
        schema_id = None
        if self._framed:
            with suppress(BadRecord):  # `decode_one` says so
                schema_id = schema_id_of(data)
        if self._source.is_at_hand and (schema_id is None or self._is_known(schema_id)):
            return None
        return partial(self._load, schema_id)

    def _is_known(self, schema_id: int) -> bool:
        return schema_id in self._schemas or self._source.refuses(schema_id)

    def _load(self, schema_id: int | None) -> None:
        if self._source.names_its_schema:
            self._source.column_schema()
        if schema_id is not None:
            with suppress(SchemaNotFound):  # known now, and the record's own error
                self._schema(schema_id)

    # Schemas

    def _kind_of(self, data: bytes, wanted: Any) -> tuple[Any, int]:
        """The class of a record, which must be the one that is wanted if there is one, and where its message begins."""
        if len(data) > RECORD_BYTES_MAX:
            raise BadRecord(f"{len(data)} bytes are more than a record may have, {RECORD_BYTES_MAX}")
        if not self._framed:
            return wanted, 0
        schema_id = schema_id_of(data)
        path, pos = indexes_of(data, HEADER_BYTES)
        found = self._classes.get((schema_id, path)) or self._made(schema_id, path)
        if wanted is None:
            return found, pos
        if found.DESCRIPTOR.full_name != wanted.DESCRIPTOR.full_name:
            raise BadRecord(f"a {found.DESCRIPTOR.full_name}, not a {wanted.DESCRIPTOR.full_name}")
        return wanted, pos

    def _made(self, schema_id: int, path: tuple[int, ...]) -> Any:
        try:
            schema = self._schema(schema_id)
        except SchemaNotFound as error:
            raise BadRecord(str(error)) from error
        if isinstance(schema, str):
            raise BadRecord(schema)
        made = GetMessageClass(schema.at(path))
        if len(self._classes) >= SCHEMAS_MAX:
            self._classes.clear()
        self._classes[schema_id, path] = made
        return made

    def _schema(self, schema_id: int) -> ProtobufSchema | str:
        found = self._schemas.get(schema_id)
        if found is None:
            try:
                found = self._source.writer_schema(schema_id)
            except (BadSpec, BadRecord) as error:
                found = f"schema {schema_id}: {error}"
            if len(self._schemas) >= SCHEMAS_MAX:
                self._schemas.clear()
            self._schemas[schema_id] = found
        return found


def _parsed(kind: Any, data: bytes, pos: int) -> Any:
    """The library bounds nesting and checks lengths and texts."""
    try:
        return kind.FromString(data[pos:] if pos else data)
    except (DecodeError, ValueError) as error:
        raise BadRecord(f"no {kind.DESCRIPTOR.full_name}: {error}") from None
