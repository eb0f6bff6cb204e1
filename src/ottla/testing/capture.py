"""Log lines of the brokers in this process, kept so that a failing test can show them.

A process has one log output. While brokers of tests run it is turned to here, and each line is put to the broker in
whose context it was written: the tasks and call-backs of a broker inherit the context in which it was started, also
when several share one loop. Lines from worker threads have no context and are marked as such.
"""

from __future__ import annotations

import threading
from collections import deque
from contextvars import ContextVar
from typing import Final

from ottla import logs

#: Lines that are remembered over all brokers; older ones are forgotten.
LINES_MAX: Final = 10_000

#: The name of the broker on whose behalf the code at hand runs.
speaker: ContextVar[str] = ContextVar("ottla_testing_speaker", default="a worker thread")


class Capture:
    """Numbered lines; a mark is the number of the next one."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._written = 0
        self._users = 0
        self._before: logs.LogSettings | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Turns the process's log here, until as many `end` have come."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._before = logs.configure(sink=self._take)

    def end(self) -> None:
        with self._lock:
            assert self._users > 0
            self._users -= 1
            if self._users == 0:
                assert self._before is not None
                logs.restore(self._before)

    def _take(self, line: str) -> None:
        with self._lock:
            self._lines.append(f"[{speaker.get()}] {line}")
            self._written += 1

    @property
    def mark(self) -> int:
        return self._written

    def since(self, mark: int) -> str:
        """What was written since `mark` and is still remembered."""
        with self._lock:
            wanted = self._written - mark
            kept = list(self._lines)[-wanted:] if wanted > 0 else []
            forgotten = wanted - len(kept)
        if forgotten > 0:
            kept.insert(0, f"({forgotten} earlier lines are forgotten)\n")
        return "".join(kept)


#: One a process, as the log output that it stands in for.
CAPTURE: Final = Capture()
