"""Small files become one, old rows go, and nothing is deleted that somebody may still read."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from ottla.pipeline.tables.log import Commit, TableFile, TableLog
from ottla.pipeline.tables.upkeep import REMOVED_KEPT_MS, RETAIN_PARTS, SMALL_FILES_MAX, compact, delete_unused, retain

HOUR = 3_600_000


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return TableLog(str(tmp_path / "orders"))


def add(log: TableLog, batch: int, **columns: list[object]) -> TableFile:
    """A file with these columns, written at the hour of its batch."""
    path = f"data/{batch}/part.parquet"
    os.makedirs(os.path.dirname(log.path(path)))
    table = pyarrow.table(columns)
    parquet.write_table(table, log.path(path))
    file = TableFile(path=path, rows=table.num_rows, bytes=os.path.getsize(log.path(path)), written_ms=batch * HOUR)
    log.state()
    log.commit(Commit(kind="append", written_ms=batch * HOUR, query="q", batch=batch, added=(file,)))
    os.utime(log.path(path), (batch * 3600, batch * 3600))
    return file


def rows(log: TableLog) -> list[object]:
    found: list[object] = []
    for file in log.state().files.values():
        found += parquet.read_table(log.path(file.path)).to_pylist()
    return found


def test_many_small_files_become_one(log: TableLog) -> None:
    for batch in range(SMALL_FILES_MAX - 1):
        add(log, batch, id=[batch])
    assert not compact(log, HOUR)
    add(log, SMALL_FILES_MAX - 1, id=[SMALL_FILES_MAX - 1], more=["x"])
    assert compact(log, HOUR)
    assert len(log.state().files) == 1
    assert [row["id"] for row in rows(log)] == list(range(SMALL_FILES_MAX))  # type: ignore[index]
    assert [row["more"] for row in rows(log)][-2:] == [None, "x"]  # type: ignore[index]
    assert log.commits(SMALL_FILES_MAX - 1, SMALL_FILES_MAX)[0].for_streams == ()


def test_old_rows_go_and_files_stay_for_who_has_not_read_them(log: TableLog) -> None:
    for batch in range(4):
        add(log, batch, id=[batch])
    assert retain(log, 4 * HOUR, 2 * HOUR) == 2
    assert [row["id"] for row in rows(log)] == [2, 3]  # type: ignore[index]
    late = 4 * HOUR + REMOVED_KEPT_MS + 1
    assert delete_unused(log, 4 * HOUR, 10) == 0  # readers that have begun
    assert delete_unused(log, late, 10, {"data/0/part.parquet", "data/1/part.parquet"}) == 0  # a frame that runs
    assert delete_unused(log, late, 0) == 1  # a stream that has read version 0 alone
    assert delete_unused(log, late, 10) == 1
    assert [row["id"] for row in rows(log)] == [2, 3]  # type: ignore[index]
    assert delete_unused(log, late, 10) == 0


def test_rows_go_in_time_though_their_files_are_joined(log: TableLog) -> None:
    """A file of a few rows each hour, for as long as it takes to join files many times over."""
    kept_hours = 40
    for batch in range(3 * SMALL_FILES_MAX):
        add(log, batch, id=[batch])
        retain(log, batch * HOUR, kept_hours * HOUR)
        compact(log, batch * HOUR, kept_hours * HOUR)
        ids = [row["id"] for row in rows(log)]  # type: ignore[index]
        assert set(ids) >= set(range(max(0, batch - kept_hours), batch + 1))
        assert min(ids) >= batch - kept_hours - kept_hours // RETAIN_PARTS
        assert len(ids) == len(set(ids))
        assert len(log.state().files) < SMALL_FILES_MAX
    assert any(commit.kind == "compact" for commit in log.commits(-1, log.state().version))


def test_a_table_says_what_was_retained_no_more(log: TableLog) -> None:
    for batch in range(4):
        add(log, batch, id=[batch])
    assert log.state().retained_ms is None
    retain(log, 4 * HOUR, 2 * HOUR)
    assert log.state().retained_ms == HOUR
    assert TableLog(log.folder).state().retained_ms == HOUR


def test_what_an_attempt_left_behind_is_deleted(log: TableLog) -> None:
    add(log, 0, id=[0])
    left = Path(log.path("data/dead/part.parquet"))
    left.parent.mkdir()
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    drafts = [Path(log.path(folder)) / f"{1:020}.json.1234.new" for folder in ("_ottla", "_delta_log")]
    for draft in drafts:
        draft.parent.mkdir(exist_ok=True)
        draft.write_bytes(b"half")
        os.utime(draft, (0, 0))
    assert delete_unused(log, REMOVED_KEPT_MS + 1, 10) == 1
    assert not any(one.exists() for one in (left, *drafts))
    assert [row["id"] for row in rows(log)] == [0]  # type: ignore[index]
