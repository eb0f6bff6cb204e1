"""Whether compiled code gives the interpreter's lock back while it is at work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

#: The kernel may be late to run the other thread: so often is it given the chance.
_TIMES_MAX = 500


def another_thread_runs_during(work: Callable[[], None]) -> bool:
    """`work` must be compiled code alone, that calls nothing which gives the lock back."""
    begun, ran = threading.Lock(), threading.Event()
    begun.acquire()

    def other() -> None:
        with begun:
            ran.set()

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=other)
    thread.start()
    # The interpreter itself takes the lock from nobody for so long.
    sys.setswitchinterval(3600)
    try:
        begun.release()  # from here on the other thread waits for the interpreter's lock
        for _ in range(_TIMES_MAX):
            work()
            if ran.is_set():
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()
