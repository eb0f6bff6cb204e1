"""A bound on what answers hold in memory that their clients do not take.

Small answers are as many as connections are, and those are counted. What is left of a large one is counted here. When
all of them together reach the bound, no more long answers are made until there is room; and as long as somebody waits
for it, connections whose clients have taken next to nothing for some seconds are closed. What counts is what they take:
a client that sends on and never reads would else keep the room from all others for as long as it likes.
"""

from __future__ import annotations

import asyncio
import traceback
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
#: How long a client may take less than `LARGE_BYTES` of its answer while others wait for the room.
STALLED_MS: Final = 5_000
_LOOK_S: Final = 0.5
#: In one turn of the loop: to close a connection takes as long as to serve some requests, and thousands may stall.
CLOSED_AT_ONCE: Final = 64
_NEXT_S: Final = 0.005


class AnswerMemory:
    def __init__(self, clock: Clock, close: Callable[[Connection], None]) -> None:
        self._clock = clock
        self._close = close
        #: Bytes by connection, of those with large answers.
        self.held: dict[Connection, int] = {}
        self.bytes = 0
        #: What each of them held when its client had last taken something worth the name, and when that was.
        self._taken: dict[Connection, tuple[int, int]] = {}
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
            self._note_taken(connection, size)
        else:
            self.bytes -= size
            self._taken.pop(connection, None)
        if self._waiting and self.has_room:
            self._wake()

    def _note_taken(self, connection: Connection, size: int) -> None:
        before, since_ms = self._taken.get(connection, (size, -1))
        if since_ms < 0 or before - size >= LARGE_BYTES:
            self._taken[connection] = (size, self._clock.monotonic_ms())
        elif size > before:
            self._taken[connection] = (size, since_ms)

    def wait(self, resume: Callable[[], None]) -> None:
        """Calls once there is room again."""
        self._waiting.append(resume)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            try:
                resume()
            except Exception as fault:
                # Nobody else would let the others go on.
                log_event.error("a long answer could not go on", error="".join(traceback.format_exception(fault)))

    def _look(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        late_ms = self._clock.monotonic_ms() - STALLED_MS
        stalled = [connection for connection, (_, since_ms) in self._taken.items() if since_ms < late_ms]
        delay_s = _LOOK_S if len(stalled) <= CLOSED_AT_ONCE else _NEXT_S
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._look)
        for connection in stalled[:CLOSED_AT_ONCE]:
            if connection not in self.held:
                continue  # to close one before it has settled others, too
            log_event.warning_limited(
                "closing a connection that does not take its answer", peer=connection.host, bytes=self.held[connection]
            )
            try:
                self._close(connection)
            except Exception as fault:
                log_event.error("it could not be closed", error="".join(traceback.format_exception(fault)))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
