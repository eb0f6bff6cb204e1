"""The worker process's end: the functions that `Workers.process` runs there.

The key map of a pass stays in the process between its steps: it is too large for a pipe. A process that was started
anew has none, says so, and the pass begins again.

A broker that is killed cannot end its worker, and the next broker may be at the same folder within the second: so the
worker looks after each read and write, and twice a second while it is throttled, whether its broker is still there.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

from ottla.ports.real.disk import RealDisk
from ottla.storage.cleaner.courtesy import in_short_slices
from ottla.storage.cleaner.faults import PassInterrupted
from ottla.storage.cleaner.job import CleanedSegment, PassIndex, PassJob
from ottla.storage.cleaner.throttle import Throttle
from ottla.storage.cleaner.work import Work

#: The process that answers requests comes first.
_NICENESS: Final = 10
_LOOK_S: Final = 0.5

#: The pass that this process is at, by its log's folder; one at most.
_at_work: Final[dict[str, Work]] = {}


def index(job: PassJob, broker_pid: int) -> PassIndex:
    """`broker_pid`: whose child this process is."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    _at_work.clear()

    def check() -> None:
        if os.getppid() != broker_pid:
            os._exit(1)

    def sleep(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))
            check()

    throttle = Throttle(job.limits.bytes_per_second, time.monotonic, sleep)

    def pace(size: int) -> None:
        check()
        throttle(size)

    work = Work(job, RealDisk(), pace)
    with in_short_slices():
        found = work.index()
    if found.groups:
        _at_work[job.directory] = work
    return found


def clean(directory: str, number: int) -> CleanedSegment:
    work = _at_work.get(directory)
    if work is None:
        raise PassInterrupted("the worker process was started anew in the middle of a pass")
    with in_short_slices():
        cleaned = work.clean(number)
    if work.is_last(number):
        _at_work.clear()  # up to log.cleaner.dedupe.buffer.size, which nobody needs until the next pass
    return cleaned
