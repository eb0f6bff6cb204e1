"""Tables with variants: streams of them, and small files that become one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline.tables.log import TableLog

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

#: Spark takes out what many values of a file have in common: here each file has it in another type.
MANY: list[list[Any]] = [
    [{"a": number, "b": "x", f"rare-{number}": number} for number in range(20)],
    [{"a": f"text {number}", "c": [number]} for number in range(20)],
]


def test_a_stream_of_variants_and_one_file_of_many(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline.define(
        """
        @table
        def raw():
            return read_topic("TOPIC").selectExpr("parse_json(cast(value AS string)) AS it").coalesce(1)

        @table
        def copy():
            return read_stream("raw").selectExpr("it", "struct(it) AS nested")
        """
    )
    monkeypatch.setattr("ottla.pipeline.tables.upkeep.SMALL_FILES_MAX", len(MANY))
    for values in MANY:
        pipeline.send(*values)
        pipeline.catch_up()
    wanted = sorted(json.dumps(one, sort_keys=True) for values in MANY for one in values)

    def found(table: str, column: str) -> list[str]:
        texts = pipeline.rows(table, f"to_json({column})")
        return sorted(json.dumps(json.loads(text), sort_keys=True) for (text,) in texts)

    assert len(TableLog(pipeline.places.table("raw")).state().files) == 1
    assert found("raw", "it") == found("copy", "it") == found("copy", "nested.it") == wanted
