"""The data source with faults planted in it: whoever takes part in a micro-batch dies behind a step of it.

The option `dies` names a folder, and a file in it is named after the micro-batch that it is for. Each of its lines is
one death, who and where, and goes when that one has died; what stands in a later line waits for it:

    session effect N       the driver, its JVM and its workers, behind the N-th thing that it does to commit
    committer effect N     the process alone that commits, while the driver lives on
    session outcome        behind the first of several commits; a committer as well
    worker WHERE           the process that runs a task: `begin` and `detach` of its producer's, `rows` behind the first
                           of them, `told` when the driver is about to be told
    executor WHERE         the same, and with it the executor's JVM, which runs other tasks besides
    copied                 nobody: the first task does not begin before another attempt at it runs as well
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pyspark import TaskContext

from ottla.client.producing.producer import Producer
from ottla.client.producing.transactions.methods import TransactionMethods
from ottla.spark import OttlaDataSource
from ottla.spark.sink.exactly_once.committing import BatchCommitter
from ottla.spark.sink.task import TaskRows

_perform, _outcome = BatchCommitter.perform, BatchCommitter._outcome
_begin, _detach, _add = TransactionMethods.begin, TransactionMethods.detach, TaskRows.add
_EXECUTOR = "CoarseGrainedExecutorBackend"
#: In a plan: the first task waits for a copy of itself.
COPIED = "copied"
_LOOK_SECONDS = 0.05


class Dies(Protocol):
    def die(self, where: str) -> None:
        """Does not return where this one is to die here."""


class Plan:
    """What is left to be died of in one micro-batch."""

    def __init__(self, folder: str, batch: int) -> None:
        self._file = Path(folder) / str(batch)

    def taken(self, who: str, where: str) -> bool:
        """Whether this one dies here: of several that come to it at once one does."""
        return self._took(f"{who} {where}")

    def wait_for_a_copy(self) -> None:
        """Of this task, where the plan says so. An executor that has died is there again after some time only, and a
        task has a copy where another executor is idle: however long that takes.
        """
        if self._next() != [COPIED]:
            return
        with self._file.with_name(f".{self._file.name}").open("w") as first:
            while self._next() == [COPIED]:
                try:
                    fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:  # by another attempt, which lives: its end lets go of it
                    self._took(COPIED)
                time.sleep(_LOOK_SECONDS)

    def _next(self) -> list[str]:
        """The line whose turn it is; none when all have had theirs."""
        try:
            return self._file.read_text().splitlines()[:1]
        except FileNotFoundError:
            return []

    def _took(self, step: str) -> bool:
        """Whether it was this line's turn, and this process has taken it."""
        try:
            steps = self._file.read_text().splitlines()
        except FileNotFoundError:
            return False
        if steps[:1] != [step]:
            return False
        mine = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.rename(mine)
        except FileNotFoundError:
            return False
        if steps[1:]:
            left = mine.with_suffix(".left")
            left.write_text("\n".join(steps[1:]))
            left.rename(self._file)
        mine.unlink()
        return True

    def die(self, where: str) -> None:
        for who, end in _ENDS.items():
            if self.taken(who, where):
                end()


def end_the_session() -> None:
    """Driver, JVM and workers: they were started in a session of their own."""
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        try:
            if pid != os.getpid() and os.getsid(pid) == os.getsid(0):
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    end_this()


def end_this() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def end_the_executor() -> None:
    """The JVM above this process, and this process."""
    pid = os.getpid()
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
            break
    end_this()


_ENDS: Mapping[str, Callable[[], None]] = {
    "session": end_the_session,
    "committer": end_this,
    "worker": end_this,
    "executor": end_the_executor,
}


def plant_in_committer(plan: Dies) -> None:
    done = 0

    async def perform(self: BatchCommitter, effect: Any) -> Any:
        nonlocal done
        event = await _perform(self, effect)
        done += 1
        plan.die(f"effect {done}")
        return event

    async def outcome(self: BatchCommitter, task: Any) -> Any:
        found = await _outcome(self, task)
        plan.die("outcome")
        return found

    BatchCommitter.perform = perform  # type: ignore[method-assign]  # the fault
    BatchCommitter._outcome = outcome  # type: ignore[method-assign]  # the fault


def plant_in_task(plan: Dies) -> None:
    async def begin(self: Producer) -> None:
        await _begin(self)
        plan.die("begin")

    async def detach(self: Producer) -> Any:
        found = await _detach(self)
        plan.die("detach")
        return found

    async def add(self: TaskRows, rows: Any, first_row: int) -> None:
        await _add(self, rows, first_row)
        plan.die("rows")

    Producer.begin = begin  # type: ignore[method-assign]  # the fault
    Producer.detach = detach  # type: ignore[method-assign]  # the fault
    TaskRows.add = add  # type: ignore[method-assign]  # the fault


class DyingWriter:
    """A writer whose tasks may die, and whose commit may end everything."""

    def __init__(self, writer: Any, folder: str) -> None:
        self._writer = writer
        self._folder = folder

    def write(self, iterator: Iterator[Any]) -> Any:
        context = TaskContext.get()
        assert context is not None
        plan = Plan(self._folder, int(context.getLocalProperty("streaming.sql.batchId") or 0))
        plant_in_task(plan)
        if context.partitionId() == 0:
            plan.wait_for_a_copy()
        told = self._writer.write(iterator)
        plan.die("told")
        return told

    def commit(self, messages: Any, batch: int) -> None:
        plant_in_committer(Plan(self._folder, batch))
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
