"""How long the event loop was not there when it should have been: for a long step of its own, a blocking call, a
machine without room for the process, or SIGSTOP.

A loop that stands still sends no ping, and a session with the tree ends after 1.5 s of that. So the longest stall says
how near a broker came to a false alarm.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.metrics import Registry

#: How often it is looked at: ten timers a second, some 0.05 % of a core.
LOOK_S: Final = 0.1


class LoopStalls:
    """Looks from `start` to `stop`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        #: Since the start, in seconds: the longest, and all of them together.
        self.longest = 0.0
        self.total = 0.0

    def start(self) -> None:
        self._due = self._loop.time() + LOOK_S
        self._timer = self._loop.call_at(self._due, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        late = max(0.0, self._loop.time() - self._due)
        self.longest = max(self.longest, late)
        self.total += late
        self.start()


def register_loop_stalls(registry: Registry, stalls: LoopStalls) -> None:
    registry.gauge(
        "ottla_loop_stall_seconds_max",
        "The longest that the event loop did not run when it was due, since the start.",
        lambda: stalls.longest,
    )
    registry.gauges(
        "ottla_loop_stall_seconds_total",
        "How long the event loop did not run when it was due, in all.",
        (),
        lambda: [((), stalls.total)],
        type_="counter",
    )
