"""Columns out of rows that were decoded one by one."""

from __future__ import annotations

from typing import Any

from ottla.arrow.library import pa
from ottla.formats.errors import FormatError

_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)


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
