"""What every benchmark is: a name, measures, goals, and a way to take figures from each kind of server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from bench import machine
from bench.results import Figures, Results
from bench.servers import NULL, Places, Running, started

LOOK_SECONDS = 1.0
#: An idle Apache Kafka uses a few hundredths of a core.
QUIET_SHARE_MAX = 0.1


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to measure. The short one is for developers; its figures are for no document."""

    rounds: int = 3
    seconds: float = 4.0
    #: Java compiles what it has seen often; before that it is another, slower program.
    warm_seconds: float = 8.0
    #: Of scenarios that start servers over and over.
    restarts: int = 3
    kafka_restarts: int = 1
    idle_seconds: float = 10.0
    librdkafka_records: int = 2_000_000
    client_records: int = 500_000

    @staticmethod
    def quick() -> Effort:
        return Effort(
            rounds=1,
            seconds=1.5,
            warm_seconds=2.0,
            restarts=1,
            idle_seconds=3.0,
            librdkafka_records=400_000,
            client_records=200_000,
        )


@dataclass(kw_only=True)
class Context:
    """One run: its places, its servers, and what it prints while it works."""

    places: Places
    kinds: Sequence[str]
    effort: Effort
    _stack: ExitStack = field(default_factory=ExitStack)
    _shared: dict[str, Running] = field(default_factory=dict)

    #: The most that others used of this machine in the pauses between the benchmarks.
    disturbance: float = 0.0

    def look_around(self) -> None:
        """Whether this machine is quiet: no median helps against a neighbour who stays."""
        found = machine.busy_share(LOOK_SECONDS)
        self.disturbance = max(self.disturbance, found)
        if found > QUIET_SHARE_MAX:
            self.tell(f"  others use {found:.0%} of this machine: what follows measures them too")

    def tell(self, what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    def shared(self, kind: str, null_fetch_bytes: int = 0) -> Running:
        """A server that lives on until ``stop_shared``. The null server starts anew: its answers differ."""
        if kind == NULL:
            name = f"shared-null-{null_fetch_bytes}"
            running = self._shared.get(name)
            if running is None:
                fresh = started(kind, name, self.places, null_fetch_bytes=null_fetch_bytes)
                running = self._shared[name] = self._stack.enter_context(fresh)
            return running
        if kind not in self._shared:
            self._shared[kind] = self._stack.enter_context(started(kind, f"shared-{kind}", self.places))
        return self._shared[kind]

    def stop_shared(self) -> None:
        self._stack.close()
        self._shared.clear()

    def measure_in_turns(
        self,
        results: Results,
        kinds: Sequence[str],
        take: Callable[[str], Figures],
        rounds: Callable[[str], int],
        *,
        warm: Callable[[str], object] | None = None,
    ) -> None:
        """Pairs, interleaved: in each round one after the other, and every second round in the other order. `warm` is
        called for each server once, before its first figures.

        A server that fails is left out from then on, and the table says so.
        """
        cold = set(kinds if warm is not None else ())
        for number in range(max(rounds(kind) for kind in kinds)):
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                if number >= rounds(kind) or kind in results.failures:
                    continue
                try:
                    if warm is not None and kind in cold:
                        cold.remove(kind)
                        warm(kind)
                    figures = take(kind)
                except Exception as failed:
                    results.failures[kind] = f"{type(failed).__name__}: {failed}"
                    self.tell(f"  {kind}: {type(failed).__name__}: {failed}")
                    continue
                results.add(kind, figures)
                shown = ", ".join(f"{name} {value:,.4g}" for name, value in figures.items())
                self.tell(f"  round {number + 1} {kind}: {shown}")


class Scenario(Protocol):
    """What the table has a few rows of."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def run(self, context: Context) -> Results: ...
