"""What Spark calls to write: a batch, or one micro-batch of a stream after the other.

Where what runs:

    driver, first process    batch_writer, stream_writer (for each micro-batch), then the writer is pickled
    executors                write, for each task and each attempt at it
    driver, second process   stream_writer again, then commit with what the tasks have returned, or abort

Rows are written once at least: Spark repeats tasks that failed, and nothing takes back what those had written. With
`ottla.exactlyOnce` another writer takes the place of `StreamWriter`: `exactly_once.writer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.errors import KafkaError
from ottla.spark.options import OptionError, folded
from ottla.spark.sink.clients import kept_clients
from ottla.spark.sink.columns import SinkColumns
from ottla.spark.sink.encoding import encoders_of
from ottla.spark.sink.entries import LEDGER_TOPIC, LedgerEntry, check_nothing_prepared, is_finished
from ottla.spark.sink.errors import LedgerFault, what_to_change
from ottla.spark.sink.exactly_once.writer import ExactlyOnceWriter
from ottla.spark.sink.messages import TaskReport
from ottla.spark.sink.places import TaskPlace
from ottla.spark.sink.target import SinkTarget, checked_target
from ottla.spark.sink.task import write_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def batch_writer(schema: StructType, overwrite: bool, options: Mapping[str, str]) -> BatchWriter:
    """Raises what is wrong with the frame's columns or the options."""
    if overwrite:
        raise OptionError(
            "Save mode Overwrite not allowed for Kafka: a topic's records stay. Set mode('append'), which adds to them"
        )
    target = checked_target(options, streaming=False)
    return BatchWriter(target, _columns(schema, target, options))


def stream_writer(schema: StructType, overwrite: bool, options: Mapping[str, str]) -> StreamWriter | ExactlyOnceWriter:
    if overwrite:
        raise OptionError(
            "output mode complete is not for topics, whose records stay: use append; or update with foreachBatch, "
            "which writes each frame by itself"
        )
    target = checked_target(options, streaming=True)
    columns = _columns(schema, target, options)
    entry = None if target.query is None else _ledger_entry(target)
    return ExactlyOnceWriter(target, columns, entry) if target.exactly_once else StreamWriter(target, columns, entry)


def _columns(schema: StructType, target: SinkTarget, options: Mapping[str, str]) -> SinkColumns:
    return SinkColumns(schema, target.topic, encoders_of(folded(options), target.topic))


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]  # pyspark's annotations are not read
    def __init__(self, target: SinkTarget, columns: SinkColumns) -> None:
        self._target = target
        self._columns = columns

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return _written(iterator, self._target, self._columns, TaskPlace.of_this_task())


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]  # as above
    """For one micro-batch."""

    def __init__(self, target: SinkTarget, columns: SinkColumns, entry: LedgerEntry | None) -> None:
        self._target = target
        self._columns = columns
        #: What the ledger said when the batch was planned.
        self._entry = entry

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        place = TaskPlace.of_this_task()
        name = self._target.query
        if name is not None:
            query_id, batch = place.of_a_micro_batch()
            if is_finished(self._entry, name, query_id, batch):
                for _ in iterator:  # what Spark has begun to send it sends to its end
                    pass
                return TaskReport(rows=0, query_id=query_id, skipped=True)
            check_nothing_prepared(self._entry, name)
        return _written(iterator, self._target, self._columns, place)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        reports = [one for one in messages if isinstance(one, TaskReport)]
        # Without tasks nothing was written, and nothing can be written twice.
        if self._target.query is None or not reports or all(one.skipped for one in reports):
            return
        query_id = reports[0].query_id
        assert query_id is not None
        kept = kept_clients()
        ledger = kept.ledger(self._target)
        rows = sum(one.rows for one in reports)
        try:
            kept.thread.run(lambda: ledger.finish(query_id, batchId, rows))
        except KafkaError as error:
            kept.drop_ledger(self._target)
            raise LedgerFault(
                f"batch {batchId} is written, but {LEDGER_TOPIC} does not know: {error}{what_to_change(error)}"
            ) from error

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """What was written stays; the ledger does not have the batch, so it is written again."""


def _ledger_entry(target: SinkTarget) -> LedgerEntry | None:
    kept = kept_clients()
    ledger = kept.ledger(target)
    try:
        return kept.thread.run(ledger.entry)
    except KafkaError as error:
        kept.drop_ledger(target)
        raise LedgerFault(f"{LEDGER_TOPIC}: {error}{what_to_change(error)}") from error


def _written(batches: Iterator[Any], target: SinkTarget, columns: SinkColumns, place: TaskPlace) -> TaskReport:
    kept = kept_clients()
    producer = kept.producer(target)
    batch = "" if place.batch is None else f" of batch {place.batch}"
    where = f"task {place.partition}{batch}"
    try:
        rows = write_rows(batches, columns, target.topic, producer, kept.thread, where).rows
    except BaseException:
        kept.drop_producer(target)
        raise
    return TaskReport(rows=rows, query_id=place.query_id, skipped=False)
