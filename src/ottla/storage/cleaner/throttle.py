"""log.cleaner.io.max.bytes.per.second: reads and writes together stay below a rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: The rate is kept over spans of this length: shorter ones would sleep for each read.
_SPAN_S: Final = 0.3
#: A disk that could not keep up is not owed more than this much of the rate at once.
_DEBT_S_MAX: Final = 1.0


class Throttle:
    """Counts bytes, and sleeps when they came too fast. The clock and the sleep are given."""

    __slots__ = ("_begun_s", "_bytes", "_bytes_per_second", "_monotonic_s", "_sleep")

    def __init__(
        self, bytes_per_second: float, monotonic_s: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._bytes_per_second = max(bytes_per_second, 1.0)
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._begun_s = monotonic_s()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        elapsed_s = self._monotonic_s() - self._begun_s
        ahead_s = self._bytes / self._bytes_per_second - elapsed_s
        if ahead_s > _SPAN_S:
            self._sleep(ahead_s)
        elif ahead_s < -_DEBT_S_MAX:
            # Between two steps nothing was done: that time is not made up for.
            self._begun_s += elapsed_s
            self._bytes = 0
