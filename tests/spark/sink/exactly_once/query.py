"""A query without Spark: its tasks and its drivers, as the tests of this folder have them live and die."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.spark.sink.conftest import frame

from ottla.client import sync
from ottla.client.producing.producer import Producer
from ottla.model import TopicPartition
from ottla.spark.sink.clients import KeptClients
from ottla.spark.sink.columns import SinkColumns
from ottla.spark.sink.entries import LedgerEntry, TaskAttempt
from ottla.spark.sink.exactly_once.committing import BatchCommitter
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.effects import Effect, Event
from ottla.spark.sink.exactly_once.naming import task_id
from ottla.spark.sink.exactly_once.replayed import work_of
from ottla.spark.sink.exactly_once.tasks import TransactionalTask
from ottla.spark.sink.ledger import Ledger
from ottla.spark.sink.messages import TransactionReport, Work

COLUMNS = SinkColumns(frame("value binary"), "ignored")
TASKS = 3
_TASKS_MAX = 100


def drawn_run() -> str:
    """Of a query that is started now."""
    return uuid4().hex


class Crash(BaseException):
    """The driver dies."""


class Query:
    """One query's drivers, one after the other, each with clients of its own."""

    def __init__(self, bootstrap: str, topic: str, worker: KeptClients) -> None:
        """`worker` is the process that runs all tasks."""
        self.topic = topic
        self.settings = {"bootstrap.servers": bootstrap}
        #: Of tasks alone.
        self.timeout: dict[str, str] = {}
        self._worker = worker
        self.thread = worker.thread
        self.run = drawn_run()

    def entry(self) -> LedgerEntry | None:
        async def read() -> LedgerEntry | None:
            ledger = Ledger(self.settings, self.topic)
            try:
                return await ledger.entry()
            finally:
                await ledger.close()

        return self.thread.run(read)

    def driver(self) -> Driver:
        """One that begins now."""
        return self.thread.call(lambda: Driver(self))

    def report(self, batch: int, task: int, *, attempt: int = 0, rows: int = 4, moved: int = 0) -> TransactionReport:
        values = [b"%d %d %d" % (batch, task, row + moved) for row in range(rows)]
        batches = [pa.record_batch({"value": values[:1]}), pa.record_batch({"value": values[1:]})]
        return self.written(batch, task, batches if rows else [], attempt)

    def written(self, batch: int, task: int, batches: Iterable[Any], attempt: int = 0) -> TransactionReport:
        number = _TASKS_MAX * attempt + task
        made = TransactionalTask("q", task, batch, TaskAttempt(self.run, number))
        work = work_of(self.entry(), self.topic, "q", batch, task)
        if work is Work.NONE:
            return made.passed_over(iter(batches))
        if work is Work.COUNTED:
            return made.counted(iter(batches), COLUMNS)
        name = task_id(self.topic, self.run, number)
        report = made.written(iter(batches), COLUMNS, self.topic, lambda: self.producer(name), self.thread)
        return pickle.loads(pickle.dumps(report))

    def producer(self, name: str) -> Producer:
        """The one that the worker keeps for its tasks."""
        return self._worker.task_producer({**self.settings, **self.timeout}, name)

    def commit(
        self, batch: int, reports: list[TransactionReport], dies: Callable[[Effect, Event], bool] | None = None
    ) -> None:
        """By a driver that begins now, and dies behind a step where it shall."""
        driver = self.driver()
        try:
            driver.commit(batch, reports, dies)
        finally:
            driver.close()

    def whole(self, batch: int, **options: Any) -> list[TransactionReport]:
        return [self.report(batch, task, **options) for task in range(TASKS)]

    def seen(self) -> list[str]:
        with sync.Consumer(self.settings, isolation_level="read_committed") as consumer:
            partitions = [TopicPartition(self.topic, number) for number in range(2)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            found = []
            while any(consumer.position(tp) < ends[tp] for tp in partitions):
                found += [(one.value or b"").decode() for one in consumer.poll(timeout_ms=20)]
        return sorted(found)

    def open(self) -> list[str]:
        with sync.Admin(self.settings) as admin:
            listed = admin.list_transactions(states=["Ongoing"])
        return [one.transactional_id for one in listed if one.transactional_id.startswith(f"{self.topic}/")]


class Driver:
    """One process's clients, for one batch after the other."""

    def __init__(self, query: Query) -> None:
        self._topic, self._thread = query.topic, query.thread
        self._ledger = Ledger(query.settings, query.topic)
        self.committer = BatchCommitter(query.settings, query.topic, self._ledger)

    def perform(self, effect: Effect) -> Event:
        return self._thread.run(lambda: self.committer.perform(effect))

    def commit(
        self, batch: int, reports: list[TransactionReport], dies: Callable[[Effect, Event], bool] | None = None
    ) -> None:
        performed = self.committer.perform

        async def perform(effect: Effect) -> Event:
            event = await performed(effect)
            if dies is not None and dies(effect, event):
                raise Crash
            return event

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.committer, "perform", perform)
            self._thread.run(lambda: self.committer.commit(BatchCommit(self._topic, batch, reports)))

    def abort(self, reports: list[TransactionReport]) -> None:
        """As Spark asks for it when a task or a commit has failed."""
        opened = [one.transaction for one in reports if one.transaction is not None]
        self._thread.run(lambda: self.committer.abort(opened))

    def close(self) -> None:
        self._thread.run(self.committer.close)
        self._thread.run(self._ledger.close)


def lines(*batches: int) -> list[str]:
    return sorted(f"{batch} {task} {row}" for batch in batches for task in range(TASKS) for row in range(4))
