"""A micro-batch that is planned again after a part of it was committed: the same rows must be in the same tasks.

Spark plans a batch again from the same offsets, but which rows a task has is the plan's: after a shuffle without an
order, or with another number of tasks, rows may be elsewhere. Then what is committed and what is still to be written
would overlap, or leave something out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.spark.sink.entries import PREPARED, LedgerEntry, LedgerTask, is_finished
from ottla.spark.sink.errors import BatchNotCommitted, RowsMoved
from ottla.spark.sink.messages import TransactionReport, Work


def work_of(entry: LedgerEntry | None, name: str, query_id: str, batch: int, task: int) -> Work:
    """What a task has to do, by what the ledger said when its micro-batch was planned. Raises QueryNameTaken."""
    if is_finished(entry, name, query_id, batch):
        return Work.NONE
    if entry is not None and entry.state == PREPARED and entry.batch == batch:
        return Work.NONE  # the driver commits what was written before, whatever is written now
    return Work.COUNTED if entry is not None and task in entry.committed(batch) else Work.WROTE


def check_same_rows(batch: int, committed: Mapping[int, LedgerTask], reports: Sequence[TransactionReport]) -> None:
    """Raises RowsMoved for a task that is committed and has other rows now."""
    by_task = {one.task: one for one in reports}
    for task, before in committed.items():
        now = by_task.get(task)
        if now is None:
            raise _moved(batch, task, f"it had {before.rows} rows, and now there are {len(reports)} tasks only")
        if now.work is Work.NONE:
            raise BatchNotCommitted(
                f"batch {batch}: the ledger has changed since the batch was planned: start the query again"
            )
        if now.rows != before.rows:
            raise _moved(batch, task, f"it had {before.rows} rows, and now it has {now.rows}")
        if now.checksum != before.checksum:
            raise _moved(batch, task, f"its {before.rows} rows are not the same")


def _moved(batch: int, task: int, what: str) -> RowsMoved:
    return RowsMoved(
        f"batch {batch} was committed in part, and is planned again with other rows in task {task}: {what}. The plan "
        "moves rows between tasks (a shuffle without an order, random() or the clock in an expression, another number "
        "of partitions): to write the rest could write rows twice or leave some out. Give the plan back what it had, "
        "or free the name with ottla.spark.free_query_name and go on behind this batch"
    )
