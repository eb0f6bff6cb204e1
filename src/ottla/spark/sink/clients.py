"""What a worker process of Spark's keeps from task to task: an event loop's thread, and the clients in it.

Spark runs many tasks in one process, one after the other, and a micro-batch is short: to connect anew for each of them
would take longer than to write its rows. A process is forked before it runs any of this, and never in its middle.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from typing import Final

from ottla.client.producing.producer import Producer
from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink.exactly_once.broker_limits import transaction_ms_max
from ottla.spark.sink.exactly_once.committing import BatchCommitter
from ottla.spark.sink.ledger import Ledger
from ottla.spark.sink.target import SinkTarget

#: Sinks of one process that are remembered; those of a notebook's earlier trials have no use any more.
_KEPT_MAX: Final = 8


class KeptClients:
    """The clients of one process, for its main thread."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        #: By settings, the one that was used last at the end.
        self._producers: dict[tuple[tuple[str, str], ...], Producer] = {}
        self._task_producers: dict[tuple[tuple[str, str], ...], Producer] = {}
        self._ledgers: dict[tuple[tuple[str, str], ...], Ledger] = {}
        self._committers: dict[tuple[tuple[str, str], ...], BatchCommitter] = {}
        self._transaction_ms_max: dict[tuple[tuple[str, str], ...], int] = {}

    def producer(self, target: SinkTarget) -> Producer:
        key = tuple(sorted(target.settings.items()))
        producer = self._producers.pop(key, None)
        if producer is None:
            producer = self.thread.call(lambda: Producer(target.settings))
        self._producers[key] = producer
        while len(self._producers) > _KEPT_MAX:
            oldest = self._producers.pop(next(iter(self._producers)))
            self.thread.run(oldest.close)
        return producer

    def drop_producer(self, target: SinkTarget) -> None:
        """What a failed task has left in its queues is not waited for."""
        producer = self._producers.pop(tuple(sorted(target.settings.items())), None)
        if producer is not None:
            self.thread.run(lambda: producer.close(timeout_ms=0))

    def task_producer(self, settings: Mapping[str, str], transactional_id: str) -> Producer:
        """The one of tasks that write exactly once: each has an id of its own, and the connections of those before."""
        key = tuple(sorted(settings.items()))
        kept = self._task_producers.pop(key, None)
        given = {**settings, "transactional.id": transactional_id}
        producer = self._task_producers[key] = kept or self.thread.call(lambda: Producer(given))
        if kept is not None:
            self.thread.run(lambda: producer.take_transactional_id(transactional_id))
        while len(self._task_producers) > _KEPT_MAX:
            oldest = self._task_producers.pop(next(iter(self._task_producers)))
            self.thread.run(oldest.close)
        return producer

    def drop_task_producer(self, settings: Mapping[str, str]) -> None:
        """A task that has failed has closed it."""
        producer = self._task_producers.pop(tuple(sorted(settings.items())), None)
        if producer is not None:
            self.thread.run(lambda: producer.close(timeout_ms=0))

    def ledger(self, target: SinkTarget) -> Ledger:
        assert target.query is not None
        settings = target.client_settings
        key = _ledger_key(target)
        ledger = self._ledgers.pop(key, None)
        if ledger is None:
            name = target.query
            ledger = self.thread.call(lambda: Ledger(settings, name))
        self._ledgers[key] = ledger
        while len(self._ledgers) > _KEPT_MAX:
            oldest = self._ledgers.pop(next(iter(self._ledgers)))
            self.thread.run(oldest.close)
        return ledger

    def drop_ledger(self, target: SinkTarget) -> None:
        """After a fault: the next one reads the topic from its beginning."""
        ledger = self._ledgers.pop(_ledger_key(target), None)
        if ledger is not None:
            self.thread.run(ledger.close)

    def committer(self, target: SinkTarget) -> BatchCommitter:
        assert target.query is not None
        settings, name, ledger = target.client_settings, target.query, self.ledger(target)
        key = _ledger_key(target)
        committer = self._committers.pop(key, None)
        if committer is None:
            committer = self.thread.call(lambda: BatchCommitter(settings, name, ledger))
        self._committers[key] = committer
        while len(self._committers) > _KEPT_MAX:
            oldest = self._committers.pop(next(iter(self._committers)))
            self.thread.run(oldest.close)
        return committer

    def drop_committer(self, target: SinkTarget) -> None:
        """After a fault: the next one fences it, and reads the ledger from its beginning."""
        committer = self._committers.pop(_ledger_key(target), None)
        if committer is not None:
            self.thread.run(committer.close)
        self.drop_ledger(target)

    def transaction_ms_max(self, target: SinkTarget) -> int:
        """How long brokers let a transaction be open; asked once."""
        key = _ledger_key(target)
        if key not in self._transaction_ms_max:
            settings = target.client_settings
            self._transaction_ms_max[key] = self.thread.run(lambda: transaction_ms_max(settings))
            while len(self._transaction_ms_max) > _KEPT_MAX:
                self._transaction_ms_max.pop(next(iter(self._transaction_ms_max)))
        return self._transaction_ms_max[key]

    def close(self) -> None:
        for producer in (*self._producers.values(), *self._task_producers.values()):
            self.thread.run(producer.close)
        for ledger in self._ledgers.values():
            self.thread.run(ledger.close)
        for committer in self._committers.values():
            self.thread.run(committer.close)
        self._committers.clear()
        self._producers.clear()
        self._task_producers.clear()
        self._ledgers.clear()
        self.thread.end()


def _ledger_key(target: SinkTarget) -> tuple[tuple[str, str], ...]:
    assert target.query is not None
    return (*sorted(target.client_settings.items()), ("", target.query))


_kept: KeptClients | None = None


def kept_clients() -> KeptClients:
    """Those of this process."""
    global _kept  # noqa: PLW0603 - Spark calls plain functions of a module: nothing of ours lives between two tasks
    if _kept is None:
        _kept = KeptClients(LoopThread("ottla-spark-sink"))
        atexit.register(close_kept_clients)
    return _kept


def close_kept_clients() -> None:
    global _kept
    kept, _kept = _kept, None
    if kept is not None:
        kept.close()
