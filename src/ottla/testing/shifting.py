"""Time that a test moves: a broker's clock and the timers of its loop run ahead of this machine's by the same shift.

All that a broker does later is an asyncio timer, and what it decides by time it reads from its clock port. With both
ahead by eight days, what is due in eight days is due now, and nothing in the broker knows of it. The loop is the
broker's own: in a loop that it shared with its clients, their time-outs would be due as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Final

from ottla.durations import DURATION_MS_MAX, duration_ms
from ottla.ports.clock import Clock

#: The first and the last step of an advance: what follows from what within a tenth of a second comes at once.
_STEP_MS_MIN: Final = 100


class Shift:
    """How far a broker's time is ahead. Stays over restarts: time does not go back."""

    __slots__ = ("milliseconds",)

    def __init__(self) -> None:
        self.milliseconds = 0


class ShiftedClock:
    __slots__ = ("_clock", "_shift")

    def __init__(self, clock: Clock, shift: Shift) -> None:
        self._clock = clock
        self._shift = shift

    def wall_ms(self) -> int:
        return self._clock.wall_ms() + self._shift.milliseconds

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms() + self._shift.milliseconds


class ShiftedLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop; its timers are due by the shifted time."""

    def __init__(self, shift: Shift) -> None:
        self.shift = shift
        super().__init__()

    def time(self) -> float:
        return super().time() + self.shift.milliseconds / 1000


async def advance(by: str | timedelta, settled: Callable[[], Awaitable[None]]) -> None:
    """Moves the running loop's time, in steps, and lets what is due in each come to its end before the next."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ShiftedLoop), "this loop is not the broker's own"
    for step_ms in steps_ms(milliseconds_of(by)):
        loop.shift.milliseconds += step_ms
        await settled()


def milliseconds_of(by: str | timedelta) -> int:
    """Raises ValueError for what is no duration, or goes back."""
    if isinstance(by, str):
        return duration_ms(by)
    if not isinstance(by, timedelta):
        raise ValueError(f'time is moved by "8d", "90m" or a timedelta, not by {by!r}')  # noqa: TRY004 - as of all else here
    milliseconds = round(by / timedelta(milliseconds=1))
    if milliseconds < 0:
        raise ValueError(f"time does not go back: {by}")
    if milliseconds > DURATION_MS_MAX:
        raise ValueError(f"{by} is more than a thousand years")
    return milliseconds


def steps_ms(total_ms: int) -> Iterator[int]:
    """Small ones, then larger and larger, then smaller again.

    One jump of eight days would end a session and look for expired offsets in the same moment: those of a group that
    was left empty a week ago by the broker's time, and just now by what it knows. With steps that double, what follows
    from something finds it about as old as it would be, and 8 days take forty steps instead of a million timers.
    """
    rising: list[int] = []
    step, rest = _STEP_MS_MIN, total_ms
    while rest >= 2 * step:
        rising.append(step)
        rest -= 2 * step
        step *= 2
    yield from rising
    if rest:
        yield rest
    yield from reversed(rising)
