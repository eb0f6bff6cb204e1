"""What keeps a table small: small files become one, old rows go, and files that nobody needs any more are deleted.

All of it is done between two micro-batches by the one process that writes the table.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Set as AbstractSet
from typing import Final

from ottla.pipeline.folders import sync_folder
from ottla.pipeline.tables.delta import DELTA
from ottla.pipeline.tables.log import DATA, LOG, Commit, TableFile, TableLog, delete_drafts

#: A file below it is small: Parquet's own blocks are 128 MiB, and an eighth of one reads almost as fast.
SMALL_BYTES: Final = 16 * 1024 * 1024
#: So many small files become one. With fewer, rows would be written again and again; with more, readers open them all.
SMALL_FILES_MAX: Final = 32
#: What is made of them is not much larger than this, so that one pass stays short.
COMPACTED_BYTES_MAX: Final = 128 * 1024 * 1024
_ROWS_A_BATCH: Final = 65_536
#: Of a table with `retain`, files are joined whose rows were written within such a part of it: a file goes when its
#: youngest row does, so its oldest stays an eighth longer at most, however often it is joined.
RETAIN_PARTS: Final = 8
#: A reader that began before a file was replaced has so long to end.
REMOVED_KEPT_MS: Final = 3_600_000
#: Of a table that no flow reads as a stream.
EVERY_VERSION: Final = 2**62


def compact(log: TableLog, now: int, retain_ms: int | None = None) -> bool:
    """Makes one file of the oldest small ones, if there are many; whether it did. Streams do not notice."""
    state = log.state()
    small = [file for file in state.files.values() if file.bytes < SMALL_BYTES and file.bucket is None]
    if len(small) < SMALL_FILES_MAX:
        return False
    chosen: list[TableFile] = []
    for file in _written_together(small, retain_ms):
        if sum(one.bytes for one in chosen) + file.bytes > COMPACTED_BYTES_MAX:
            break
        chosen.append(file)
    if len(chosen) < 2:
        return False
    made = _joined(log, chosen)
    log.commit(Commit(kind="compact", written_ms=now, added=(made,), removed=tuple(file.path for file in chosen)))
    return True


def _written_together(small: list[TableFile], retain_ms: int | None) -> list[TableFile]:
    """All of them, or those of one part of `retain`, the oldest first."""
    ordered = sorted(small, key=lambda one: (one.written_ms, one.path))
    if retain_ms is None:
        return ordered
    part_ms = max(1, retain_ms // RETAIN_PARTS)
    parts: dict[int, list[TableFile]] = {}
    for file in ordered:
        parts.setdefault(file.written_ms // part_ms, []).append(file)
    # What is left of a table by `retain` is of nine parts at most, so of many files some part has several.
    return max(parts.values(), key=len)


def retain(log: TableLog, now: int, retain_ms: int) -> int:
    """Takes files out whose youngest row was written longer ago; how many."""
    old = [file.path for file in log.state().files.values() if file.written_ms < now - retain_ms]
    if old:
        log.commit(Commit(kind="retain", written_ms=now, removed=tuple(old)))
    return len(old)


def delete_unused(log: TableLog, now: int, read_by_all: int, in_frames: AbstractSet[str] = frozenset()) -> int:
    """Deletes files that no version of use names: those that are out of the table for long enough, of versions that
    all flows have read up to `read_by_all`, and what attempts left behind that never came to a commit; how many.

    What is `in_frames` stays: a flow that joins a stream with a table reads the same files as long as it runs. So does
    all that was in the table while a flow has not read its first version: it may begin with the table as it was.
    """
    state = log.state()
    needed = {*state.files, *in_frames}
    oldest = log.oldest()
    for version in range(oldest, state.version + 1):
        (commit,) = log.commits(version - 1, version)
        if version > read_by_all:
            needed.update(file.path for file in commit.for_streams)
        if read_by_all < 0 or commit.written_ms > now - REMOVED_KEPT_MS:
            needed.update(commit.removed)
    deleted = 0
    data = log.path(DATA)
    for attempt in os.listdir(data) if os.path.isdir(data) else ():
        folder = os.path.join(data, attempt)
        for inner, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(inner, name)
                if os.path.relpath(path, log.folder) in needed:
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if os.path.getmtime(path) * 1000 < now - REMOVED_KEPT_MS:
                        os.unlink(path)
                        deleted += 1
        if not any(names for _, _, names in os.walk(folder)) and _is_old(folder, now):
            shutil.rmtree(folder, ignore_errors=True)
    for folder in (LOG, DELTA):
        delete_drafts(log.path(folder), now - REMOVED_KEPT_MS)
    log.forget(_first_needed(log, read_by_all, now))
    return deleted


def _first_needed(log: TableLog, read_by_all: int, now: int) -> int:
    """The first version whose commit somebody may still ask for."""
    newest = log.state().version
    for version in range(log.oldest(), min(read_by_all, newest) + 1):
        (commit,) = log.commits(version - 1, version)
        if commit.written_ms > now - REMOVED_KEPT_MS:
            return version
    return min(read_by_all, newest) + 1


def _is_old(folder: str, now: int) -> bool:
    try:
        return os.path.getmtime(folder) * 1000 < now - REMOVED_KEPT_MS
    except FileNotFoundError:
        return False


def _joined(log: TableLog, files: list[TableFile]) -> TableFile:
    """One file with the rows of all, in their order; a column that some lack is null there."""
    import pyarrow
    from pyarrow import parquet

    # Newer files have more columns, never other types.
    schema = pyarrow.unify_schemas([parquet.read_schema(log.path(file.path)).remove_metadata() for file in files])
    path = f"{DATA}/{uuid.uuid4().hex}/part-00000.parquet"
    os.makedirs(os.path.dirname(log.path(path)))
    rows = 0
    with parquet.ParquetWriter(log.path(path), schema, compression="zstd") as writer:
        for file in files:
            for batch in parquet.ParquetFile(log.path(file.path)).iter_batches(batch_size=_ROWS_A_BATCH):
                columns = [
                    batch.column(field.name).cast(field.type)
                    if field.name in batch.schema.names
                    else pyarrow.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
                writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))
                rows += batch.num_rows
    assert rows == sum(file.rows for file in files)
    _put_on_medium(log.path(path))
    return TableFile(
        path=path,
        rows=rows,
        bytes=os.path.getsize(log.path(path)),
        written_ms=max(file.written_ms for file in files),
    )


def _put_on_medium(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    sync_folder(os.path.dirname(path))
    sync_folder(os.path.dirname(os.path.dirname(path)))
