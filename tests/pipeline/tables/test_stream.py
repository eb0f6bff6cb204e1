"""A table as a stream: what the reader says to Spark's driver."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType, VariantType

from ottla.pipeline.errors import BadState
from ottla.pipeline.tables.log import STATE_EVERY, Commit, TableFile, TableLog
from ottla.pipeline.tables.stream import TableFiles, TableStreamReader, version_of
from ottla.pipeline.tables.upkeep import EVERY_VERSION, REMOVED_KEPT_MS, SMALL_FILES_MAX, compact, delete_unused

EVERYTHING = ReadAllAvailable()


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return TableLog(str(tmp_path / "orders"))


def append(log: TableLog, count: int, query: str = "q") -> None:
    for _ in range(count):
        number = log.state().version + 1
        file = TableFile(path=f"data/f{number}", rows=1, bytes=10, written_ms=5)
        log.commit(Commit(kind="append", written_ms=5, query=query, batch=number, added=(file,)))


def reader(log: TableLog, *, available_now: bool) -> TableStreamReader:
    found = TableStreamReader(log.folder, None)
    if available_now:
        found.prepareForTriggerAvailableNow()
    return found


@pytest.mark.parametrize("available_now", [False, True])
def test_a_table_that_was_made_anew_is_no_table_without_news(log: TableLog, *, available_now: bool) -> None:
    append(log, 3)
    with pytest.raises(BadState, match="ends with version 2, and a flow has read 40: it was made anew"):
        reader(log, available_now=available_now).latestOffset({"version": 40}, EVERYTHING)


def test_a_table_that_was_made_anew_and_has_more_versions_is_another(log: TableLog) -> None:
    append(log, 3)
    found = reader(log, available_now=False)
    end = found.latestOffset(found.initialOffset(), EVERYTHING)
    assert version_of(end) == 2
    shutil.rmtree(log.folder)
    append(TableLog(log.folder), 40, query="another")
    with pytest.raises(
        BadState, match="written by another query than what a flow has read up to version 2: it was made anew, or"
    ):
        found.latestOffset(end, EVERYTHING)
    of_before = {"version": 2}  # an offset that does not say the query
    assert version_of(found.latestOffset(of_before, EVERYTHING)) == 39


def test_offsets_of_a_topic(log: TableLog) -> None:
    """The flow's function read a topic before."""
    append(log, 1)
    with pytest.raises(BadState, match=r"the flow's checkpoint has orders in place of a version of .*another source's"):
        reader(log, available_now=False).latestOffset({"orders": {"0": 3}}, EVERYTHING)


def test_available_now_ends_where_it_was_when_it_began(log: TableLog) -> None:
    append(log, 3)
    found = reader(log, available_now=True)
    append(log, 2)
    end = found.latestOffset(found.initialOffset(), EVERYTHING)
    assert end["version"] == 2
    assert found.latestOffset(end, EVERYTHING) == end
    assert [one.paths for one in found.partitions(found.initialOffset(), end)] == [
        tuple(log.path(f"data/f{number}") for number in range(3))
    ]


# A flow that begins with a table that is long there

LATE_MS = REMOVED_KEPT_MS + 10


def write(log: TableLog, numbers: range) -> None:
    """A file of one row for each, written at 1970's beginning."""
    for number in numbers:
        path = f"data/{number}/part.parquet"
        os.makedirs(os.path.dirname(log.path(path)))
        parquet.write_table(pyarrow.table({"id": pyarrow.array([number], pyarrow.int64())}), log.path(path))
        os.utime(log.path(path), (0, 0))
        file = TableFile(path=path, rows=1, bytes=os.path.getsize(log.path(path)), written_ms=5)
        log.state()
        log.commit(Commit(kind="append", written_ms=5, query="q", batch=number, added=(file,)))


def joined(log: TableLog) -> None:
    assert compact(log, 5)
    for file in log.state().files:
        os.utime(log.path(file), (0, 0))


def ids(found: TableStreamReader, tasks: list[TableFiles]) -> list[int]:
    return sorted(number for task in tasks for batch in found.read(task) for number in batch.column("id").to_pylist())


@pytest.mark.parametrize("available_now", [False, True])
@pytest.mark.parametrize("count", [SMALL_FILES_MAX, STATE_EVERY + SMALL_FILES_MAX])
def test_a_flow_begins_with_a_table_whose_first_versions_all_others_have_read(
    log: TableLog, count: int, *, available_now: bool
) -> None:
    """Their files are gone, and of the larger one their commits too."""
    write(log, range(count))
    joined(log)
    assert delete_unused(log, LATE_MS, EVERY_VERSION)
    assert (log.oldest() > 0) is (count > STATE_EVERY)
    found = TableStreamReader(log.folder, StructType([StructField("id", LongType())]))
    if available_now:
        found.prepareForTriggerAvailableNow()
    begin = found.initialOffset()
    end = found.latestOffset(begin, EVERYTHING)
    assert version_of(end) == count
    assert ids(found, found.partitions(begin, end)) == list(range(count))
    assert found.latestOffset(end, EVERYTHING) == end

    # Its first micro-batch dies. The table goes on, and is joined again; nothing goes that the flow begins with.
    write(log, range(count, count + SMALL_FILES_MAX))
    joined(log)
    delete_unused(log, LATE_MS, -1)
    assert ids(found, found.partitions(begin, end)) == list(range(count))
    behind = TableStreamReader(log.folder, StructType([StructField("id", LongType())]))
    following = behind.latestOffset(end, EVERYTHING)
    assert ids(behind, behind.partitions(end, following)) == list(range(count, count + SMALL_FILES_MAX))


def test_a_variant_that_spark_has_taken_apart_is_not_read_in_part(tmp_path: Path) -> None:
    """Of `{"a": 1, "b": 2}` the value has `b` alone where `a` has a column of its own."""
    parts = [pyarrow.array([one]) for one in (b"m", b"{b}", 1)]
    whole = pyarrow.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    nested = pyarrow.StructArray.from_arrays([whole], ["it"])
    path = str(tmp_path / "part.parquet")
    parquet.write_table(pyarrow.table({"plain": whole, "nested": nested}), path)
    variant = StructField("it", VariantType())
    for name, kind in (("plain", VariantType()), ("nested", StructType([variant]))):
        found = TableStreamReader(str(tmp_path), StructType([StructField(name, kind)]))
        with pytest.raises(BadState, match=f"the column {name} has variants that are taken apart"):
            list(found.read(TableFiles((path,))))
