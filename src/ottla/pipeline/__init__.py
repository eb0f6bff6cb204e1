"""Pipelines: one Python file says which tables there are, and `ottla pipeline run` keeps them (docs/pipelines.md).

    from ottla.pipeline import decode_json, expect_or_drop, read_stream, read_topic, sink, table

    @table
    def orders_raw():
        return read_topic("orders")

    @table
    @expect_or_drop("positive amount", "amount > 0")
    def orders():
        return decode_json(read_stream("orders_raw"), "id BIGINT, amount DOUBLE")

Names and meanings are those of Databricks' declarative pipelines. Read in this order: `definitions` (what a file says),
`loading` (the file), `planning` (frames, and what reads what), `tables/` (where rows are kept, once each), `writing`
(one micro-batch), `running` (all flows). Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import lazy_names

if TYPE_CHECKING:
    from ottla.pipeline.changes import apply_changes
    from ottla.pipeline.decoding import decode, decode_json
    from ottla.pipeline.definitions import sink, table, view
    from ottla.pipeline.errors import PipelineError
    from ottla.pipeline.expectations import (
        expect,
        expect_all,
        expect_all_or_drop,
        expect_all_or_fail,
        expect_on_time,
        expect_or_drop,
        expect_or_fail,
    )
    from ottla.pipeline.reading import deduplicate, read, read_stream, read_topic
    from ottla.pipeline.tables.reading import read_table

_HOMES = {
    "PipelineError": "errors",
    "apply_changes": "changes",
    "decode": "decoding",
    "decode_json": "decoding",
    "deduplicate": "reading",
    "expect": "expectations",
    "expect_all": "expectations",
    "expect_all_or_drop": "expectations",
    "expect_all_or_fail": "expectations",
    "expect_on_time": "expectations",
    "expect_or_drop": "expectations",
    "expect_or_fail": "expectations",
    "read": "reading",
    "read_stream": "reading",
    "read_table": "tables.reading",
    "read_topic": "reading",
    "sink": "definitions",
    "table": "definitions",
    "view": "definitions",
}

__all__ = [
    "PipelineError",
    "apply_changes",
    "decode",
    "decode_json",
    "deduplicate",
    "expect",
    "expect_all",
    "expect_all_or_drop",
    "expect_all_or_fail",
    "expect_on_time",
    "expect_or_drop",
    "expect_or_fail",
    "read",
    "read_stream",
    "read_table",
    "read_topic",
    "sink",
    "table",
    "view",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = lazy_names(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()})


def __dir__() -> list[str]:
    return __all__
