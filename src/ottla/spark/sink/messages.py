"""What a task says to the driver when its rows are written."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage


@dataclass(frozen=True, kw_only=True)
class TaskReport(WriterCommitMessage):  # type: ignore[misc]  # pyspark's annotations are not read
    #: Acknowledged; 0 for a task that was skipped.
    rows: int
    #: The streaming query, as its checkpoint calls it; None where the task was of none.
    query_id: str | None
    #: The micro-batch was finished before: nothing was written.
    skipped: bool
