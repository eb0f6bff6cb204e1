"""Processes of a query without Spark, each of which ends by SIGKILL behind a step: forks of one that has imported all.

Spark takes ten seconds of a processor to begin, and such a process a tenth of one: so there are many rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Final

from tests.spark.sink.exactly_once import dying
from tests.spark.sink.exactly_once.query import Query

from ottla.client.sync.loop_thread import LoopThread
from ottla.spark.sink.clients import KeptClients

_CONTEXT: Final = multiprocessing.get_context("forkserver")
#: A process that has not ended by then hangs.
_SECONDS_MAX: Final = 300.0


class OneStep:
    """Behind which this process dies."""

    def __init__(self, step: str | None) -> None:
        self._step = step

    def die(self, where: str) -> None:
        if where == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def life(bootstrap: str, topic: str, batch: int, step: str | None, timeout_ms: int | None = None) -> int:
    """Of a process that has the tasks of a micro-batch and commits them; its exit status.

    `timeout_ms`: of its tasks' transactions, where not the broker's longest.
    """
    _CONTEXT.set_forkserver_preload([__name__])
    process = _CONTEXT.Process(target=_lives, args=(bootstrap, topic, batch, step, timeout_ms))
    process.start()
    process.join(_SECONDS_MAX)
    process.kill()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _lives(bootstrap: str, topic: str, batch: int, step: str | None, timeout_ms: int | None) -> None:
    plan = OneStep(step)
    dying.plant_in_task(plan)
    dying.plant_in_committer(plan)
    worker = KeptClients(LoopThread("killed"))
    query = Query(bootstrap, topic, worker)
    if timeout_ms is not None:
        query.timeout = {"transaction.timeout.ms": str(timeout_ms)}
    query.report(batch, 0, attempt=1)  # nobody is told of it
    reports = query.whole(batch)
    plan.die("told")
    query.commit(batch, reports)
    worker.close()
