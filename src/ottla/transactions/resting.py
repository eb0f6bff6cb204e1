"""Requests that wait until nothing of their transactional id is on its way: no uncommitted write, no marker.

An end is answered when it is decided. Its producer begins the next transaction at once, and finds the markers of the
last one on their way for another millisecond. Clients that are answered CONCURRENT_TRANSACTIONS pause for twenty.

    wait ─▶ at rest, or its time is over, or the shard is given up ─▶ called: it asks once more, and takes what it gets
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ottla.coordinators.caller import Now
from ottla.coordinators.timers import Timers

#: In one shard, since they are all called together when it is given up: some milliseconds. More do not wait.
WAITING_MAX: Final = 1_000
#: Of one id. Each time that it is at rest one of them goes on and all others wait once more.
WAITING_OF_AN_ID_MAX: Final = 32


class _Waiting(NamedTuple):
    until_ms: int
    call: Callable[[], None]


class Rest:
    __slots__ = ("_count", "_timers", "_waiting")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        #: By transactional id, each of which has a timer for the first of its own.
        self._waiting: dict[str, list[_Waiting]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def wait(self, transactional_id: str, until_ms: int, call: Callable[[], None]) -> bool:
        """False: there is no room, and it is not called. It may wait again when it is called."""
        waiting = self._waiting.get(transactional_id, [])
        if self._count >= WAITING_MAX or len(waiting) >= WAITING_OF_AN_ID_MAX:
            return False
        self._count += 1
        self._waiting[transactional_id] = [*waiting, _Waiting(until_ms, call)]
        self._set_timer(transactional_id)
        return True

    def has_come(self, transactional_id: str) -> None:
        if transactional_id in self._waiting:
            self._timers.cancel(("rest", transactional_id))
            self._call(self._waiting.pop(transactional_id))

    def end(self) -> None:
        """There are no timers any more."""
        waiting, self._waiting = self._waiting, {}
        for those in waiting.values():
            self._call(those)

    def _set_timer(self, transactional_id: str) -> None:
        first_ms = min(each.until_ms for each in self._waiting[transactional_id])
        self._timers.set(("rest", transactional_id), first_ms, partial(self._expire, transactional_id))

    def _expire(self, transactional_id: str, now: Now) -> None:
        waiting = self._waiting.pop(transactional_id)
        over = [each for each in waiting if each.until_ms <= now.monotonic_ms]
        if len(over) < len(waiting):
            self._waiting[transactional_id] = [each for each in waiting if each.until_ms > now.monotonic_ms]
            self._set_timer(transactional_id)
        self._call(over)

    def _call(self, those: list[_Waiting]) -> None:
        self._count -= len(those)
        for each in those:
            each.call()
