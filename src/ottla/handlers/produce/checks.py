"""Produce requests with batches that another process has to look into (docs/decisions/record-checks.md), whose log
takes nothing for a moment, while its copy in another directory takes over or its next segment is made, or of whose
transaction its coordinator is asked first.

The connection is busy meanwhile, so that what its client sent after it stays behind it. The request's other batches
are written as ever; those that were checked are staged in a round of their own, and then all are answered together.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from typing import Final

from ottla import logs
from ottla.config import LogConfig
from ottla.handlers.calls.checks import CheckFailed, Checks
from ottla.handlers.calls.peer import Peer
from ottla.handlers.produce.waiting import PartitionOutcome, ProduceWait
from ottla.handlers.routes import PRODUCE
from ottla.handlers.transactions.verifying import FirstBatch, ProducedTransaction
from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.replication.leader import Leader
from ottla.storage.errors import StorageFault
from ottla.storage.log.append import BatchVerdict, examine_whole
from ottla.storage.log.log import Log

log_event = logs.logger("handlers")

#: Requests of clients that have gone are still looked into and stored, up to so many with so many bytes; more are
#: dropped. A few bytes can be seconds of work, so bytes alone are no bound.
ABANDONED_MAX: Final = 8
#: All batches that wait to be looked into, as they came. One request may always wait; what comes beyond is answered
#: REQUEST_TIMED_OUT at once, which clients try again after.
WAITING_BYTES_MAX: Final = 256 * 1024 * 1024
ABANDONED_BYTES_MAX: Final = 16 * 1024 * 1024


class UncheckedBatch:
    """One batch that waits for its verdict, or has it."""

    __slots__ = (
        *("_leader", "config", "first", "is_looked_into", "outcome", "records", "rule", "tp", "transaction"),
        *("verdict",),
    )

    def __init__(
        self,
        tp: TopicPartition,
        outcome: PartitionOutcome,
        records: memoryview,
        leader: Leader,
        *,
        is_looked_into: bool,
        transaction: ProducedTransaction | None = None,
        first: FirstBatch | None = None,
        rule: ErrorCode | None = None,
    ) -> None:
        self.tp = tp
        #: What is to be asked about its transaction, once the log can be looked at; and what has been asked.
        self.transaction = transaction
        self.first = first
        #: For which it is refused once the coordinator has had its say.
        self.rule = rule
        #: Whether another process has to look into it. Otherwise it waits for its log only, and is staged as ever then.
        self.is_looked_into = is_looked_into
        #: Undecided until the batch is staged or refused.
        self.outcome = outcome
        #: A copy: the request's buffer goes back to the pool at the round's end.
        self.records = bytearray(records)
        self._leader = leader
        #: What the batch was judged by: under another configuration the verdict is worth nothing.
        self.config: LogConfig | None = None
        self.verdict: BatchVerdict | None = None

    @property
    def log(self) -> Log:
        """The one that the batch was meant for, wherever that is now."""
        return self._leader.present.log

    @property
    def changing_over(self) -> asyncio.Future[StorageFault | None] | None:
        """What it waits for where its log takes nothing just now."""
        return self._leader.present.changing_over

    @property
    def coordinator_answers(self) -> asyncio.Future[ErrorCode] | None:
        """Where its transaction's coordinator was asked, and has not answered."""
        first = self.first
        return None if first is None or first.answer.done() else first.answer

    @property
    def is_judged(self) -> bool:
        return not self.is_looked_into or self.outcome.answer is not None or self.log.config == self.config

    @property
    def waits(self) -> bool:
        return self.coordinator_answers is not None or not self.is_judged or self.changing_over is not None

    def is_to_be_looked_into(self) -> None:
        self.is_looked_into = True


#: Stages the batches of a request that have their verdicts, and answers it; returns those that have to wait again.
Resume = Callable[[ProduceWait, list[UncheckedBatch]], list[UncheckedBatch]]


