"""The worker process's end: the functions that `Workers.process` runs there.

The key map of a pass stays in the process between its steps: it is too large for a pipe. A process that was started
anew has none, says so, and the pass begins again.

A broker that is killed cannot end its worker, and the next broker may be at the same folder within the second: so the
worker looks after each read and write, and twice a second while it is throttled, whether its broker is still there.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from ottla.ports.real.disk import RealDisk
from ottla.storage.cleaner.faults import PassInterrupted
from ottla.storage.cleaner.job import CleanedSegment, PassIndex, PassJob
from ottla.storage.cleaner.work import CleaningPass

#: The process that answers requests comes first.
_NICENESS: Final = 10
_LOOK_S: Final = 0.5

#: The pass that this process is at, by its log's folder; one at most.
_at_work: Final[dict[str, CleaningPass]] = {}


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

    work = CleaningPass(job, RealDisk(), pace)
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


#: The rate is kept over spans of this length: shorter ones would sleep for each read.
_SPAN_S: Final = 0.3
#: A disk that could not keep up is not owed more than this much of the rate at once.
_DEBT_S_MAX: Final = 1.0


class Throttle:
    """log.cleaner.io.max.bytes.per.second: reads and writes together stay below a rate.

    Counts bytes, and sleeps when they came too fast. The clock and the sleep are given.
    """

    __slots__ = ("_begun_s", "_bytes", "_bytes_per_second", "_monotonic_s", "_sleep")

    def __init__(
        self, bytes_per_second: float, monotonic_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._bytes_per_second = max(bytes_per_second, 1.0)
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._begun_s = monotonic_s()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        elapsed_s = self._monotonic_s() - self._begun_s
        ahead_s = self._bytes / self._bytes_per_second - elapsed_s
        if ahead_s > _SPAN_S:
            self._sleep(ahead_s)
        elif ahead_s < -_DEBT_S_MAX:
            # Between two steps nothing was done: that time is not made up for.
            self._begun_s += elapsed_s
            self._bytes = 0


#: How long others wait for a core that this process has.
_SLICE_S: Final = 0.0004
#: Where they keep it for long, a slice is as long as this part of the time that they had it, up to what any process has
#: at a time: a machine without a free core would leave next to nothing otherwise.
_SLICE_PART: Final = 0.1
_SLICE_S_MAX: Final = 0.004


@contextmanager
def in_short_slices() -> Iterator[None]:
    """A slice of work never lasts longer than others can wait. For a main thread that has no other use for SIGALRM.

    A scheduler lets a running process finish a slice of some milliseconds, however nice it is, before somebody else who
    has something to do gets the core. A broker on it would answer that much later. So the cleaner offers its core far
    more often; the offer costs a microsecond, and nothing is lost where nobody wants it.

    Each slice begins behind the last offer: an alarm that came while others have the core would call `offer` within
    itself, and again, until Python ends the pass for its recursion.
    """
    goes_on = True

    def offer(_number: int, _frame: FrameType | None) -> None:
        offered_s = time.monotonic()
        os.sched_yield()
        away_s = time.monotonic() - offered_s
        if goes_on:
            signal.setitimer(signal.ITIMER_REAL, min(_SLICE_S_MAX, max(_SLICE_S, away_s * _SLICE_PART)))

    before = signal.signal(signal.SIGALRM, offer)
    signal.setitimer(signal.ITIMER_REAL, _SLICE_S)
    try:
        yield
    finally:
        goes_on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
