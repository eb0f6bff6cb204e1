"""Batches with too much in them for the loop, looked into by another process: for Produce and for ListOffsets.

There are two such processes. The first looks at `QUICK` of a batch and no further, so that each turn there is short; a
batch with more in it goes on to the second, where a turn may take seconds. At both, connections take turns by the time
that they have used (`fair_turns.py`): those who send bombs wait for one another, and for the honest ones.

What waits for its turn holds no more than its request: a batch that is to be read from a log is read when its turn has
come. What has waited too long is answered so in place of its turn: its client has given up by then, and those behind
it have not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final, TypeVar

from ottla import logs
from ottla.handlers.calls.fair_turns import FairTurns, TurnOverdue
from ottla.ports import Clock, Workers
from ottla.records.errors import RecordError
from ottla.records.walk import WalkAllowance, WalkTooLong

T = TypeVar("T")

log_event = logs.logger("handlers")


#: What waited for so long gets no turn any more. Clients wait 30 s for an answer by default.
WAIT_MS_MAX: Final = 30_000
#: What one turn at the first process looks at: an eighth of a second, so that sixteen new connections with a bomb each
#: keep others waiting for two seconds, once; from then on they stand behind.
QUICK: Final = WalkAllowance(records=64_000, bytes=8 * 1024 * 1024)


class CheckFailed(Exception):
    """Its turn came too late, or the process died of it, twice. The client is to try again: nothing is known."""


def ready() -> None:
    """The first work of a process: its start, and the loading of what the rest needs, are nobody's time."""
    for name in (
        "ottla.records.compression",
        "ottla.storage.log.append",
        "ottla.storage.log.indexes.time_lookup",
        "zstandard",
    ):
        import_module(name)


class Checks:
    def __init__(self, workers: Workers, clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self._quick = FairTurns(clock)
        self._long = FairTurns(clock)
        self._unready = {self._quick, self._long}

    async def run(self, owner: object, work: Callable[..., T], arguments: Callable[[], tuple[object, ...]]) -> T:
        """The result of `work`, or the RecordError that it raises; or raises CheckFailed. `owner` is a connection.

        `work` is a module-level function. Its last argument is how much it may look at, or None: rather than go beyond
        that it raises WalkTooLong. What `arguments` raises is raised.
        """
        deadline_ms = self._clock.monotonic_ms() + WAIT_MS_MAX
        try:
            return await self._in_turn(self._quick, self._workers.check, owner, deadline_ms, work, arguments, QUICK)
        except WalkTooLong:
            pass
        return await self._in_turn(self._long, self._workers.check_long, owner, deadline_ms, work, arguments, None)

    async def _in_turn(
        self,
        turns: FairTurns,
        start: Callable[..., asyncio.Future[T]],
        owner: object,
        deadline_ms: int,
        work: Callable[..., T],
        arguments: Callable[[], tuple[object, ...]],
        within: WalkAllowance | None,
    ) -> T:
        try:
            turn = await turns.take(owner, deadline_ms)
        except TurnOverdue:
            raise CheckFailed from None
        try:
            if turns in self._unready:
                self._unready.discard(turns)
                turn.work = start(ready)
                with suppress(Exception):  # the work itself finds out
                    await asyncio.shield(turn.work)
                turn.begin()
            values = arguments()
            try:
                turn.work = start(work, *values, within)
                return await asyncio.shield(turn.work)
            except (RecordError, WalkTooLong):
                raise
            except Exception as error:  # whatever the process died of, or could not do
                log_event.warning_limited("a batch is looked into again", reason=error)
            try:
                turn.work = start(work, *values, within)
                return await asyncio.shield(turn.work)
            except (RecordError, WalkTooLong):
                raise
            except Exception as error:
                log_event.error("a batch could not be looked into", reason=error)
                raise CheckFailed from error
        finally:
            turn.end()
