"""Rows of a frame into Parquet files that no reader sees until a commit names them."""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from ottla.pipeline.folders import sync_folder
from ottla.pipeline.tables.log import DATA, TableFile, TableLog

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The column, and so the folder, by which a table with keys is parted.
BUCKET: Final = "_bucket"
_BUCKET_FOLDER: Final = re.compile(rf"{BUCKET}=(\d+)")
_WRITING: Final = {
    # Spark's own default is a type that Parquet has given up, without microseconds in other readers.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark takes variants apart into columns that differ from file to file, which no reader but Spark brings together.
    "spark.sql.variant.writeShredding.enabled": "false",
}


def now_ms() -> int:
    return int(time.time() * 1000)


def write_files(frame: Any, log: TableLog, *, bucketed: bool = False) -> tuple[TableFile, ...]:
    """All rows of the frame, on the medium. A frame without rows makes no file."""
    attempt = f"{DATA}/{uuid.uuid4().hex}"
    folder = log.path(attempt)
    for name, value in _WRITING.items():
        frame.sparkSession.conf.set(name, value)
    writer = frame.write.mode("error")
    if bucketed:
        writer = frame.repartition(BUCKET).write.mode("error").partitionBy(BUCKET)
    writer.parquet(folder)
    return taken(log, attempt)


def taken(log: TableLog, attempt: str) -> tuple[TableFile, ...]:
    """The files with rows in a folder that Spark has written; all else in it is deleted.

    A task that ran twice on speculation may end after its job: Spark deletes its folder, `_temporary`, and the task
    makes it again. Its rows are there already, by the attempt that Spark has taken.
    """
    from pyarrow import parquet

    found: list[TableFile] = []
    written_ms = now_ms()
    for folder, inner, names in os.walk(log.path(attempt)):
        inner[:] = [name for name in inner if not _is_hidden(name)]
        for name in sorted(names):
            path = os.path.join(folder, name)
            rows = parquet.read_metadata(path).num_rows if name.endswith(".parquet") else 0
            if not rows:
                os.unlink(path)
                continue
            _sync(path)
            bucket = _BUCKET_FOLDER.search(os.path.basename(folder))
            found.append(
                TableFile(
                    path=os.path.relpath(path, log.folder),
                    rows=rows,
                    bytes=os.path.getsize(path),
                    written_ms=written_ms,
                    bucket=None if bucket is None else int(bucket[1]),
                )
            )
        sync_folder(folder)
    if os.path.isdir(log.path(DATA)):
        sync_folder(log.path(DATA))
    if not found:
        shutil.rmtree(log.path(attempt), ignore_errors=True)
    return tuple(found)


def frame_of(spark: Any, log: TableLog, files: Iterable[TableFile], schema: Any) -> Any:
    """The rows of some files. A file that has not all columns has null there."""
    paths = [log.path(file.path) for file in files]
    if not paths:
        return spark.createDataFrame([], schema)
    # Without the base path Spark would take the folders of buckets for a column.
    return spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(*paths)


def _is_hidden(folder: str) -> bool:
    """As Spark has it: its own folders, and none of a partition's."""
    return folder.startswith(("_", ".")) and "=" not in folder


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
