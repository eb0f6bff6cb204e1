"""Columns of Avro records by compiled code; what that does not take is read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyarrow import compute

from ottla.arrow.library import pa
from ottla.formats.avro.programs import NoProgram, Program, ReadColumn, program_of
from ottla.formats.avro.schema import AvroSchema
from ottla.formats.errors import BadRecord, BadSpec, SchemaNotFound
from ottla.formats.framing import HEADER_BYTES, schema_id_of
from ottla.formats.interface import RECORD_BYTES_MAX
from ottla.formats.source import SchemaSource

#: Of one array's rows; where there are more, or what is no header, they are read one by one.
_HEADERS_MAX: Final = 16
#: That are kept.
_PROGRAMS_MAX: Final = 256

#: A binary array's rows as a column and its errors.
Decode = Callable[[Any], tuple[Any, Any]]


class ColumnReading:
    def __init__(self, read: Callable[..., Any], source: SchemaSource[AvroSchema], one_by_one: Decode) -> None:
        """`read` is that of `native/avro.pyi`."""
        self._read = read
        self._source = source
        self._one_by_one = one_by_one
        #: By the headers of rows, or an empty one; None where rows are read one by one.
        self._programs: dict[bytes, Program | None] = {}

    def decode(self, values: Any) -> tuple[Any, Any]:
        if values.type != pa.binary() or values.null_count == len(values):
            return self._one_by_one(values)
        if compute.max(compute.binary_length(values)).as_py() > RECORD_BYTES_MAX:
            return self._one_by_one(values)
        if not self._source.framed:
            return self._of_one_schema(values, b"")
        headers = compute.binary_slice(values, 0, HEADER_BYTES)
        different = headers.drop_null().unique()
        if len(different) == 1:
            return self._of_one_schema(values, different[0].as_py())
        if len(different) > _HEADERS_MAX:
            return self._one_by_one(values)
        column, faults = pa.nulls(len(values), self._column_type()), pa.nulls(len(values), pa.string())
        for header in different:
            rows = compute.indices_nonzero(compute.equal(headers, header))
            found, its_faults = self._of_one_schema(values.take(rows), header.as_py())
            column, faults = _replaced(column, rows, found), _replaced(faults, rows, its_faults)
        return column, faults

    def _of_one_schema(self, values: Any, header: bytes) -> tuple[Any, Any]:
        """Of rows that have this header, or are null."""
        program = self._program(header)
        if program is None:
            return self._one_by_one(values)
        validity, offsets, data = values.buffers()
        found, bad = self._read(
            program.nodes,
            program.tables,
            program.columns,
            offsets,
            data or b"",
            validity,
            values.offset,
            len(values),
            header,
        )
        column = program.build([ReadColumn(*one) for one in found])
        faults = pa.nulls(len(values), pa.string())
        if not bad:
            return column, faults
        rows = pa.Array.from_buffers(pa.int32(), len(bad) // 4, [None, pa.py_buffer(bad)])
        others, their_faults = self._one_by_one(values.take(rows))
        return _replaced(column, rows, others), _replaced(faults, rows, their_faults)

    def _program(self, header: bytes) -> Program | None:
        if header not in self._programs:
            try:
                made = self._made(header)
            except SchemaNotFound:  # the registry may have it later
                return None
            if len(self._programs) >= _PROGRAMS_MAX:
                self._programs.clear()
            self._programs[header] = made
        return self._programs[header]

    def _made(self, header: bytes) -> Program | None:
        try:
            writer = self._source.writer_schema(schema_id_of(header) if self._source.framed else 0)
            return program_of(writer, self._source.column_schema())
        except SchemaNotFound:
            raise
        except (BadRecord, BadSpec, NoProgram, RecursionError):  # of which each row's error speaks
            return None

    def _column_type(self) -> Any:
        from ottla.formats.avro.columns import arrow_type_of

        return arrow_type_of(self._source.column_schema())


def _replaced(column: Any, rows: Any, by: Any) -> Any:
    """The column with other values in these rows."""
    if by.null_count == len(by):  # as they are there
        return column
    places = list(range(len(column)))
    for place, row in enumerate(rows.to_pylist(), start=len(column)):
        places[row] = place
    return pa.concat_arrays([column, by]).take(pa.array(places, pa.int64()))
