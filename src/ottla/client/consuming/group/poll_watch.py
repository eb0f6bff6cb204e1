"""`max.poll.interval.ms`: notices that nobody polls any more, though the process lives and its heartbeats go out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class PollWatch:
    """Between `start` and `stop` calls `on_expiry` once, when no poll has been under way for the interval."""

    def __init__(self, interval_ms: int, on_expiry: Callable[[], None]) -> None:
        self._interval = interval_ms / 1000
        self._on_expiry = on_expiry
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        self._polls = 0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def touch(self) -> float:
        """The caller goes on; gives the loop's time. May be called from another thread than the loop's."""
        if self._loop is None:
            return 0.0
        self._last = self._loop.time()
        return self._last

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._polls += 1

    def __exit__(self, *_: object) -> None:
        self._polls -= 1
        self.touch()

    def _look(self) -> None:
        assert self._loop is not None
        self._timer = None
        left = self._interval if self._polls else self._last + self._interval - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._on_expiry()
