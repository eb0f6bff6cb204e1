"""Writes the table of all APIs, which is all that a broker loads of them at start."""

from __future__ import annotations

from ottla.protocol.compile.schema import Schema
from ottla.protocol.compile.shape import snake


def catalogue(schemas: list[Schema]) -> str:
    apis = sorted((schema for schema in schemas if schema.api_key >= 0), key=lambda schema: schema.api_key)
    lines = [
        '"""Every API: its key, name, versions, first flexible version, and whether only brokers send it.',
        "",
        "Made from the schema files by `python -m ottla.protocol.compile`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ApiKey(IntEnum):",
        *(f"    {snake(schema.name).upper()} = {schema.api_key}" for schema in apis),
        "",
        "",
        "#: key, name, module, first and last version, first flexible version, between brokers",
        "ROWS: tuple[tuple[int, str, str, int, int, int | None, bool], ...] = (",
    ]
    lines += [
        f'    ({schema.api_key}, "{schema.name}", "{snake(schema.name)}", {schema.versions.first}, '
        f"{schema.versions.last}, {schema.flexible_from}, {schema.between_brokers}),"
        for schema in apis
    ]
    return "\n".join([*lines, ")", ""])
