"""A table as a frame."""

from __future__ import annotations

import os
from typing import Any

from ottla.pipeline.errors import NotFound
from ottla.pipeline.tables.files import frame_of
from ottla.pipeline.tables.log import LOG, TableLog, TableState, at_version

#: Of tables that take in changes: the key was deleted, or (null) a later row stands for this one too. Rows of which it
#: is not false are left out when the table is read.
DELETED = "__DELETED"
#: What says which of two changes is the later, for the flow that writes the table: of SCD 1, and of SCD 2.
SEQUENCE = "__SEQUENCE"
CHANGED_AT = "__CHANGED_AT"


def read_table(spark: Any, folder: str, *, version: int | None = None) -> Any:
    """A frame of the table as it is now, or was at a version; it stays the same whatever is written afterwards.

    `folder` is the table's, in the pipeline's `tables/`. Raises NotFound where no table is there.
    """
    folder = os.path.abspath(folder)  # Java has a working folder of its own
    if not os.path.isdir(os.path.join(folder, LOG)):
        raise NotFound(f"{folder} is no table of a pipeline: name a folder in the pipeline's tables/")
    log = TableLog(folder)
    return table_frame(spark, log, log.state() if version is None else at_version(log, version))


def table_frame(spark: Any, log: TableLog, state: TableState, *, whole: bool = False) -> Any:
    """The rows of a state that has a schema; `whole` has what only the writer of the table needs."""
    from pyspark.sql.types import StructType

    if state.schema is None:
        raise NotFound(f"{log.folder} has no row and no column yet: run its pipeline first")
    frame = frame_of(spark, log, state.files.values(), StructType.fromJson(state.schema))
    if DELETED in frame.columns and not whole:
        frame = frame.where(f"NOT {DELETED}").drop(DELETED, SEQUENCE, CHANGED_AT)
    return frame
