"""A round: what many connections want written is staged, written once a partition, and answered.

    begin -> (requests are served, and stage) -> stage -> write -> answer -> the next round

Participants are asked in the order of their ranks, and then in that in which they joined, each step of all of them
before the next step of any. Handlers and coordinators take part in the same way; the logs are written by `Writes`,
which alone writes. A step costs each round a call, and for a lone client that is each request: a participant
that may never have anything to do joins when it first has.

    begin    a new round; nothing is staged yet
    stage    hands over what was gathered while requests were served
    write    one write a partition; the high watermarks move
    answer   whatever was written is acknowledged, what was not is refused, and then waiting requests have their turn
    failed   a step of this participant raised: it gives up what it has in this round

The round is a boundary for our own faults. One in a step ends that participant's part of this round and nothing else;
one in writing a log fails what was staged for that log; and where a participant cannot even give up, nobody knows what
it holds any more, and the broker stops with the reason. Nothing that was staged and not written is ever acknowledged.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import ClassVar

from ottla import logs
from ottla.ports import Clock
from ottla.replication.writes import Writes

log_event = logs.logger("replication")

Step = Callable[[], None]


class Participant:
    """Takes part in rounds; what it does not override costs nothing."""

    __slots__ = ()

    #: Those of a lower one are asked first.
    rank: ClassVar[int] = 2

    def begin(self) -> None: ...

    def stage(self) -> None: ...

    def answer(self) -> None: ...

    def failed(self, fault: Exception) -> None:
        """Gives up what it has in this round: the requests in it end without being acknowledged."""


class Round:
    def __init__(self, writes: Writes, settle: Step, clock: Clock, on_broken: Callable[[str], None]) -> None:
        self._writes = writes
        #: Answers the requests that waited for what a round has changed.
        self._settle = settle
        self._clock = clock
        #: Called where the broker cannot go on, with the reason.
        self._on_broken = on_broken
        self._participants: list[Participant] = []
        self._begins: list[tuple[Step, Participant]] = []
        self._stages: list[tuple[Step, Participant]] = []
        self._answers: list[tuple[Step, Participant]] = []
        #: When this round began: for what is timed, and for what records are compared with.
        self.began_ms = 0
        self.wall_ms = 0
        #: Between `begin` and `end`: what is gathered now is staged by this round.
        self.is_open = False
        self._wake: asyncio.Handle | None = None

    def join(self, participant: Participant) -> None:
        """From the next step on; to join again changes nothing."""
        if participant in self._participants:
            return
        self._participants = sorted([*self._participants, participant], key=lambda each: each.rank)
        # Lists of their own: one of the present may be gone through just now.
        self._begins, self._stages, self._answers = map(self._steps, ("begin", "stage", "answer"))

    def _steps(self, name: str) -> list[tuple[Step, Participant]]:
        return [
            (getattr(each, name), each)
            for each in self._participants
            if getattr(type(each), name) is not getattr(Participant, name)
        ]

    # -- one round

    def begin(self) -> None:
        self.began_ms = self._clock.monotonic_ms()
        self.wall_ms = self._clock.wall_ms()
        self.is_open = True
        for step, participant in self._begins:
            try:
                step()
            except Exception as fault:
                self._failed(participant, fault)

    def end(self) -> None:
        """Writes what the round staged, and makes the answers that waited for it."""
        self.is_open = False
        for step, participant in self._stages:
            try:
                step()
            except Exception as fault:
                self._failed(participant, fault)
        try:
            self._writes.write(self.wall_ms)
        except Exception as fault:
            self._break(f"a round could not be written, nor taken back: {fault!r}")
        for step, participant in self._answers:
            try:
                step()
            except Exception as fault:
                self._failed(participant, fault)
        self._writes.answered()
        self._settle()

    def within(self, stage: Step) -> None:
        """Stages in the round that is open, or else in one of its own between two rounds of the network."""
        if self.is_open:
            stage()
            return
        self.begin()
        try:
            stage()
        finally:
            self.end()

    def soon(self) -> None:
        """Something was gathered outside of a round: one follows in this turn of the loop."""
        if not self.is_open and self._wake is None:
            self._wake = asyncio.get_running_loop().call_soon(self._run)

    def stop(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _run(self) -> None:
        self._wake = None
        self.begin()
        self.end()

    # -- faults

    def _failed(self, participant: Participant, fault: Exception) -> None:
        log_event.error(
            "a step of a round failed",
            key=type(participant).__name__,
            participant=type(participant).__name__,
            error="".join(traceback.format_exception(fault)),
        )
        try:
            participant.failed(fault)
        except Exception as second:
            self._break(f"{type(participant).__name__} could not give up a round after {fault!r}: {second!r}")

    def _break(self, reason: str) -> None:
        """Nobody knows any more what is staged: none of it is written, and the broker stops."""
        self._writes.discard()
        self._on_broken(reason)
