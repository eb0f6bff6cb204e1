"""Of which partition, query and micro-batch a task is, as Spark has it for its Python workers."""

from __future__ import annotations

from typing import NamedTuple, Self
from uuid import UUID

from pyspark import TaskContext

from ottla.spark.sink.errors import LedgerFault
from ottla.spark.sink.target import EXACTLY_ONCE, QUERY


class TaskPlace(NamedTuple):
    partition: int
    query_id: str | None
    batch: int | None
    #: Of the query since it was started: another one for each start.
    run_id: str | None
    #: Of the task and this attempt at it; no other in the application has it, and later ones have greater numbers.
    attempt_id: int

    @classmethod
    def of_this_task(cls) -> Self:
        context = TaskContext.get()
        if context is None:  # in tests that call a writer themselves
            return cls(0, None, None, None, 0)
        batch = context.getLocalProperty("streaming.sql.batchId")
        query_id = context.getLocalProperty("sql.streaming.queryId")
        run_id = context.getLocalProperty("spark.jobGroup.id")  # by which Spark cancels what a query does
        number = None if batch is None else int(batch)
        return cls(context.partitionId(), query_id, number, run_id, context.taskAttemptId())

    def of_a_micro_batch(self) -> tuple[str, int]:
        """The query's id and the micro-batch's number; raises LedgerFault where it is of none."""
        if self.query_id is None or self.batch is None:
            raise LedgerFault(f"Spark does not say of which query and batch a task is, which {QUERY} needs")
        return self.query_id, self.batch

    def of_a_run(self) -> str:
        """The run's id without its dashes; raises LedgerFault where it is of none."""
        try:
            return UUID(self.run_id or "").hex
        except ValueError:
            raise LedgerFault(
                f"Spark does not say of which run of a query a task is, which {EXACTLY_ONCE} needs: {self.run_id!r}"
            ) from None
