"""The data source with a fault planted in it: everything of its driver, or a task's worker, dies behind one step.

The option `dies` names a file; what stands in it is the step, and the file is gone when somebody has died:

    effect N           the driver, behind the N-th thing that it does to commit a micro-batch
    outcome            the driver, behind the first of several commits
    begin, detach      a task's worker, behind that call of its producer's
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ottla.client.producing.producer import Producer
from ottla.client.producing.transactions.methods import TransactionMethods
from ottla.spark import OttlaDataSource
from ottla.spark.sink.exactly_once.committing import BatchCommitter

_perform, _outcome = BatchCommitter.perform, BatchCommitter._outcome
_calls = {"begin": TransactionMethods.begin, "detach": TransactionMethods.detach}


class Plan:
    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def step(self) -> str:
        try:
            return self._file.read_text()
        except FileNotFoundError:
            return ""

    def taken(self, step: str) -> bool:
        """Whether this one dies at it: of several that come to it at once one does."""
        if self.step() != step:
            return False
        try:
            self._file.unlink()
        except FileNotFoundError:
            return False
        return True


def end_the_session() -> None:
    """Driver, JVM and workers: they were started in a session of their own."""
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        try:
            if pid != os.getpid() and os.getsid(pid) == os.getsid(0):
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.kill(os.getpid(), signal.SIGKILL)


def plant_in_driver(plan: Plan) -> None:
    done = 0

    async def perform(self: BatchCommitter, effect: Any) -> Any:
        nonlocal done
        event = await _perform(self, effect)
        done += 1
        if plan.taken(f"effect {done}"):
            end_the_session()
        return event

    async def outcome(self: BatchCommitter, task: Any) -> Any:
        found = await _outcome(self, task)
        if plan.taken("outcome"):
            end_the_session()
        return found

    BatchCommitter.perform = perform  # type: ignore[method-assign]  # the fault
    BatchCommitter._outcome = outcome  # type: ignore[method-assign]  # the fault


def plant_in_task(plan: Plan) -> None:
    async def call(self: Producer, name: str) -> Any:
        result = await _calls[name](self)
        if plan.taken(name):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    Producer.begin = lambda self: call(self, "begin")  # type: ignore[method-assign]  # the fault
    Producer.detach = lambda self: call(self, "detach")  # type: ignore[method-assign]  # the fault


class DyingWriter:
    """A writer whose tasks may die, and whose commit may end everything."""

    def __init__(self, writer: Any, file: str) -> None:
        self._writer = writer
        self._file = file

    def write(self, iterator: Iterator[Any]) -> Any:
        plant_in_task(Plan(self._file))
        return self._writer.write(iterator)

    def commit(self, messages: Any, batch: int) -> None:
        plant_in_driver(Plan(self._file))
        self._writer.commit(messages, batch)

    def abort(self, messages: Any, batch: int) -> None:
        self._writer.abort(messages, batch)


class DyingDataSource(OttlaDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        writer = super().streamWriter(schema, overwrite)
        options: Mapping[str, str] = self.options
        # Spark asks for the kind of the writer: it is the one that writes Arrow batches.
        kind = type("Dying", (DyingWriter, *type(writer).__mro__[1:2]), {})
        return kind(writer, options["dies"])
