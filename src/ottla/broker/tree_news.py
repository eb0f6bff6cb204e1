"""What a broker reads of the tree again whenever it has changed: one reading at a time, and again after a fault.

    a watch ─▶ changed ─▶ reading ──(changed meanwhile)──▶ reading once more
                             └─(a fault of the tree, or of ours)─▶ after AGAIN_S

Invariant: while there is news and this is open, a reading goes on, or one is to begin, or `hold` keeps it back.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

from ottla import logs
from ottla.coordination.errors import CoordinationError
from ottla.coordination.interface import WatchEvent
from ottla.steps import is_stray

log_event = logs.logger("server")

#: After a fault of the tree that does not end the session.
AGAIN_S: Final = 1.0


class TreeNews:
    def __init__(self, what: str, read: Callable[[], Awaitable[None]]) -> None:
        #: As the log calls what is read.
        self._what = what
        #: Sets the watch anew before it reads. May raise CoordinationError.
        self._read = read
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        #: Whether something has changed since the task began to read.
        self._has_news = False
        self._held = False
        self._closed = False

    def changed(self, _: WatchEvent | None = None) -> None:
        self._has_news = True
        self._look()

    def hold(self) -> None:
        """Reads nothing until `release`."""
        self._held = True

    def release(self) -> None:
        self._held = False
        if self._has_news:
            self._look()

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        if self._again is not None:
            self._again.cancel()

    def _look(self) -> None:
        self._again = None
        if self._task is None and not self._closed and not self._held:
            self._task = asyncio.get_running_loop().create_task(self._read_news())

    async def _read_news(self) -> None:
        try:
            while self._has_news and not self._closed:
                self._has_news = False
                await self._read()
        except CoordinationError as fault:
            # With a session that is over another one begins, and reads everything.
            log_event.warning_limited(f"{self._what} could not be read yet", fault=str(fault))
            self._try_again()
        except asyncio.CancelledError as fault:
            if not is_stray(fault):
                raise
            self._try_again()
        except Exception as fault:
            error = "".join(traceback.format_exception(fault))
            log_event.warning_limited(f"{self._what} could not be read yet for a fault of the broker", error=error)
            self._try_again()
        finally:
            self._task = None
            if self._has_news and self._again is None:
                self._look()

    def _try_again(self) -> None:
        self._has_news = True
        if not self._closed:
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._look)
