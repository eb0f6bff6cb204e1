"""What verbs show: a table for people, JSON and YAML for programs.

A table may leave things out and shorten them; JSON and YAML hold everything, under names that stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def show(form: str, data: Any, table: str) -> None:
    """Prints `data` as JSON or YAML, or else the table that was made of it."""
    if form == "json":
        import json

        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    elif form == "yaml":
        text = _yaml(data)
    else:
        text = table
    sys.stdout.write(text)


def _yaml(data: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text


def show_rows(form: str, rows: Sequence[Row], columns: Mapping[str, str]) -> None:
    """A list of like things. `columns` gives the table's headings for the names that it shows."""
    show(form, [dict(row) for row in rows], table_of(rows, columns) if form == "table" else "")


def table_of(rows: Iterable[Row], columns: Mapping[str, str]) -> str:
    """Columns as wide as they need to be; numbers to the right."""
    lines = [list(columns.values())]
    values = [[row.get(name) for name in columns] for row in rows]
    lines += [[cell(value) for value in line] for line in values]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    numeric = [bool(values) and all(_is_number(line[at]) for line in values) for at in range(len(columns))]
    return "".join(_line(line, widths, numeric) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    placed = [
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ]
    return "  ".join(placed).rstrip() + "\n"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def cell(value: Any) -> str:
    """One value as a table shows it, on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(cell(each) for each in value) or "-"
    text = str(value)
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
