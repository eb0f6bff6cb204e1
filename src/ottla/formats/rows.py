"""Columns out of rows that were decoded one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.arrow.library import pa
from ottla.formats.errors import BadRecord, BadSpec, BadValue, FormatError

#: Fields of a column, with all that is in them. Types that use each other twice would make any number of them.
FIELDS_MAX: Final = 10_000
_REFUSALS: Final = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
)


#: Of a time beyond those that Python has.
_NO_OBJECT: Final = (ValueError, OverflowError, ImportError)


class FieldCount:
    """Of the type that is being made of a schema."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, count: int) -> None:
        self._count += count
        if self._count > FIELDS_MAX:
            raise BadSpec(f"the schema makes a column of more than {FIELDS_MAX} fields")


def rows_of(values: Any, fault: str) -> list[Any]:
    """A column's rows as Python has them; raises BadValue, which begins with `fault`, for one that it cannot hold."""
    rows: list[Any] = []
    try:
        rows = values.to_pylist()
    except _NO_OBJECT:
        for row, cell in enumerate(values):
            try:
                rows.append(cell.as_py())
            except _NO_OBJECT as error:
                raise BadValue(f"{fault}: {error}", row) from None
    return rows


def decoded(values: Any, read: Callable[[bytes], Any], arrow_type: Any) -> tuple[Any, Any]:
    """A binary array's rows, read one by one, as a column and its errors; nulls stay null."""
    rows: list[Any] = []
    errors: list[str | None] = []
    for data in values.to_pylist():
        row, error = None, None
        if data is not None:
            try:
                row = read(data)
            except BadRecord as bad:
                error = str(bad)
        rows.append(row)
        errors.append(error)
    return column_of(rows, errors, arrow_type)


def column_of(rows: list[Any], errors: list[str | None], arrow_type: Any) -> tuple[Any, Any]:
    """The column and its errors. A row that the type cannot hold is a null, and has an error of its own."""
    try:
        column = pa.array(rows, arrow_type)
    except _REFUSALS:
        for number, row in enumerate(rows):
            try:
                pa.array([row], arrow_type)
            except _REFUSALS as error:
                rows[number], errors[number] = None, f"the column cannot hold it: {error}"
        column = pa.array(rows, arrow_type)
    if not isinstance(column, pa.Array):
        raise FormatError(f"{len(rows)} rows are more than the 2 GiB that an Arrow column holds: read fewer at once")
    return column, pa.array(errors, pa.string())
