"""A task of Spark's, without Spark: what its Python worker is told of the task that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from pyspark import TaskContext

RUN_ID = "825b1938-7d25-4a8b-98f2-b135ef92a463"
_task_attempt_ids = count()


@contextmanager
def of_a_task(
    batch: int, *, task: int = 0, attempt: int = 0, query_id: str = "q", run_id: str = RUN_ID
) -> Iterator[None]:
    """`attempt` begins at 0 for each attempt at the stage; the number that no other task has comes from here."""
    before = TaskContext.get()
    given = TaskContext(
        stageId=batch,
        partitionId=task,
        attemptNumber=attempt,
        taskAttemptId=next(_task_attempt_ids),
        localProperties={
            "streaming.sql.batchId": str(batch),
            "sql.streaming.queryId": query_id,
            "spark.jobGroup.id": run_id,
        },
    )
    TaskContext._setTaskContext(given)
    try:
        yield
    finally:
        TaskContext._setTaskContext(before)
