"""Recognised requests whose answers wait for replicas or for the disk: one waiter a leader holds them all.

They stand in the order of their offsets, so that those behind the high watermark end where the line is cut off, and a
change of the partition costs one look however many wait. Those with acks=1 wait for this broker's disk only, in a line
of their own.

    hold ──▶ all, leader ──the watermark or the disk has passed──▶ answered from the template
                         ├─ not enough replicas any more ────────▶ NOT_ENOUGH_REPLICAS_AFTER_APPEND (acks=all)
                         ├─ the leader resigns ──────────────────▶ its error, all of them
                         └─ its time is over ────────────────────▶ REQUEST_TIMED_OUT

A leader that goes on with another log, or in another leader epoch, goes on with what is held. Each answer has its place
(`Slot`) in its connection's order from the beginning.

What lanes have collected in a round is held as it is (`HeldRun`), without a step in the interpreter for each request,
and answered by the lanes. It is taken apart, and its requests get places of their own in the line, before one of its
connections is served in another way (`take_out`), and where anything else than an acknowledgement is to be answered.
"""

from __future__ import annotations

import traceback
from bisect import insort
from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla import logs
from ottla.handlers.calls.peer import Peer, Slot
from ottla.handlers.produce.answer import PartitionAnswer, encode_answer
from ottla.handlers.produce.memo import ProduceMemo
from ottla.handlers.produce.waiting import ACKS_ALL
from ottla.handlers.routes import PRODUCE
from ottla.model import ErrorCode
from ottla.replication.leader import Leader
from ottla.replication.waiters import Waiters

if TYPE_CHECKING:
    from ottla.native.lane import HeldRun, Lane

log_event = logs.logger("handlers")

#: Answers that are made in one go: a millisecond. The others have their turn behind those who wait for other things.
ANSWERED_AT_ONCE: Final = 512


class HeldProduce(NamedTuple):
    last: int
    peer: Peer
    slot: Slot
    memo: ProduceMemo
    correlation: int
    first: int
    append_time_ms: int
    began_ms: int
    deadline_ms: int


_BY_LAST: Final = attrgetter("last")


class WaitingRun(NamedTuple):
    """Requests that lanes have collected in one round."""

    requests: HeldRun
    began_ms: int
    #: The first of them.
    deadline_ms: int


