"""A table as a stream: `format("ottla_table")`. Its offset is a version; a version's rows are those of its commit.

A flow that begins with a table that is long there finds versions of which the commits, or the files, were deleted when
all flows of then had read them. It begins with the table as it is: the offset says so, and the next one goes on behind.

Beside the version stands the query that wrote the table: a table that was made anew has another, and versions say
nothing of it.

The data source reads files by pyarrow in tasks, since Spark's own stream of files would take each file that lies in a
folder, whether a commit names it or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import datasource as limits_of_spark

from ottla.pipeline.errors import ANEW, BadState
from ottla.pipeline.tables.log import TableFile, TableLog, TableState

FORMAT: Final = "ottla_table"
PATH: Final = "path"
_VERSION: Final = "version"
_QUERY: Final = "query"
#: Of a flow that begins: its first micro-batch is the table as it was at the version.
_WHOLE: Final = "whole"
#: What a micro-batch reads at most, unless one version has more: a first run over a table that is long there.
BATCH_BYTES_MAX: Final = 256 * 1024 * 1024
#: A task reads small files together.
_TASK_BYTES: Final = 16 * 1024 * 1024
_TASK_FILES_MAX: Final = 100
_ROWS_A_BATCH: Final = 16_384
#: Where a file has what Spark has taken out of a variant.
_TAKEN_OUT: Final = "typed_value"


class TableSource(DataSource):  # type: ignore[misc]  # pyspark's annotations are not read
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: Any) -> TableStreamReader:  # noqa: N802 - Spark's name
        return TableStreamReader(str(self.options[PATH]), schema)


class TableFiles(InputPartition):  # type: ignore[misc]  # as above
    """What one task reads."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(None)
        self.paths = paths


class TableStreamReader(DataSourceStreamReader, limits_of_spark.SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, folder: str, schema: Any) -> None:
        self._folder = folder
        self._schema = schema
        #: What a run with `availableNow` reads up to.
        self._target: int | None = None

    # Planning, in a process of the driver

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return {_VERSION: -1}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = TableLog(self._folder).state().version

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return limits_of_spark.ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 - its own limit
        """As many versions as a micro-batch may read, one at least."""
        log = TableLog(self._folder)
        state = log.state()
        newest = state.version
        if _VERSION not in start:
            names = ", ".join(name for name in start if not name.startswith("#"))
            raise BadState(
                f"the flow's checkpoint has {names or 'nothing'} in place of a version of {self._folder}: "
                f"these are another source's offsets; {ANEW}"
            )
        found, total = start[_VERSION], 0
        if found > newest:
            raise BadState(
                f"{self._folder} ends with version {newest}, and a flow has read {found}: it was made anew; {ANEW}"
            )
        if _QUERY in start and start[_QUERY] not in state.batches:
            raise BadState(
                f"{self._folder} was written by another query than what a flow has read up to version {found}: it was "
                f"made anew, or the flow read another table before; {ANEW}"
            )
        until = newest if self._target is None else min(newest, self._target)
        if found < 0 and not _has_all(log, until):
            return {**_offset(until, state), _WHOLE: True}
        for version in range(found + 1, until + 1):
            (commit,) = log.commits(version - 1, version)
            total += sum(file.bytes for file in commit.for_streams)
            if total > BATCH_BYTES_MAX and found > start[_VERSION]:
                break
            found = version
        if found == start[_VERSION]:
            return start
        return _offset(found, state)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return {_VERSION: TableLog(self._folder).state().version}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[TableFiles]:
        log = TableLog(self._folder)
        found: list[TableFiles] = []
        paths: list[str] = []
        total = 0
        for file in _files(log, start, end):
            if paths and (total + file.bytes > _TASK_BYTES or len(paths) == _TASK_FILES_MAX):
                found.append(TableFiles(tuple(paths)))
                paths, total = [], 0
            paths.append(log.path(file.path))
            total += file.bytes
        if paths:
            found.append(TableFiles(tuple(paths)))
        return found

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept of it: the flow's checkpoint says what was read."""

    # Reading, in tasks

    def read(self, partition: Any) -> Iterator[Any]:
        for path in partition.paths:
            yield from _batches(path, self._schema)


def version_of(offset: Mapping[str, Any]) -> int | None:
    """The version that an offset of a checkpoint says; None where it is another source's."""
    found = offset.get(_VERSION)
    return found if isinstance(found, int) else None


def _offset(version: int, state: TableState) -> dict[str, Any]:
    writer = next(iter(state.batches), None)
    return {_VERSION: version} if writer is None else {_VERSION: version, _QUERY: writer}


def _has_all(log: TableLog, until: int) -> bool:
    """Whether a flow that begins can read all versions up to this one."""
    return log.oldest() <= 0 and all(
        os.path.exists(log.path(file.path)) for commit in log.commits(-1, until) for file in commit.for_streams
    )


def _files(log: TableLog, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[TableFile]:
    if start[_VERSION] < 0 and _WHOLE in end:
        return list(log.state_at(end[_VERSION]).files.values())
    return [file for commit in log.commits(start[_VERSION], end[_VERSION]) for file in commit.for_streams]


def _batches(path: str, schema: Any) -> Iterator[Any]:
    """Arrow batches with the columns that Spark awaits, in its types."""
    import pyarrow
    from pyarrow import parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    file = parquet.ParquetFile(path)
    there = [name for name in wanted.names if name in file.schema_arrow.names]
    for name in there:
        _check_whole(path, name, file.schema_arrow.field(name).type, wanted.field(name).type)
    for batch in file.iter_batches(batch_size=_ROWS_A_BATCH, columns=there):
        columns = []
        for field in wanted:
            if field.name in there:
                columns.append(batch.column(field.name).cast(field.type))
            else:
                columns.append(pyarrow.nulls(batch.num_rows, field.type))
        yield pyarrow.RecordBatch.from_arrays(columns, schema=wanted)


def _check_whole(path: str, name: str, there: Any, wanted: Any) -> None:
    """Raises BadState for a variant of which the cast would leave out a part."""
    from pyarrow import types

    if not types.is_struct(there) or not types.is_struct(wanted):
        return
    names = {field.name for field in wanted}
    for field in there:
        if field.name in names:
            _check_whole(path, name, field.type, wanted.field(field.name).type)
        elif field.name == _TAKEN_OUT:
            raise BadState(
                f"{path}: the column {name} has variants that are taken apart, which only Spark's own reader brings "
                "together: delete the folders of the flow that wrote it in tables/ and checkpoints/, and run it anew"
            )
