"""The worker process's end: the functions that `Workers.process` runs there.

The key map of a pass stays in the process between its steps: it is too large for a pipe. A process that was started
anew has none, says so, and the pass begins again.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

from ottla.ports.real.disk import RealDisk
from ottla.storage.cleaner.faults import Interrupted
from ottla.storage.cleaner.job import Cleaned, Indexed, Job
from ottla.storage.cleaner.throttle import Throttle
from ottla.storage.cleaner.work import Work

#: Whoever answers requests comes first.
_NICENESS: Final = 10

#: The pass that this process is at, by its log's folder; one at most.
_at_work: Final[dict[str, Work]] = {}


def index(job: Job) -> Indexed:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    _at_work.clear()
    throttle = Throttle(job.limits.bytes_per_second, time.monotonic, time.sleep)
    work = Work(job, RealDisk(), throttle)
    found = work.index()
    _at_work[job.directory] = work
    return found


def clean(directory: str, number: int) -> Cleaned:
    work = _at_work.get(directory)
    if work is None:
        raise Interrupted("the worker process was started anew in the middle of a pass")
    return work.clean(number)


def forget() -> None:
    """The pass is over: its memory is given back."""
    _at_work.clear()
