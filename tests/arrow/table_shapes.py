"""Tables of records at random, in chunks and slices."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from tests.arrow.batch_shapes import some_record

from ottla.arrow.schema import HEADERS_TYPE


def some_rows(chance: Random, count: int) -> dict[str, list[Any]]:
    records = [some_record(chance, 0) for _ in range(count)]
    return {
        "value": [one.value for one in records],
        "key": [one.key for one in records],
        "partition": [chance.choice((None, None, chance.randrange(5))) for _ in records],
        "timestamp": [None if one.timestamp < 0 else one.timestamp for one in records],
        "headers": [
            None if not chance.randrange(4) else [{"key": name, "value": value} for name, value in one.headers]
            for one in records
        ],
    }


def some_table(chance: Random, rows: dict[str, list[Any]]) -> pa.Table:
    """In chunks, each of them a slice of something longer."""
    types = {
        "value": pa.binary(),
        "key": pa.binary(),
        "partition": pa.int32(),
        "timestamp": pa.timestamp("ms"),
        "headers": HEADERS_TYPE,
    }
    whole = pa.table({name: pa.array(column, types[name]) for name, column in rows.items()})
    cut = chance.randrange(len(rows["value"]))
    before = whole.slice(0, chance.randrange(3))
    return pa.concat_tables(
        [
            pa.concat_tables([before, whole.slice(0, cut)]).combine_chunks().slice(before.num_rows),
            whole.slice(cut),
        ]
    )
