"""What a task says to the driver when its rows are written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyspark.sql.datasource import WriterCommitMessage

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import RecordPlace, TaskAttempt


@dataclass(frozen=True, kw_only=True)
class TaskReport(WriterCommitMessage):  # type: ignore[misc]  # pyspark's annotations are not read
    #: Acknowledged; 0 for a task that was skipped.
    rows: int
    #: The streaming query, as its checkpoint calls it; None where the task was of none.
    query_id: str | None
    #: The micro-batch was finished before: nothing was written.
    skipped: bool


class Work(Enum):
    """What a task of a query that writes exactly once has done with its rows."""

    WROTE = "wrote"
    #: Its rows are committed already: it has only looked whether they are the same.
    COUNTED = "counted"
    #: The micro-batch is finished, or what it wrote only waits to be committed: the task has not looked at its rows.
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class TransactionReport(WriterCommitMessage):  # type: ignore[misc]  # as above
    """Of a task that writes in a transaction of its own, and leaves it open."""

    query_id: str
    task: int
    work: Work
    #: By which the next micro-batch's ids are counted on.
    attempt: TaskAttempt
    rows: int = 0
    checksum: int = 0
    #: None where it has opened none: there were no rows, or none to be written.
    transaction: TransactionIdentity | None = None
    place: RecordPlace | None = None
