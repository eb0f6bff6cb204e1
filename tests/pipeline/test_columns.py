"""Columns of odd types and names: variants, intervals of months, a backtick in a name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline.errors import ExpectationFailed
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


def test_a_row_of_a_type_that_python_has_not_breaks_a_rule(pipeline: Pipeline) -> None:
    pipeline.define(
        """
        @table
        @expect_or_fail("before", "offset < 0")
        def raw():
            return read_topic("TOPIC").selectExpr("offset", "interval '1' month AS it")
        """
    )
    pipeline.send({})
    with pytest.raises(ExpectationFailed, match=r"break 'before' .* the first: .*INTERVAL '1' MONTH"):
        pipeline.catch_up()


@pytest.mark.slow
def test_names_with_all_that_spark_has_a_meaning_for(pipeline: Pipeline) -> None:
    """Dots, blanks and backticks: of fields, of keys, and of what is tracked."""
    pipeline.define(
        """
        @table(keys=["a`b", "c.d"])
        @expect_or_drop("positive", "`e f` > 0")
        def raw():
            return decode_json(read_topic("TOPIC"), "`a``b` INT, `c.d` INT, `e f` INT, `g``h.i` STRUCT<`j``k`: INT>")

        @table
        def copy():
            return read_stream("raw")

        apply_changes(
            target="history", source="copy", keys=["a`b"], sequence_by="timestamp", stored_as_scd_type=2,
            column_list=["a`b", "g`h.i"],
        )
        """
    )
    pipeline.send({"a`b": 1, "c.d": 2, "e f": 3, "g`h.i": {"j`k": 4}}, {"a`b": 1, "c.d": 3, "e f": -1})
    pipeline.catch_up()
    assert pipeline.rows("raw", "`a``b`", "`c.d`", "`e f`", "`g``h.i`.`j``k`") == [(1, 2, 3, 4)]
    assert pipeline.rows("history", "`a``b`", "`g``h.i`.`j``k`") == [(1, 4)]
