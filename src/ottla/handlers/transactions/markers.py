"""Markers in the partitions that this broker leads: each ends one producer's transaction in one partition.

    write ─▶ staged at the leader ─▶ written ─▶ committed, as with acks=all: its code is NONE
               │  ▲                    └ lost, or the leader resigns: an error, and the coordinator sends it again
               └──┘ while its log takes nothing

The group coordinator writes those of the offsets topic into its journal by itself: with the marker what waits for it in
memory takes effect, or is forgotten.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import EndMarker
from ottla.handlers.on_demand.groups import GroupsOnDemand
from ottla.handlers.produce.answer import PartitionAnswer
from ottla.handlers.produce.waiting import ACKS_ALL, PartitionOutcome, fail_unwritten, settle
from ottla.model import OFFSETS_TOPIC, ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.replication.journal_producers import check_marker, end_batch
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.round import Participant, Round
from ottla.replication.writes import Writes
from ottla.storage.errors import AppendRefused, RollDue, StorageFault
from ottla.storage.log.append import Origin

log_event = logs.logger("handlers")

#: Coordinators know nothing of these from the leader of a partition: it is one that cannot take the marker just now.
_AS_LEADER: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

#: Partitions that get markers of this broker's own coordinator in one round: each takes some twenty microseconds.
PARTITIONS_A_ROUND: Final = 128

#: Called with a code for each partition, in their order.
Marked = Callable[[list[ErrorCode]], None]


class _MarkerWrite:
    """One end in some partitions, from its staging until all of them have it. Implements `Waiter`."""

    def __init__(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        self.end = end
        self.places = [(tp, PartitionOutcome(tp.partition)) for tp in partitions]
        #: Not staged yet, since their logs take nothing just now, or their coordinator answers by itself.
        self.elsewhere = 0
        self._marked: Marked | None = marked

    @property
    def outcomes(self) -> list[PartitionOutcome]:
        return [outcome for _, outcome in self.places]

    def waits_for(self) -> list[TopicPartition]:
        return [tp for tp, outcome in self.places if outcome.answer is None and outcome.leader is not None]

    # -- as a waiter

    def try_complete(self, now_ms: int) -> bool:
        decided = not self.elsewhere
        for outcome in self.outcomes:
            is_staged = outcome.answer is not None or outcome.appended is not None
            decided = is_staged and settle(outcome, ACKS_ALL) and decided
        if decided:
            self._end()
        return decided

    def expire(self, now_ms: int) -> None:
        for outcome in self.outcomes:
            if outcome.answer is None and (outcome.appended is None or not settle(outcome, ACKS_ALL)):
                outcome.fail(ErrorCode.REQUEST_TIMED_OUT)
        self._end()

    def failed(self, fault: Exception) -> None:
        for outcome in self.outcomes:
            if outcome.answer is None:
                outcome.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._end()

    @property
    def is_over(self) -> bool:
        return self._marked is None

    def _end(self) -> None:
        marked, self._marked = self._marked, None
        if marked is not None:
            marked([ErrorCode(outcome.answer.error) for outcome in self.outcomes if outcome.answer is not None])


class TransactionMarkers(Participant):
    #: Before the journals too: the group coordinator writes the markers of its partitions into its own.
    rank = 1

    def __init__(
        self,
        replicas: Replicas,
        writes: Writes,
        this_round: Round,
        clock: Clock,
        groups: GroupsOnDemand,
        timeout_ms: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._writes = writes
        self._round = this_round
        self._clock = clock
        self._groups = groups
        self._timeout_ms = timeout_ms
        #: For the next round.
        self._gathered: deque[_MarkerWrite] = deque()
        #: Of this round.
        self._staged: list[_MarkerWrite] = []

    def write(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        """Writes a marker to each of the partitions; `marked` is called once, maybe at once.

        They are as many as may be staged without a pause.
        """
        self._round.join(self)
        write = _MarkerWrite(end, partitions, marked)
        self._round.within(partial(self._begin, write))

    def write_soon(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        """The same in the next round, together with all that comes until then. `marked` is called later."""
        self._round.join(self)
        self._gathered.append(_MarkerWrite(end, partitions, marked))
        self._round.soon()

    # -- rounds

    def stage(self) -> None:
        """What was gathered; what is too much of it is for the next round."""
        room = PARTITIONS_A_ROUND
        while self._gathered and room > 0:
            write = self._gathered.popleft()
            room -= len(write.places)
            self._begin(write)
        if self._gathered:
            self._round.soon()

    def _begin(self, write: _MarkerWrite) -> None:
        # First, so that it is given up with the others where a fault of ours ends the step.
        self._staged.append(write)
        self._stage_all(write)

    def _stage_all(self, write: _MarkerWrite) -> None:
        for tp, outcome in write.places:
            if tp.topic == OFFSETS_TOPIC:
                self._mark_offsets(write, tp, outcome)
            else:
                self._stage(write, tp, outcome)

    def _stage(self, write: _MarkerWrite, tp: TopicPartition, outcome: PartitionOutcome) -> None:
        leader = self._writable(tp, outcome)
        if leader is None:
            return
        if leader.changing_over is not None:
            self._wait_for(leader.changing_over, write, tp, outcome)
            return
        log, now_ms = leader.log, self._clock.wall_ms()
        try:
            check_marker(log.producers_at_hand, write.end, log.next_offset)
            batch = memoryview(bytearray(end_batch(write.end, now_ms)))
            outcome.appended = log.stage(batch, leader.epoch, now_ms, Origin.COORDINATOR)
            outcome.leader = leader
            self._writes.staged(leader)
        except RollDue:
            self._wait_for(self._replicas.files.roll(leader), write, tp, outcome)
        except AppendRefused as refused:
            outcome.fail(refused.error)
        except StorageFault as fault:
            self._writes.refused(leader, fault)
            outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)
        except Exception as fault:
            self._writes.broke(leader, fault)
            outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)

    def _writable(self, tp: TopicPartition, outcome: PartitionOutcome) -> Leader | None:
        leader = self._replicas.leaders.get(tp)
        if leader is None:
            outcome.fail(self._replicas.why_not_leader(tp))
        elif not leader.has_enough_replicas():
            outcome.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        elif leader.fault is not None:
            outcome.fail(leader.fault)
        else:
            return leader
        return None

    def _wait_for(
        self,
        changing_over: asyncio.Future[StorageFault | None],
        write: _MarkerWrite,
        tp: TopicPartition,
        outcome: PartitionOutcome,
    ) -> None:
        """It is staged in a round of its own, when the log takes batches again."""

        def again() -> None:
            write.elsewhere -= 1
            if outcome.answer is None:
                self._stage(write, tp, outcome)
            self._staged.append(write)

        def changed_over(done: asyncio.Future[StorageFault | None]) -> None:
            if done.cancelled() or done.result() is not None:
                outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)
            self._round.within(again)

        write.elsewhere += 1
        changing_over.add_done_callback(changed_over)

    def _mark_offsets(self, write: _MarkerWrite, tp: TopicPartition, outcome: PartitionOutcome) -> None:
        if tp not in self._replicas.leaders:
            outcome.fail(self._replicas.why_not_leader(tp))
            return
        found = self._groups.get().led.find(tp.partition)
        if isinstance(found, ErrorCode):
            outcome.fail(_AS_LEADER.get(found, found))
            return

        def marked(error: ErrorCode) -> None:
            write.elsewhere -= 1
            if outcome.answer is None:
                outcome.answer = PartitionAnswer(tp.partition, _AS_LEADER.get(error, error))
            if write.try_complete(self._clock.monotonic_ms()):
                self._replicas.waiters.forget(write)

        write.elsewhere += 1
        found.write_marker(Now(self._clock.wall_ms(), self._clock.monotonic_ms()), write.end, marked)

    def answer(self) -> None:
        """What was written is committed, or is waited for."""
        if not self._staged:
            return
        staged, self._staged = self._staged, []
        for write in staged:
            try:
                self._answer_or_park(write)
            except Exception as fault:  # of ours: the others' transactions end all the same
                log_event.error("markers failed", error="".join(traceback.format_exception(fault)))
                self._replicas.waiters.forget(write)
                write.failed(fault)

    def _answer_or_park(self, write: _MarkerWrite) -> None:
        fail_unwritten(write.outcomes, ACKS_ALL)
        now_ms = self._clock.monotonic_ms()
        waiters = self._replicas.waiters
        waiters.forget(write)
        if not write.is_over and not write.try_complete(now_ms):
            waiters.park(write, write.waits_for(), now_ms + self._timeout_ms())

    def failed(self, fault: Exception) -> None:
        failed, self._staged = [*self._staged, *self._gathered], []
        self._gathered.clear()
        for write in failed:
            write.failed(fault)