class HeldProduces:
    """Implements `Waiter` for one leader."""

    __slots__ = (
        *("_answered", "_leader", "_of_all", "_of_leader", "_parked_until_ms", "_runs_of_all", "_runs_of_leader"),
        "_waiters",
    )

    def __init__(self, leader: Leader, waiters: Waiters, answered: Callable[[int, int, bool], None]) -> None:
        self._leader = leader
        self._waiters = waiters
        #: Called with how many were answered, when their round began, and whether that was an error.
        self._answered = answered
        self._of_all: deque[HeldProduce] = deque()
        self._of_leader: deque[HeldProduce] = deque()
        #: What of both is held by lanes. A connection has nothing here and in a line at once.
        self._runs_of_all: deque[WaitingRun] = deque()
        self._runs_of_leader: deque[WaitingRun] = deque()
        #: When the waiters are to call `expire`; None while they do not know of it.
        self._parked_until_ms: int | None = None

    def __len__(self) -> int:
        in_runs = sum(len(run.requests) for runs in (self._runs_of_all, self._runs_of_leader) for run in runs)
        return len(self._of_all) + len(self._of_leader) + in_runs

    @property
    def is_empty(self) -> bool:
        return not (self._of_all or self._of_leader or self._runs_of_all or self._runs_of_leader)

    def hold(self, held: HeldProduce) -> None:
        """Its place is held already."""
        _stand(self._of_all if held.memo.acks == ACKS_ALL else self._of_leader, held)
        self._is_due(held.deadline_ms)

    def hold_run(self, run: WaitingRun, *, of_all: bool) -> None:
        """What the lanes of one run have collected; `of_all`: with acks=all."""
        (self._runs_of_all if of_all else self._runs_of_leader).append(run)
        self._is_due(run.deadline_ms)

    def _is_due(self, deadline_ms: int) -> None:
        until_ms = self._parked_until_ms
        if until_ms is None:
            self._park(deadline_ms)
        elif deadline_ms < until_ms:
            self._parked_until_ms = deadline_ms
            self._waiters.wait_until(self, deadline_ms)

    def _park(self, until_ms: int) -> None:
        self._parked_until_ms = until_ms
        self._waiters.park(self, (self._leader.tp,), until_ms)

    # -- as a waiter

    def try_complete(self, now_ms: int) -> bool:
        if not self._present().active:
            self._take_apart()
            self._end(self._leader.end_error)
        else:
            self._release()
        if not self.is_empty:
            return False
        self._parked_until_ms = None
        return True

    def expire(self, now_ms: int) -> None:
        self._parked_until_ms = None
        # A leader that has resigned has its own error for all of them, those that are left as well.
        if not self.try_complete(now_ms) and self._leader.active:
            if any(run.deadline_ms <= now_ms for runs in (self._runs_of_all, self._runs_of_leader) for run in runs):
                self._take_apart()
            committed = self._leader.high_watermark
            self._expire(self._of_all, committed, now_ms)
            self._expire(self._of_leader, max(committed, self._leader.durable_end), now_ms)
        if not self.is_empty:
            every = (self._of_all, self._of_leader, self._runs_of_all, self._runs_of_leader)
            self._park(min(held.deadline_ms for line in every for held in line))
            self._waiters.wake(self)

    def failed(self, fault: Exception) -> None:
        """A client that is held has to ask again."""
        self._take_apart()
        for line in (self._of_all, self._of_leader):
            while line:
                line.popleft().peer.abort()
        self._parked_until_ms = None

    # -- ends

    def _present(self) -> Leader:
        leader = self._leader
        if not leader.active:
            # Where this broker leads on with the same records, a client that tried again would write them twice.
            leader = self._leader = leader.present
            if leader.active and leader.held is None:
                leader.held = self
        return leader

    def _release(self) -> None:
        leader = self._leader
        committed = leader.high_watermark
        log_start = leader.log.places.start_offset
        error = ErrorCode.NONE if leader.had_enough_replicas() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        if self._runs_of_all:
            if error == ErrorCode.NONE:
                self._answer_runs(self._runs_of_all, committed, log_start)
            else:
                self._take_apart()
        if self._of_all:
            self._cut(self._of_all, committed, log_start, error)
        if self._runs_of_leader:
            self._answer_runs(self._runs_of_leader, max(committed, leader.durable_end), log_start)
        if self._of_leader:
            self._cut(self._of_leader, max(committed, leader.durable_end), log_start, ErrorCode.NONE)

    def _answer_runs(self, runs: deque[WaitingRun], end: int, log_start: int) -> None:
        left = ANSWERED_AT_ONCE
        while runs:
            run = runs[0]
            count, unsent = run.requests.answer(end, log_start, left)
            for (peer, _), rest in unsent:
                peer.left_over(rest)
            left -= count
            if count:
                self._answered(count, run.began_ms, False)
            if left and len(run.requests):
                return
            if not len(run.requests):
                runs.popleft()
            if not left:
                self._waiters.wake(self)
                return

    # -- requests of lanes that need places of their own

    def take_out(self, lane: Lane) -> None:
        self._take_apart(lane)

    def _take_apart(self, lane: Lane | None = None) -> None:
        """Those of a lane, or of all."""
        for runs, line in ((self._runs_of_all, self._of_all), (self._runs_of_leader, self._of_leader)):
            for run in runs:
                for (peer, memo), correlation, first, last in run.requests.take(lane):
                    if peer.closed:
                        continue
                    slot = Slot()
                    peer.hold(slot)
                    deadline_ms = run.began_ms + max(0, memo.timeout_ms)
                    taken = HeldProduce(last, peer, slot, memo, correlation, first, -1, run.began_ms, deadline_ms)
                    _stand(line, taken)
            if lane is None:
                runs.clear()

    def _cut(self, line: deque[HeldProduce], end: int, log_start: int, error: ErrorCode) -> None:
        """Answers those that end below `end`."""
        left, count, began_ms = ANSWERED_AT_ONCE, 0, -1
        while line and line[0].last < end:
            if not left:
                self._waiters.wake(self)
                break
            left -= 1
            held = line.popleft()
            if held.began_ms != began_ms:
                if count:
                    self._answered(count, began_ms, error != ErrorCode.NONE)
                count, began_ms = 0, held.began_ms
            count += 1
            _, peer, slot, memo, correlation, first, append_time_ms, _, _ = held
            if peer.closed:
                continue
            try:
                if error == ErrorCode.NONE:
                    peer.fill(slot, memo.fill(correlation, first, append_time_ms, log_start))
                else:
                    _refuse(held, error)
            except Exception as fault:
                _end(peer, fault)
        if count:
            self._answered(count, began_ms, error != ErrorCode.NONE)

    def _end(self, error: ErrorCode) -> None:
        """The leader answers for nothing any more."""
        for _ in range(ANSWERED_AT_ONCE):
            line = self._of_all or self._of_leader
            if not line:
                return
            self._fail(line.popleft(), error)
        self._waiters.wake(self)

    def _expire(self, line: deque[HeldProduce], end: int, now_ms: int) -> None:
        """But for what ends below `end`, which has its answer in one of the next turns."""
        kept = [held for held in line if held.deadline_ms > now_ms or held.last < end]
        late = [held for held in line if held.deadline_ms <= now_ms and held.last >= end]
        line.clear()
        line.extend(kept)
        for held in late:
            self._fail(held, ErrorCode.REQUEST_TIMED_OUT)

    def _fail(self, held: HeldProduce, error: ErrorCode) -> None:
        self._answered(1, held.began_ms, True)
        if held.peer.closed:
            return
        try:
            _refuse(held, error)
        except Exception as fault:
            _end(held.peer, fault)


def _stand(line: deque[HeldProduce], held: HeldProduce) -> None:
    """In the order of the offsets: what is a duplicate ends below some that came before it."""
    if not line or line[-1].last <= held.last:
        line.append(held)
    else:
        insort(line, held, key=_BY_LAST)


def _refuse(held: HeldProduce, error: ErrorCode) -> None:
    memo = held.memo
    answer = PartitionAnswer(memo.leader.tp.partition, error)
    held.peer.fill(held.slot, encode_answer(memo.version, held.correlation, [(memo.topic, [answer])], 0))


def _end(peer: Peer, fault: Exception) -> None:
    log_event.error("a request failed", api=PRODUCE, error="".join(traceback.format_exception(fault)))
    peer.abort()
