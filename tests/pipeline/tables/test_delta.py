"""Delta's log beside a table's own: what the `deltalake` package reads is what the table has, whatever died between."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from ottla.pipeline.errors import BadDefinition, BadState
from ottla.pipeline.tables.delta import CHECKPOINT_EVERY, DELTA, check_delta, publish
from ottla.pipeline.tables.log import Commit, TableFile, TableLog
from ottla.pipeline.tables.upkeep import SMALL_FILES_MAX, compact

SCHEMA = StructType([StructField("id", LongType()), StructField("note", StringType())])


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return TableLog(str(tmp_path / "orders"))


def written(log: TableLog, *ids: int, bucket: int | None = None) -> TableFile:
    folder = f"data/{'-'.join(map(str, ids))}" + ("" if bucket is None else f"/_bucket={bucket}")
    os.makedirs(log.path(folder), exist_ok=True)
    path = f"{folder}/part-0 %.parquet"
    columns = {"id": pa.array(ids, pa.int64()), "note": pa.array([None] * len(ids), pa.string())}
    parquet.write_table(pa.table(columns), log.path(path))
    return TableFile(path=path, rows=len(ids), bytes=os.path.getsize(log.path(path)), written_ms=5, bucket=bucket)


def append(log: TableLog, batch: int, *files: TableFile) -> None:
    schema = SCHEMA.jsonValue() if batch == 0 else None
    log.commit(Commit(kind="append", written_ms=5, query="q", batch=batch, added=files, schema=schema))


def ids(log: TableLog, version: int | None = None) -> list[int]:
    found = DeltaTable(log.folder, version=version).to_pyarrow_table()
    return sorted(found.column("id").to_pylist())


def test_each_commit_is_a_version(log: TableLog) -> None:
    assert publish(log) == 0  # there is no table yet
    append(log, 0, written(log, 1, 2))
    assert publish(log) == 1
    append(log, 1, written(log, 3, bucket=4))
    removed = tuple(path for path in log.state().files if "1-2" in path)
    log.commit(Commit(kind="upsert", written_ms=6, query="q", batch=2, added=(written(log, 4),), removed=removed))
    assert publish(log) == 2
    assert publish(log) == 0
    assert (ids(log, 0), ids(log, 1), ids(log)) == ([1, 2], [1, 2, 3], [3, 4])
    table = DeltaTable(log.folder)
    assert [field.name for field in table.schema().fields] == ["id", "note"]
    assert table.transaction_version("q") == 2


def test_a_run_that_died_before_it_said_so_is_gone_on_with(log: TableLog) -> None:
    for batch in range(3):
        append(log, batch, written(log, batch))
    assert publish(TableLog(log.folder)) == 1  # all of it at once: its first commits may be forgotten by now
    append(log, 3, written(log, 3))
    append(log, 4, written(log, 4))
    assert publish(TableLog(log.folder)) == 2
    assert ids(log) == [0, 1, 2, 3, 4]


def test_compaction_and_checkpoints(log: TableLog) -> None:
    append(log, 0)
    for batch in range(1, CHECKPOINT_EVERY + SMALL_FILES_MAX):
        append(log, batch, written(log, batch))
        compact(log, 7)
        publish(log)
    assert sum("checkpoint" in name for name in os.listdir(log.path(DELTA))) > 1
    assert ids(log) == list(range(1, CHECKPOINT_EVERY + SMALL_FILES_MAX))
    assert len(DeltaTable(log.folder).file_uris()) == len(log.state().files)


def test_what_another_program_wrote_is_not_taken_for_ours(log: TableLog) -> None:
    append(log, 0, written(log, 1))
    publish(log)
    DeltaTable(log.folder).delete("id = 1")
    append(log, 1, written(log, 2))
    with pytest.raises(BadState, match=r"_delta_log has a version 1 that no pipeline wrote.*delete"):
        publish(log)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("at", TimestampNTZType(), "Delta has no type timestamp_ntz, which the column at has: cast it"),
        ("took", ArrayType(DayTimeIntervalType()), "Delta has no type interval .*, which the column took has"),
        ("a b", LongType(), "Delta takes no column of the name 'a b': give it another one by alias"),
    ],
)
def test_what_delta_cannot_have_is_said_before_a_row_is_written(name: str, kind: DataType, text: str) -> None:
    with pytest.raises(BadDefinition, match=f"^table orders: {text}"):
        check_delta("table orders", StructType([StructField("id", LongType()), StructField(name, kind)]))
