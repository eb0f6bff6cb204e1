"""A bound on what answers hold in memory that their clients do not take.

Small answers are as many as connections are, and those are counted. What is left of a large one is counted here. When
all of them together reach the bound, no more long answers are made until there is room; and as long as somebody waits
for it, connections whose clients have taken nothing for some seconds are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla import logs
from ottla.ports import Clock

if TYPE_CHECKING:
    from ottla.server.connection import Connection

log_event = logs.logger("server")

#: What is left of an answer, from which on it is counted.
LARGE_BYTES: Final = 16 * 1024
#: All of them together; the one that reaches it may go beyond it.
HELD_BYTES_MAX: Final = 64 * 1024 * 1024
#: How long a client may take nothing of its answer while others wait for the room.
STALLED_MS: Final = 5_000
_LOOK_S: Final = 0.5


class AnswerMemory:
    def __init__(self, clock: Clock, close: Callable[[Connection], None]) -> None:
        self._clock = clock
        self._close = close
        #: Bytes by connection, of those with large answers.
        self.held: dict[Connection, int] = {}
        self.bytes = 0
        self._waiting: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_room(self) -> bool:
        return self.bytes < HELD_BYTES_MAX

    def note(self, connection: Connection, size: int) -> None:
        """What a connection holds by now."""
        self.bytes += size - self.held.pop(connection, 0)
        if size >= LARGE_BYTES:
            self.held[connection] = size
        else:
            self.bytes -= size
        if self._waiting and self.has_room:
            self._wake()

    def wait(self, resume: Callable[[], None]) -> None:
        """Calls once there is room again."""
        self._waiting.append(resume)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        late_ms = self._clock.monotonic_ms() - STALLED_MS
        stalled = [connection for connection in self.held if connection.last_active_ms < late_ms]
        for connection in stalled:
            log_event.warning_limited(
                "closing a connection that does not take its answer", peer=connection.host, bytes=self.held[connection]
            )
            self._close(connection)
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
