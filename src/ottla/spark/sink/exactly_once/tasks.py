"""One task: its rows in a transaction of its own, which it leaves open for the driver.

A task without rows opens none: the end of an empty one is an error. One that fails aborts what it has begun, so that
nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from ottla.client.errors import KafkaError
from ottla.client.producing.producer import Producer
from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink.columns import SinkColumns
from ottla.spark.sink.entries import RecordPlace, TaskAttempt
from ottla.spark.sink.errors import RowsNotWritten, what_to_change
from ottla.spark.sink.exactly_once.checksum import SummedColumns
from ottla.spark.sink.messages import TransactionReport, Work
from ottla.spark.sink.task import write_rows

#: How long a task that has failed may take to abort what it has begun.
_ABORT_MS_MAX: Final = 5_000


class TransactionalTask:
    """Whose task it is, and in which transaction it writes."""

    def __init__(self, query_id: str, task: int, batch: int, attempt: TaskAttempt) -> None:
        self._query_id = query_id
        self._task = task
        self._attempt = attempt
        self._where = f"task {task} of batch {batch}"

    def counted(self, batches: Iterator[Any], columns: SinkColumns) -> TransactionReport:
        """Rows that are committed: how many, and whether they are the same."""
        summed, rows = SummedColumns(columns), 0
        for batch in batches:
            if batch.num_rows:
                summed.taken_from(batch, rows)
                rows += batch.num_rows
        return self._report(Work.COUNTED, rows=rows, checksum=summed.checksum)

    def passed_over(self, batches: Iterator[Any]) -> TransactionReport:
        for _ in batches:  # what Spark has begun to send it sends to its end
            pass
        return self._report(Work.NONE)

    def written(
        self,
        batches: Iterator[Any],
        columns: SinkColumns,
        topic: str | None,
        producer: Callable[[], Producer],
        thread: LoopThread,
    ) -> TransactionReport:
        """By a producer that has the task's transactional id, and is closed where it has failed."""
        with_rows = (one for one in batches if one.num_rows)
        first = next(with_rows, None)
        if first is None:
            return self._report(Work.WROTE)
        ours = producer()
        summed = SummedColumns(columns)
        try:
            try:
                thread.run(ours.begin)
                written = write_rows(chain([first], with_rows), summed, topic, ours, thread, self._where)
                transaction = thread.run(ours.detach)
            except KafkaError as error:
                raise RowsNotWritten(f"{self._where}: {error}{what_to_change(error)}") from error
        except BaseException:
            thread.run(lambda: ours.close(timeout_ms=_ABORT_MS_MAX))
            raise
        last = written.last
        return self._report(
            Work.WROTE,
            rows=written.rows,
            checksum=summed.checksum,
            transaction=transaction,
            place=None if last is None else RecordPlace(last.topic, last.partition, last.offset),
        )

    def _report(self, work: Work, **more: Any) -> TransactionReport:
        return TransactionReport(query_id=self._query_id, task=self._task, work=work, attempt=self._attempt, **more)
