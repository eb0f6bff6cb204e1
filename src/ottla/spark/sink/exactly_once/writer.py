"""What Spark calls to write a micro-batch exactly once: the counterpart of `StreamWriter`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.errors import KafkaError
from ottla.client.producing.producer import Producer
from ottla.spark.sink.clients import kept_clients
from ottla.spark.sink.columns import SinkColumns
from ottla.spark.sink.entries import LEDGER_TOPIC, LedgerEntry, TaskAttempt
from ottla.spark.sink.errors import BatchNotCommitted, LedgerFault, what_to_change
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.naming import number_of, task_id
from ottla.spark.sink.exactly_once.replayed import work_of
from ottla.spark.sink.exactly_once.tasks import TransactionalTask
from ottla.spark.sink.messages import TransactionReport, Work
from ottla.spark.sink.places import TaskPlace
from ottla.spark.sink.target import SinkTarget


class ExactlyOnceWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # pyspark's annotations are not read
    """For one micro-batch."""

    def __init__(self, target: SinkTarget, columns: SinkColumns, entry: LedgerEntry | None) -> None:
        assert target.query is not None
        self._target = target
        self._name = target.query
        self._columns = columns
        #: What the ledger said when the batch was planned.
        self._entry = entry
        kept = kept_clients()
        self._settings = {
            "transaction.timeout.ms": str(kept.transaction_ms_max(target)),
            **target.settings,
        }

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        place = TaskPlace.of_this_task()
        query_id, batch = place.of_a_micro_batch()
        attempt = TaskAttempt(place.of_a_run(), place.attempt_id)
        task = TransactionalTask(query_id, place.partition, batch, attempt)
        work = work_of(self._entry, self._name, query_id, batch, place.partition)
        if work is Work.NONE:
            return task.passed_over(iterator)
        if work is Work.COUNTED:
            return task.counted(iterator, self._columns)
        last = None if self._entry is None else self._entry.last_attempt
        transactional_id = task_id(self._name, attempt.run, number_of(attempt, last))
        kept = kept_clients()

        def producer() -> Producer:
            return kept.task_producer(self._settings, transactional_id)

        try:
            return task.written(iterator, self._columns, self._target.topic, producer, kept.thread)
        except BaseException:
            kept.drop_task_producer(self._settings)
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        reports = [one for one in messages if isinstance(one, TransactionReport)]
        if not reports:  # without tasks there is nothing to be committed
            return
        kept = kept_clients()
        committer = kept.committer(self._target)
        try:
            kept.thread.run(lambda: committer.commit(BatchCommit(self._name, batchId, reports)))
        except KafkaError as error:
            kept.drop_committer(self._target)
            raise LedgerFault(
                f"batch {batchId}: whether it is committed, {LEDGER_TOPIC} tells the query that is started next: "
                f"{error}{what_to_change(error)}"
            ) from error
        except BatchNotCommitted:
            kept.drop_committer(self._target)
            raise

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Tasks have failed, and readers wait for what the others have open; or `commit` has, in a process that Spark
        has ended since, and what it has listed stays."""
        reports = [one for one in messages if isinstance(one, TransactionReport)]
        opened = [one.transaction for one in reports if one.transaction is not None]
        if not opened:
            return
        kept = kept_clients()
        committer = kept.committer(self._target)
        with suppress(KafkaError):  # nobody knows what is listed: it stays, and the next driver aborts it if it is not
            kept.thread.run(lambda: committer.abort(opened))
