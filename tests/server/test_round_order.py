"""A round that is over before all were served: the next one begins with those who have waited longest."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace
from typing import Any

from ottla.ports.network import READABLE, WRITABLE
from ottla.server.round_bounds import ROUND_MS
from ottla.server.rounds import Rounds


class SlowWork:
    """The clock, and the dispatcher; each look at the clock finds a whole round's time gone."""

    hot = MappingProxyType[int, Any]({})
    patient = frozenset[int]()
    began_ms = 0

    def __init__(self) -> None:
        self.ms = 0

    @property
    def round(self) -> SlowWork:
        return self

    def wall_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        self.ms += 2 * ROUND_MS
        return self.ms

    def begin(self) -> None:
        self.began_ms = self.monotonic_ms()

    def end(self) -> None: ...


class ClosedConnection(SimpleNamespace):
    __hash__ = object.__hash__


def test_those_who_always_have_something_do_not_hold_up_the_others() -> None:
    work: Any = SlowWork()
    rounds = Rounds(work, 1 << 20, lambda _: None)
    rounds.open(work)
    listener = SimpleNamespace(control=False)
    # The system names those that were not drained in the same order again.
    peers: Any = [ClosedConnection(closed=True, last_active_ms=0, accepted_ms=0, listener=listener) for _ in range(20)]
    # There is time for one only in each round, and half of the turns are of those that had one already.
    for _ in range(2 * len(peers)):
        rounds.run([(peer, READABLE | WRITABLE) for peer in peers])
    assert all(peer.last_active_ms for peer in peers)
