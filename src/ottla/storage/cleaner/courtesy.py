"""A slice of work never lasts longer than others can wait.

A scheduler lets a running process finish a slice of some milliseconds, however nice it is, before somebody else who has
something to do gets the core. A broker on it would answer that much later. So the cleaner offers its core far more
often; the offer costs a microsecond, and nothing is lost where nobody wants it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SLICE_S: Final = 0.0004


@contextmanager
def in_short_slices() -> Iterator[None]:
    """For the main thread of a process that has no other use for SIGALRM."""
    before = signal.signal(signal.SIGALRM, _offer)
    signal.setitimer(signal.ITIMER_REAL, _SLICE_S, _SLICE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _offer(_number: int, _frame: FrameType | None) -> None:
    os.sched_yield()
