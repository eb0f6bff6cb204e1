"""A table as a stream: what the reader says to Spark's driver."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.pipeline.errors import BadState
from ottla.pipeline.tables.log import Commit, TableFile, TableLog
from ottla.pipeline.tables.stream import TableStreamReader, version_of

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
    with pytest.raises(BadState, match="a flow has read 2: it was made anew"):
        found.latestOffset(end, EVERYTHING)
    of_before = {"version": 2}  # an offset that does not say the query
    assert version_of(found.latestOffset(of_before, EVERYTHING)) == 39


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
