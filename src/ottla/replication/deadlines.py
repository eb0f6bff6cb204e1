"""The end of each round: requests that waited for what it changed are answered; one timer stands for all time-outs.

A fault of ours in between must not leave clients without a timer, since nobody else may talk to the broker for hours:
all are looked at again soon after.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Final

from ottla import logs
from ottla.ports import Clock
from ottla.replication.waiters import Waiters

log_event = logs.logger("replication")

#: After a fault of ours.
_AGAIN_S: Final = 0.1


class Deadlines:
    def __init__(self, waiters: Waiters, clock: Clock) -> None:
        self._waiters = waiters
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._next: asyncio.Handle | None = None
        waiters.now_ms = clock.monotonic_ms
        waiters.on_left = self._settle_soon
        waiters.on_settle = self.settle

    def settle(self) -> None:
        """Answers those whose partitions have changed, and sees to it that the others are answered in time."""
        if not self._waiters:
            return
        try:
            now_ms = self._clock.monotonic_ms()
            self._waiters.settle(now_ms)
            deadline_ms = self._waiters.next_deadline_ms()
            if deadline_ms is not None and (self._timer is None or deadline_ms < self._timer_ms):
                self._arm(deadline_ms, now_ms)
        except Exception as fault:
            self._look_again(fault)

    def _settle_soon(self) -> None:
        """Some are left: the network has its turn before them."""
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._next = None
        self.settle()

    def _arm(self, deadline_ms: int, now_ms: int) -> None:
        self._disarm()
        delay_s = max(0, deadline_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)
        self._timer_ms = deadline_ms

    def _expire(self) -> None:
        self._timer = None
        try:
            now_ms = self._clock.monotonic_ms()
            self._waiters.expire(now_ms)
            deadline_ms = self._waiters.next_deadline_ms()
            if deadline_ms is not None:
                self._arm(deadline_ms, now_ms)
        except Exception as fault:
            self._look_again(fault)

    def _look_again(self, fault: Exception) -> None:
        log_event.warning_limited(
            "deadlines could not be kept for a fault of the broker, and are looked at again",
            error="".join(traceback.format_exception(fault)),
        )
        self.close()
        self._timer = asyncio.get_running_loop().call_later(_AGAIN_S, self._look)
        self._timer_ms = 0

    def _look(self) -> None:
        self._expire()
        self.settle()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self._disarm()
        if self._next is not None:
            self._next.cancel()
            self._next = None
