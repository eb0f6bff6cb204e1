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


def check_same_rows(
    name: str, batch: int, committed: Mapping[int, LedgerTask], reports: Sequence[TransactionReport]
) -> None:
    """Raises RowsMoved for a task that is committed and has other rows now."""
    by_task = {one.task: one for one in reports}
    rows = sum(one.rows for one in committed.values())

    def moved(task: int, what: str) -> RowsMoved:
        return _moved(name, batch, rows, f"task {task}: {what}")

    for task, before in committed.items():
        now = by_task.get(task)
        if now is None:
            raise moved(task, f"it had {before.rows} rows, and now there are {len(reports)} tasks only")
        if now.work is Work.NONE:
            raise BatchNotCommitted(
                f"batch {batch}: the ledger has changed since the batch was planned: start the query again"
            )
        if now.rows != before.rows:
            raise moved(task, f"it had {before.rows} rows, and now it has {now.rows}")
        if now.checksum != before.checksum:
            raise moved(task, f"its {before.rows} rows are not the same")


def _moved(name: str, batch: int, rows: int, what: str) -> RowsMoved:
    return RowsMoved(
        f"batch {batch} was committed in part, and is planned again with other rows in {what}. The plan moves rows "
        "between tasks (a shuffle without an order, random() or the clock in an expression, another number of "
        "partitions): to write the rest could write rows twice or leave some out, so nothing is written. Start the "
        f"query with the plan and the settings that it had; or choose: {written_again(name, rows)}; "
        f"{left_behind(batch, 'what was not committed is left out')}"
    )


def written_again(name: str, rows: int) -> str:
    """What a user does who wants no row left out."""
    return (
        f"ottla.spark.free_query_name({name!r}, ...) and a start with the same checkpoint write the whole batch again, "
        f"and up to {rows} rows are there twice"
    )


def left_behind(batch: int, what: str) -> str:
    """What a user does who wants no row twice."""
    return (
        "with a new checkpoint, another ottla.query and the startingOffsets that the old checkpoint has in its file "
        f"offsets/{batch}, the query goes on behind the batch, and {what}"
    )
