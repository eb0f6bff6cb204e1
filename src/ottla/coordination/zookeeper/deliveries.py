"""What a session's callers get, in the order in which the server sent it: answers, watches, and events of the session.

A watch must be called before its session can read what has changed, and should be called after the read that left it
has returned: its caller may have something to note first. Both come off one connection in the right order, yet asyncio
resumes a caller only in the next turn of the loop, and a simulated loop shuffles what runs in one turn. So a call waits
for two turns behind the answers before it, and the answers behind it wait for the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple


class _Answer(NamedTuple):
    future: asyncio.Future[Any]
    outcome: Any


class Deliveries:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        #: Waits for a call before it; begins with a call. Bounded by what is in flight and by the watches.
        self._waiting: deque[_Answer | Callable[[], None]] = deque()

    def answer(self, future: asyncio.Future[Any], outcome: Any) -> None:
        """Settles a future, with an exception where the outcome is one."""
        if self._waiting:
            self._waiting.append(_Answer(future, outcome))
        else:
            _settle(future, outcome)

    def call(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._run_after_callers()

    def _run_after_callers(self) -> None:
        """In the turn after the next: callers whose futures were settled in this one run in the next."""
        self._loop.call_soon(self._loop.call_soon, self._run)

    def _run(self) -> None:
        settled = False
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, _Answer):
                settled = True
                _settle(*first)
            elif settled:
                self._run_after_callers()
                return
            else:
                try:
                    first()
                except Exception as error:  # a caller's fault is no reason to keep anything from the others
                    self._loop.call_exception_handler({"message": "a watch or listener failed", "exception": error})
            self._waiting.popleft()


def _settle(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():  # its caller was cancelled
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
        future.exception()  # the caller may be gone: that is no news for the log
    else:
        future.set_result(outcome)
