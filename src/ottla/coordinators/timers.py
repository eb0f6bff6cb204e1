"""Deadlines of one coordinator: a heap of moments, each with a key, so that it can be moved and taken back.

Sessions are put off with every heartbeat and almost never end. Putting off therefore costs no work in the heap: the
entry keeps its old place, and when its turn comes too early it is put back at the time that holds by then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Final

from ottla.coordinators.caller import Now
from ottla.steps import Steps

#: Timers that go off without a pause: a member that is taken out costs some ten microseconds, in a large group more.
DUE_AT_ONCE_MAX: Final = 32

#: Entries that are looked at without a pause: of ten thousand sessions that were put off none is due.
LOOKS_AT_ONCE_MAX: Final = 512
#: Timers that are let go of in one step.
TIMERS_A_STEP: Final = 64

#: Called once when its time has come; by then it is no longer set, and may set itself again.
Due = Callable[[Now], None]


class _Deadline:
    __slots__ = ("due", "key", "queued_ms", "when_ms")

    def __init__(self, key: Hashable, when_ms: int, due: Due) -> None:
        self.key = key
        #: When it is due. queued_ms <= when_ms, unless it was brought forward and has two entries in the heap.
        self.when_ms = when_ms
        #: Where its valid entry stands in the heap; any other entry is a leftover.
        self.queued_ms = when_ms
        self.due = due


class Timers:
    """At most one timer a key. Moments are monotonic milliseconds."""

    __slots__ = ("_heap", "_number", "_timers", "on_sooner")

    def __init__(self) -> None:
        #: Called with a moment that comes before all others, so that nobody has to ask after each request.
        self.on_sooner: Callable[[int], None] = _nobody_waits
        self._timers: dict[Hashable, _Deadline] = {}
        # The number makes entries comparable, and keeps the order in which equal moments were set.
        self._heap: list[tuple[int, int, _Deadline]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def set(self, key: Hashable, when_ms: int, due: Due) -> None:
        """Sets or moves the timer of this key."""
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = _Deadline(key, when_ms, due)
            self._push(timer)
            return
        timer.due = due
        timer.when_ms = when_ms
        if when_ms < timer.queued_ms:
            self._push(timer)

    def put_off(self, key: Hashable, when_ms: int) -> None:
        """Moves the timer of this key, if it is set, and leaves what it calls."""
        timer = self._timers.get(key)
        if timer is not None:
            timer.when_ms = when_ms
            if when_ms < timer.queued_ms:
                self._push(timer)

    def when_ms(self, key: Hashable) -> int | None:
        timer = self._timers.get(key)
        return None if timer is None else timer.when_ms

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.queued_ms = -1
            # Cancelled entries wait in the heap for their moment; half of it may be such, but no more.
            if len(self._heap) > 64 and len(self._heap) > 2 * len(self._timers):
                self._rebuild()

    def clear(self) -> Steps[None]:
        """None goes off any more. What they held is let go of step by step."""
        timers, self._timers = self._timers, {}
        heap, self._heap = self._heap, []
        return _let_go(timers, heap)

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do: not after the first timer is due, maybe before."""
        return self._heap[0][0] if self._heap else None

    def expire(self, now: Now, at_most: int = DUE_AT_ONCE_MAX) -> int:
        """Calls what is due, in order of their moments, and returns how many it has called.

        What these set for the same moment is due the next time, and so is what would be too many at once: a caller that
        looks at `next_deadline_ms` comes back for them.
        """
        called = looks = 0
        heap, now_ms, last_number = self._heap, now.monotonic_ms, self._number
        set_meanwhile = []
        try:
            while heap and heap[0][0] <= now_ms and called < at_most and looks < LOOKS_AT_ONCE_MAX:
                looks += 1
                entry = heapq.heappop(heap)
                queued_ms, number, timer = entry
                if timer.queued_ms != queued_ms:
                    continue
                if timer.when_ms > now_ms:
                    self._push(timer)
                    continue
                if number > last_number:
                    set_meanwhile.append(entry)
                    continue
                timer.queued_ms = -1
                del self._timers[timer.key]
                timer.due(now)
                called += 1
                heap = self._heap
        finally:
            for entry in set_meanwhile:
                heapq.heappush(self._heap, entry)
        return called

    def _push(self, timer: _Deadline) -> None:
        timer.queued_ms = timer.when_ms
        self._number += 1
        entry = (timer.when_ms, self._number, timer)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self.on_sooner(timer.when_ms)

    def _rebuild(self) -> None:
        self._heap = []
        for timer in self._timers.values():
            timer.queued_ms = timer.when_ms
            self._number += 1
            self._heap.append((timer.when_ms, self._number, timer))
        heapq.heapify(self._heap)


def _let_go(timers: dict[Hashable, _Deadline], heap: list[tuple[int, int, _Deadline]]) -> Steps[None]:
    while timers or heap:
        del heap[-TIMERS_A_STEP:]
        for _ in range(min(len(timers), TIMERS_A_STEP)):
            timers.popitem()
        yield


def _nobody_waits(_: int) -> None:
    """Before somebody does, and in tests."""
