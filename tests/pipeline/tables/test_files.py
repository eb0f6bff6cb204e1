"""What Spark has written becomes files of the table: those with rows, and none of an attempt that Spark gave up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ottla.pipeline.tables.files import taken
from ottla.pipeline.tables.log import TableLog


@pytest.fixture
def log(tmp_path: Path) -> TableLog:
    return TableLog(str(tmp_path / "orders"))


def write(log: TableLog, path: str, rows: int) -> None:
    file = Path(log.path(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"id": pa.array(range(rows), pa.int64())}), file)


def test_files_with_rows(log: TableLog) -> None:
    write(log, "data/a/part-0.parquet", 2)
    write(log, "data/a/part-1.parquet", 0)
    write(log, "data/a/_bucket=3/part-2.parquet", 1)
    for name in ("_SUCCESS", ".part-0.parquet.crc"):
        Path(log.path(f"data/a/{name}")).write_bytes(b"")
    found = {one.path: (one.rows, one.bucket) for one in taken(log, "data/a")}
    assert found == {"data/a/part-0.parquet": (2, None), "data/a/_bucket=3/part-2.parquet": (1, 3)}
    assert {file.name for file in Path(log.path("data/a")).iterdir()} == {"part-0.parquet", "_bucket=3"}


def test_a_second_attempt_that_still_writes_is_no_part_of_it(log: TableLog) -> None:
    """A task that ran twice may end after the job, and its folder comes back: its rows are there already."""
    write(log, "data/a/part-0.parquet", 2)
    late = "data/a/_temporary/0/_temporary/attempt_1/part-0.parquet"
    write(log, late, 2)
    Path(log.path("data/a/_temporary/0/_temporary/attempt_1/part-1.parquet")).write_bytes(b"PAR1 half")
    assert [one.path for one in taken(log, "data/a")] == ["data/a/part-0.parquet"]
    assert Path(log.path(late)).exists()  # nobody's, and deleted after an hour as such


def test_nothing_but_an_attempt_that_still_writes(log: TableLog) -> None:
    write(log, "data/a/_temporary/0/part-0.parquet", 2)
    assert taken(log, "data/a") == ()
