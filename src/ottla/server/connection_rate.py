"""How many connections a second are accepted: `max.connection.creation.rate`, for the broker and for a listener.

A bucket that fills with one connection each 1/rate of a second and holds one second's worth. One that finds it empty is
not refused but waits in the system's backlog, as with Kafka. A rate of 0 counts as one connection a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Kafka's default, which is no limit.
UNLIMITED: Final = 2**31 - 1


class ConnectionRate:
    __slots__ = ("_full_ms", "_interval_ms", "_next_ms")

    def __init__(self, a_second: int) -> None:
        self._interval_ms = 1000 / max(a_second, 1)
        #: When the bucket has the next connection; each that is taken moves it on by an interval.
        self._next_ms = 0.0
        self._full_ms = 1000 - self._interval_ms

    def taken(self, now_ms: float) -> float:
        """Notes a connection; returns for how long no other is to be accepted."""
        self._next_ms = max(self._next_ms, now_ms - self._full_ms) + self._interval_ms
        return max(0.0, self._next_ms - now_ms)


class ConnectionRates:
    """Those of a broker: one for all of its listeners but the protected one, and those that listeners have."""

    def __init__(self, broker: int, by_listener: Mapping[str, int], protected: str | None) -> None:
        #: Brokers talk to each other on this listener, which clients are not to hold up.
        self._protected = protected
        self._broker = _limited(broker)
        self._by_listener = {name: rate for name, limit in by_listener.items() if (rate := _limited(limit)) is not None}

    def taken(self, listener: str, now_ms: float) -> float:
        """Notes a connection; returns for how long the listener is to accept no other."""
        wait_ms = 0.0
        if self._broker is not None and listener != self._protected:
            wait_ms = self._broker.taken(now_ms)
        own = self._by_listener.get(listener)
        return wait_ms if own is None else max(wait_ms, own.taken(now_ms))

    @property
    def unlimited(self) -> bool:
        return self._broker is None and not self._by_listener


def _limited(a_second: int) -> ConnectionRate | None:
    return None if a_second == UNLIMITED else ConnectionRate(a_second)
