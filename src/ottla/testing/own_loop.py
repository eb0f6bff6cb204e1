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

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begins `work` on the loop; from any thread but its own."""
        return asyncio.run_coroutine_threadsafe(work(), self._running_loop())

    def _running_loop(self) -> ShiftedLoop:
        if self._loop is None:
            looping: Future[ShiftedLoop] = Future()
            # A daemon, so that a test run that is cut short ends in spite of a broker that nobody closed.
            self._thread = threading.Thread(target=_loop, args=(looping, self.shift), name="ottla-broker", daemon=True)
            self._thread.start()
            self._loop = looping.result(SECONDS_MAX)
        return self._loop

    def end(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(SECONDS_MAX)


def _loop(looping: Future[ShiftedLoop], shift: Shift) -> None:
    with asyncio.Runner(loop_factory=lambda: ShiftedLoop(shift)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, ShiftedLoop)
        looping.set_result(loop)
        loop.run_forever()
