"""Turns at something that one request at a time may use, shared out by connection and not by arrival.

Each connection has a line of its own. The next turn goes to the line that has had the least time of late: one that has
used much stands behind those that used little, however many requests it has sent. What was used is forgotten, half of
it every `HALF_MS`, so that one long piece of work is not held against a connection for ever. Lines that have had about
the same are served in the order in which their requests came.

      had     0        5        9 seconds
      lines   a        b, c     d          the next turn is a's; a new connection stands behind a
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count
from typing import Any, Final

from ottla.ports import Clock

#: A connection that has used a second is by this much later where one is that has used half of it.
HALF_MS: Final = 10_000
#: Less than that is no difference: an honest connection that comes often does not stand behind all that come anew.
GRAIN_MS: Final = 25
#: Lines in which nobody stands are remembered up to so many, the last ones to have had a turn: one that comes back
#: goes on where it was. Forgotten ones begin anew, with the rest.
EMPTY_LINES_MAX: Final = 1000


class TurnOverdue(Exception):
    """It did not come in time."""


class _ConnectionLine:
    __slots__ = ("_at_ms", "_had_ms", "waiting")

    def __init__(self) -> None:
        self._had_ms = 0.0
        self._at_ms = 0
        #: Each with the number of its arrival.
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def rank(self, now_ms: int) -> tuple[int, int]:
        """The least has the next turn."""
        return int(self.had_ms(now_ms) / GRAIN_MS), self.waiting[0][0]

    def had_ms(self, now_ms: int) -> float:
        """Time that its turns took, the less the longer ago."""
        return self._had_ms * 0.5 ** ((now_ms - self._at_ms) / HALF_MS) if self._had_ms else 0.0

    def has_had(self, ms: int, now_ms: int) -> None:
        self._had_ms = self.had_ms(now_ms) + ms
        self._at_ms = now_ms


class FairTurns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken = False
        self._numbers = count()
        #: By their owners: those in which somebody stands, and those that are empty, the latest at the end.
        self._standing: dict[object, _ConnectionLine] = {}
        self._empty: dict[object, _ConnectionLine] = {}

    def __len__(self) -> int:
        """How many wait."""
        return sum(len(line.waiting) for line in self._standing.values())

    async def take(self, owner: object, deadline_ms: int) -> Turn:
        """Waits for a turn; raises TurnOverdue where that takes until the deadline."""
        line = self._standing.get(owner)
        if line is None:
            line = self._empty.pop(owner) if owner in self._empty else _ConnectionLine()
            self._standing[owner] = line
        if self._taken:
            await self._wait(line, owner, deadline_ms)
        else:
            self._begin(line, owner)
        return Turn(self, line, self._clock.monotonic_ms())

    async def _wait(self, line: _ConnectionLine, owner: object, deadline_ms: int) -> None:
        loop = asyncio.get_running_loop()
        place: asyncio.Future[None] = loop.create_future()
        entry = next(self._numbers), place
        line.waiting.append(entry)
        seconds = max(0, deadline_ms - self._clock.monotonic_ms()) / 1000
        timer = loop.call_later(seconds, _give_up, place)
        try:
            await place
        except BaseException:
            if entry in line.waiting:
                line.waiting.remove(entry)
                self._tidy(line, owner)
            elif not place.cancelled() and place.exception() is None:
                self._next()  # the turn came at the moment in which its request ended
            raise
        finally:
            timer.cancel()

    def _begin(self, line: _ConnectionLine, owner: object) -> None:
        self._taken = True
        self._tidy(line, owner)

    def _tidy(self, line: _ConnectionLine, owner: object) -> None:
        if line.waiting:
            return
        self._standing.pop(owner, None)
        self._empty[owner] = line
        if len(self._empty) > EMPTY_LINES_MAX:
            del self._empty[next(iter(self._empty))]

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def ended(self, line: _ConnectionLine, began_ms: int) -> None:
        now_ms = self._clock.monotonic_ms()
        line.has_had(now_ms - began_ms, now_ms)
        self._next()

    def _next(self) -> None:
        self._taken = False
        now_ms = self._clock.monotonic_ms()
        while self._standing:
            owner, line = min(self._standing.items(), key=lambda standing: standing[1].rank(now_ms))
            _, place = line.waiting.popleft()
            if not place.done():
                self._begin(line, owner)
                place.set_result(None)
                return
            self._tidy(line, owner)  # its request has ended, and is about to find out


def _give_up(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_exception(TurnOverdue())


class Turn:
    """From its beginning to its end; what was begun in it belongs to it, even when nobody waits for that any more."""

    __slots__ = ("_began_ms", "_line", "_turns", "work")

    def __init__(self, turns: FairTurns, line: _ConnectionLine, began_ms: int) -> None:
        self._turns = turns
        self._line = line
        self._began_ms = began_ms
        self.work: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """What was done in it so far is not counted."""
        self._began_ms = self._turns.now_ms()

    def end(self) -> None:
        if self.work is None or self.work.done():
            self._turns.ended(self._line, self._began_ms)
        else:
            self.work.add_done_callback(self._late_end)

    def _late_end(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # nobody else asks
        self._turns.ended(self._line, self._began_ms)
