"""Requests that wait until nothing of their transactional id is on its way: no uncommitted write, no marker.

An end is answered when it is decided. Its producer begins the next transaction at once, and finds the markers of the
last one on their way for another millisecond. Clients that are answered CONCURRENT_TRANSACTIONS pause for twenty.

    wait ─▶ at rest, or its time is over, or the shard is given up ─▶ called: it asks once more, and takes what it gets
"""

from __future__ import annotations

from collections.abc import Callable
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
    __slots__ = ("_count", "_looks_ms", "_timers", "_waiting")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        #: By transactional id.
        self._waiting: dict[str, list[_Waiting]] = {}
        self._count = 0
        #: When somebody's time may be over, for which there is a timer: one for all, which is not taken back where the
        #: first of them is called before. Nearly all are, and an alarm for each would cost as much as all else here.
        self._looks_ms: int | None = None

    def __len__(self) -> int:
        return self._count

    def wait(self, transactional_id: str, until_ms: int, call: Callable[[], None]) -> bool:
        """False: there is no room, and it is not called. It may wait again when it is called."""
        waiting = self._waiting.get(transactional_id, [])
        if self._count >= WAITING_MAX or len(waiting) >= WAITING_OF_AN_ID_MAX:
            return False
        self._count += 1
        self._waiting[transactional_id] = [*waiting, _Waiting(until_ms, call)]
        self._look_at(until_ms)
        return True

    def has_come(self, transactional_id: str) -> None:
        if transactional_id in self._waiting:
            self._call(self._waiting.pop(transactional_id))

    def end(self) -> None:
        """There are no timers any more."""
        waiting, self._waiting = self._waiting, {}
        for those in waiting.values():
            self._call(those)

    def _look_at(self, when_ms: int) -> None:
        if self._looks_ms is None or when_ms < self._looks_ms:
            self._looks_ms = when_ms
            self._timers.set("rest", when_ms, self._look)

    def _look(self, now: Now) -> None:
        self._looks_ms = None
        over: list[_Waiting] = []
        left: dict[str, list[_Waiting]] = {}
        for transactional_id, waiting in self._waiting.items():
            over += [each for each in waiting if each.until_ms <= now.monotonic_ms]
            if still := [each for each in waiting if each.until_ms > now.monotonic_ms]:
                left[transactional_id] = still
        self._waiting = left
        if left:
            self._look_at(min(each.until_ms for waiting in left.values() for each in waiting))
        self._call(over)

    def _call(self, those: list[_Waiting]) -> None:
        self._count -= len(those)
        for each in those:
            each.call()
