"""Columns by compiled code, which walks a program of the schema; what it does not take is read one by one.

A format makes programs of its schemas (`avro/programs.py`, `protobuf/programs.py`). Of what is rare it makes none, and
its compiled code refuses rows that are rare or not sound: those are read row by row, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pyarrow import compute

from ottla.arrow.library import pa
from ottla.formats.errors import BadRecord, BadSpec, SchemaNotFound
from ottla.formats.interface import RECORD_BYTES_MAX

#: Of one array's rows; where there are more, or what is no header, they are read one by one.
_HEADERS_MAX: Final = 16
#: That are kept.
_PROGRAMS_MAX: Final = 256


class NoProgram(Exception):
    """The schemas have something that is read row by row."""


class ReadColumn(NamedTuple):
    """As compiled code gives it: `data` are numbers or offsets, `more` what these lead to."""

    rows: int
    nulls: int
    validity: bytes | None
    data: bytes | None
    more: bytes | None

    def made(self, kind: Any, buffers: Sequence[bytes | None], children: Sequence[Any] = ()) -> Any:
        given = [None if one is None else pa.py_buffer(one) for one in (self.validity, *buffers)]
        return pa.Array.from_buffers(kind, self.rows, given, self.nulls, children=list(children))


#: Of all columns, the one of a node with those below it.
Build: TypeAlias = Callable[[Sequence[ReadColumn]], Any]
#: A binary array's rows as a column and its errors.
Decode: TypeAlias = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    nodes: bytes
    tables: bytes
    columns: int
    build: Build


class Programs(Protocol):
    """What a format knows of its columns."""

    def header_bytes(self, start: bytes) -> int:
        """How long the header is that begins so; of no bytes how many say it, and 0 where there are no headers."""
        ...

    def program(self, header: bytes) -> Program:
        """Raises NoProgram or an error that each row has, and SchemaNotFound, which it may not have later."""
        ...

    def column_type(self) -> Any:
        """Raises BadSpec."""
        ...


class ColumnReading:
    def __init__(self, read: Callable[..., Any], programs: Programs, one_by_one: Decode) -> None:
        """`read` is that of `native/avro.pyi` or `native/protobuf.pyi`."""
        self._read = read
        self._programs = programs
        self._one_by_one = one_by_one
        #: By the headers of rows, or an empty one; None where rows are read one by one.
        self._made: dict[bytes, Program | None] = {}

    def decode(self, values: Any) -> tuple[Any, Any]:
        if values.type != pa.binary() or values.null_count == len(values):
            return self._one_by_one(values)
        if compute.max(compute.binary_length(values)).as_py() > RECORD_BYTES_MAX:
            return self._one_by_one(values)
        return self._of_equal_start(values, b"", 0)

    def _of_equal_start(self, values: Any, start: bytes, asked: int) -> tuple[Any, Any]:
        """Of rows that begin so, or are null; the bytes are fewer than were asked for where the rows have no more."""
        size = self._programs.header_bytes(start) if len(start) == asked else 0
        if size <= len(start):
            return self._of_one_schema(values, start)
        starts = compute.binary_slice(values, 0, size)
        different = starts.drop_null().unique()
        if len(different) == 1:
            return self._of_equal_start(values, different[0].as_py(), size)
        if len(different) > _HEADERS_MAX:
            return self._one_by_one(values)
        column, faults = pa.nulls(len(values), self._programs.column_type()), pa.nulls(len(values), pa.string())
        for one in different:
            rows = compute.indices_nonzero(compute.equal(starts, one))
            found, its_faults = self._of_equal_start(values.take(rows), one.as_py(), size)
            column, faults = _replaced(column, rows, found), _replaced(faults, rows, its_faults)
        return column, faults

    def _of_one_schema(self, values: Any, header: bytes) -> tuple[Any, Any]:
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
        if header not in self._made:
            try:
                made = self._programs.program(header)
            except SchemaNotFound:  # the registry may have it later
                return None
            except (BadRecord, BadSpec, NoProgram, RecursionError):  # of which each row's error speaks
                made = None
            if len(self._made) >= _PROGRAMS_MAX:
                self._made.clear()
            self._made[header] = made
        return self._made[header]


def _replaced(column: Any, rows: Any, by: Any) -> Any:
    """The column with other values in these rows."""
    if by.null_count == len(by):  # as they are there
        return column
    places = list(range(len(column)))
    for place, row in enumerate(rows.to_pylist(), start=len(column)):
        places[row] = place
    return pa.concat_arrays([column, by]).take(pa.array(places, pa.int64()))