class ProduceChecks:
    def __init__(self, checks: Checks, clock: Clock, resume: Resume) -> None:
        self._checks = checks
        self._clock = clock
        self._resume = resume
        #: The requests that wait here: kept so that they are not collected, and can be ended at stop.
        self.tasks: dict[asyncio.Future[None], None] = {}
        #: How many requests of a connection wait here.
        self._held: dict[Peer, int] = {}
        self._waiting_bytes = 0
        self._abandoned = 0
        self._abandoned_bytes = 0

    def begin(self, peer: Peer, wait: ProduceWait, unchecked: list[UncheckedBatch]) -> None:
        """Has the batches looked into; the connection takes nothing more until then."""
        task = self.hold(peer, wait, unchecked)
        if task is None:
            return
        self._held[peer] = self._held.get(peer, 0) + 1
        task.add_done_callback(partial(self._go_on, peer))
        size = sum(len(each.records) for each in unchecked)
        # What clients leave behind here has a bound of its own, so that it is given up like a wait.
        peer.answer_later(partial(self._abandon, task, size), waits=True)

    def hold(self, peer: Peer, wait: ProduceWait, unchecked: list[UncheckedBatch]) -> asyncio.Future[None] | None:
        """The same where the connection waits already; None where there is no room, and the batches are refused."""
        size = sum(len(each.records) for each in unchecked)
        if self._waiting_bytes and self._waiting_bytes + size > WAITING_BYTES_MAX:
            for each in unchecked:
                each.outcome.fail(ErrorCode.REQUEST_TIMED_OUT, "too much waits to be looked at")
            return None
        self._waiting_bytes += size
        wait.unchecked = True
        task = asyncio.ensure_future(self._judge(peer, wait, unchecked))
        self.tasks[task] = None
        task.add_done_callback(partial(self._ended, peer, size))
        return task

    def _ended(self, peer: Peer, size: int, task: asyncio.Future[None]) -> None:
        self._waiting_bytes -= size
        del self.tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log_event.error("a request failed", api=PRODUCE, error="".join(traceback.format_exception(error)))
        if error is not None or task.cancelled():
            peer.abort()

    def _go_on(self, peer: Peer, _: asyncio.Future[None]) -> None:
        """A connection whose lane has brought several goes on behind the last of them."""
        self._held[peer] -= 1
        if not self._held[peer]:
            del self._held[peer]
            if not peer.closed:
                peer.finish()

    def _abandon(self, task: asyncio.Future[None], size: int) -> None:
        """The client has gone. It may have wanted no answer, so that its records are kept where that costs little."""
        if self._abandoned == ABANDONED_MAX or self._abandoned_bytes + size > ABANDONED_BYTES_MAX:
            task.cancel()
            return
        self._abandoned += 1
        self._abandoned_bytes += size
        task.add_done_callback(lambda _: self._forget(size))

    def _forget(self, size: int) -> None:
        self._abandoned -= 1
        self._abandoned_bytes -= size

    async def _judge(self, peer: Peer, wait: ProduceWait, unchecked: list[UncheckedBatch]) -> None:
        while unchecked:
            # Again where the topic's configuration has changed meanwhile, which takes a change of the tree each time.
            while waiting := [each for each in unchecked if each.waits]:
                for each in waiting:
                    if (answer := each.coordinator_answers) is not None:
                        await asyncio.wait([answer])
                    elif (changing_over := each.changing_over) is not None:
                        await asyncio.wait([changing_over])
                        if changing_over.done() and changing_over.result() is not None:
                            each.outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)
                    elif not each.is_judged:
                        await self._look_into(peer, each)
            unchecked = self._resume(wait, unchecked)

    async def _look_into(self, peer: Peer, each: UncheckedBatch) -> None:
        config = each.log.config
        try:
            each.verdict = await self._checks.run(
                peer, examine_whole, partial(_arguments, each.records, config, self._clock.wall_ms())
            )
        except CheckFailed:
            each.outcome.fail(ErrorCode.REQUEST_TIMED_OUT, "the records could not be looked at")
        each.config = config


def _arguments(*values: object) -> tuple[object, ...]:
    return values
