"""A thread with an event loop for one broker: its tests may block theirs, and its time is its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from ottla.testing.shifting import Shift, ShiftedLoop

T = TypeVar("T")

#: What a broker in process is asked takes milliseconds; longer, and it hangs.
SECONDS_MAX: Final = 60.0


class OwnLoop:
    """Runs from the first `submit` until `end`, and again after it."""

    def __init__(self) -> None:
        self.shift = Shift()
        self._loop: ShiftedLoop | None = None
        self._thread: threading.Thread | None = None
        #: Of two callers at once one starts the thread.
        self._starting = threading.Lock()

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begins `work` on the loop; from any thread but its own.

        Raises what keeps it from having a loop: an OSError where no descriptor is left, a RuntimeError where no thread.
        """
        loop = self._running_loop()  # or raises, before there is a coroutine that nobody would await
        return asyncio.run_coroutine_threadsafe(work(), loop)

    def _running_loop(self) -> ShiftedLoop:
        with self._starting:
            if self._loop is None:
                looping: Future[ShiftedLoop] = Future()
                # A daemon, so that a test run that is cut short ends in spite of a broker that nobody closed.
                thread = threading.Thread(target=_loop, args=(looping, self.shift), name="ottla-broker", daemon=True)
                thread.start()
                try:
                    self._loop = looping.result(SECONDS_MAX)
                finally:
                    looping.cancel()  # where nobody waits for it any more
                self._thread = thread
            return self._loop

    def end(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(SECONDS_MAX)


def _loop(looping: Future[ShiftedLoop], shift: Shift) -> None:
    try:
        loop = ShiftedLoop(shift)
    except BaseException as error:
        if looping.set_running_or_notify_cancel():
            looping.set_exception(error)
        return
    with asyncio.Runner(loop_factory=lambda: loop):
        if looping.set_running_or_notify_cancel():
            looping.set_result(loop)
            loop.run_forever()
