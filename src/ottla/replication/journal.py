"""A coordinator's journal: what it decides becomes records of one partition that this broker leads.

Writes of one round of the network are gathered and become one batch, staged just before the round writes its logs, so
that twenty thousand offset commits a second cost one append a round. A write that was accepted can only fail by the
disk, by the loss of the role, or by time: everything else is checked when it is handed in.

    write -> gathered -> (end of round) staged -> written -> committed: `written(NONE)`
                                        \\-> lost: `written(error)`, and the owner of the journal is called

Outside of a round (a timer, a load that has ended) one of its own follows in the same turn of the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

from ottla import logs
from ottla.coordinators.journal import EndMarker, JournalRecord, TransactionalProducer, Written
from ottla.model import ErrorCode, TopicPartition
from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import BatchBuilder
from ottla.replication.journal_pieces import read_piece, read_producers, whole_batches
from ottla.replication.journal_producers import BuiltBatch, JournalProducers, MarkerBatch, TransactionalBatch
from ottla.replication.journal_writes import (
    NOWHERE,
    RECORD_OVERHEAD_MAX,
    JournalWrite,
    as_coordinator,
    end_all,
    exact_size,
)
from ottla.replication.leader import Leader
from ottla.storage.errors import AppendRefused, CorruptLog, RollDue, StorageFault
from ottla.storage.log.append import Origin
from ottla.storage.log.log import Log
from ottla.storage.log.producers.verifying import Verification

if TYPE_CHECKING:
    from ottla.replication.journals import Journals

log_event = logs.logger("replication")


class JournalOwner(Protocol):
    def journal_lost(self, tp: TopicPartition) -> None:
        """What this partition's journal had accepted is not in its log."""
        ...


class PartitionJournal:
    """What its coordinator sees of one partition, for one leader epoch. Also a waiter: for its oldest write."""

    __slots__ = (
        "_closed",
        "_deadline_ms",
        "_doubtful_end",
        "_found_end",
        "_gathered",
        "_journals",
        "_leader",
        "_owner",
        "_parked",
        "_producers",
        "_unsettled",
        "_waits_for_log",
        "_work",
        "epoch",
        "tp",
    )

    def __init__(self, journals: Journals, leader: Leader, owner: JournalOwner) -> None:
        self.tp = leader.tp
        self.epoch = leader.epoch
        self._journals = journals
        self._leader = leader
        self._owner = owner
        self._closed = False
        #: Not staged yet: of this round, behind what the last one has left.
        self._gathered: list[JournalWrite] = []
        #: How long those of this round may wait; 0 where it is to be asked.
        self._deadline_ms = 0
        #: How much they are to encode: the sum of their `work`.
        self._work = 0
        #: Whether they wait for their log to take batches again.
        self._waits_for_log = False
        self._producers = JournalProducers()
        #: Staged, in the order of their offsets; those behind the log's end are not written yet.
        self._unsettled: deque[JournalWrite] = deque()
        #: Up to here were writes that took too long: their callers were answered so, but they may be committed yet.
        self._doubtful_end = 0
        #: Up to here its log went when the leader epoch began, or when it was last loaded: after a write that was lost
        #: it has those of before.
        self._found_end = leader.log.end_offset
        #: Whether the waiters know of it.
        self._parked = False

    def _current(self) -> Leader | None:
        """The leader, which is another object once its log was moved to another directory."""
        if not self._leader.active:
            moved = self._leader.present
            if self._closed or not moved.active:
                return None
            self._leader = moved
        return self._leader

    # -- writing

    def write(
        self,
        records: Sequence[JournalRecord],
        wall_ms: int,
        written: Written,
        built: BatchBuilder | None = None,
        producer: TransactionalProducer | None = None,
    ) -> ErrorCode:
        """Accepts all records or none. `written` is never called before this has returned.

        Records that are many come as a batch that was `built` of them: that takes its time before the round.
        """
        leader = self._writable()
        if isinstance(leader, ErrorCode):
            return as_coordinator(leader)
        if producer is not None and built is None:
            built = BatchBuilder()
            for key, value in records:
                built.append(wall_ms, key, value)
        size = 0 if built is None else built.size - HEADER_SIZE
        for key, value in records if built is None else ():
            size += RECORD_OVERHEAD_MAX + len(key) + (0 if value is None else len(value))
        limit = _batch_bytes_max(leader.log)
        if size + HEADER_SIZE > limit:
            size = size if built is not None else exact_size(records, wall_ms) - HEADER_SIZE
            if size + HEADER_SIZE > limit:
                log_event.warning_limited("a coordinator's write is larger than its topic takes", partition=self.tp)
                return as_coordinator(ErrorCode.MESSAGE_TOO_LARGE)
        if producer is None:
            self._gather(records, size, wall_ms, written, built)
            return ErrorCode.NONE
        assert built is not None
        if error := self._producers.take_records(leader.log, producer):
            return as_coordinator(error)
        self._gather(records, size, wall_ms, written, TransactionalBatch(built, producer))
        return ErrorCode.NONE

    def _writable(self) -> Leader | ErrorCode:
        """The leader that takes a write; else, in its words, why none does."""
        leader = self._current()
        if leader is None or self._closed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader.fault is not None:
            return leader.fault
        return leader if leader.has_enough_replicas() else ErrorCode.NOT_ENOUGH_REPLICAS

    # -- transactions

    def has_open(self, producer: TransactionalProducer) -> bool:
        leader = self._current()
        return leader is not None and self._producers.has_open(leader.log, producer)

    def is_behind(self, producer: TransactionalProducer) -> bool:
        leader = self._current()
        return leader is not None and self._producers.is_behind(leader.log, producer)

    def begin_verifying(self, producer: TransactionalProducer) -> Verification:
        leader = self._current()
        if leader is None:
            return Verification(producer.producer_epoch, -1)
        return self._producers.begin_verifying(leader.log, producer)

    def is_verified(self, producer: TransactionalProducer, verification: Verification) -> bool:
        leader = self._current()
        return leader is not None and self._producers.is_verified(leader.log, producer, verification)

    def end_transaction(self, end: EndMarker, wall_ms: int, written: Written) -> ErrorCode:
        leader = self._writable()
        if isinstance(leader, ErrorCode):
            return as_coordinator(leader)
        if error := self._producers.take_marker(leader.log, end):
            return as_coordinator(error)
        marker = MarkerBatch(end, wall_ms)
        self._gather((), marker.size - HEADER_SIZE, wall_ms, written, marker)
        return ErrorCode.NONE

    # -- what was written

    def when_settled(self, call: Written) -> None:
        """Calls at once if all that was found or written is committed, else when it is, or when that has failed."""
        leader = self._current()
        if self._closed or leader is None:
            call(ErrorCode.NOT_COORDINATOR)
        elif self._gathered:
            self._gather((), 0, 0, call)
        elif self._unsettled:
            last = self._unsettled[-1]
            self._follow(last.end, last.deadline_ms, call)
        elif leader.high_watermark < (in_doubt_end := max(self._doubtful_end, self._found_end)):
            self._follow(in_doubt_end, self._next_deadline_ms(), call)
            self._park()
        else:
            call(ErrorCode.NONE)

    def when_found_committed(self, call: Written) -> None:
        """To be called before anything is written."""
        leader = self._current()
        if self._closed or leader is None:
            call(ErrorCode.NOT_COORDINATOR)
        elif leader.high_watermark >= self._found_end:
            call(ErrorCode.NONE)
        else:
            self._follow(self._found_end, self._next_deadline_ms(), call)
            self._park()

    def _follow(self, end: int, deadline_ms: int, call: Written) -> None:
        """Waits behind what was written last, without writing anything."""
        follower = JournalWrite((), 0, 0, deadline_ms, call)
        follower.end = end
        self._unsettled.append(follower)

    def _next_deadline_ms(self) -> int:
        journals = self._journals
        return journals.clock.monotonic_ms() + journals.settings().commit_timeout_ms

    def _gather(
        self,
        records: Sequence[JournalRecord],
        size: int,
        wall_ms: int,
        written: Written,
        built: BuiltBatch | None = None,
    ) -> None:
        if not self._gathered or not self._deadline_ms or self._waits_for_log:
            self._deadline_ms = self._next_deadline_ms()
        if not self._gathered:
            self._journals.gathered(self)
        write = JournalWrite(records, size, wall_ms, self._deadline_ms, written, built)
        self._gathered.append(write)
        self._work += len(records) if built is None else write.work

    # -- rounds

    def stage(self, room: int) -> int:
        """Makes batches of what was gathered, as few as the topic's largest allows, and of no more records than there
        is room for, but of one write at least. Returns how many records they were.
        """
        self._deadline_ms = 0
        leader = self._current()
        if leader is not None and leader.changing_over is not None:
            self._wait_for(leader.changing_over)
            return 0
        gathered, work = self._taken(room)
        if leader is None:
            end_all(gathered, ErrorCode.NOT_COORDINATOR)
            return work
        # From here on a failure finds them among the unsettled: without an end within the log.
        self._unsettled.extend(gathered)
        limit = _batch_bytes_max(leader.log)
        builder, inside = BatchBuilder(), list[JournalWrite]()
        for write in gathered:
            if builder.count and (write.built is not None or builder.size + write.size > limit):
                if not self._stage_batch(leader, builder, inside, limit):
                    return work
                builder, inside = BatchBuilder(), []
            inside.append(write)
            if write.built is not None:
                if not self._stage_batch(leader, write.built, inside, limit):
                    return work
                inside = []
                continue
            for key, value in write.records:
                builder.append(write.wall_ms, key, value)
        if self._stage_batch(leader, builder, inside, limit) and not self._gathered:
            self._producers.all_staged()
        return work

    def _taken(self, room: int) -> tuple[list[JournalWrite], int]:
        """The writes for this round; the rest is gathered for the next one."""
        gathered, self._gathered = self._gathered, []
        whole, self._work = self._work, 0
        if whole <= room:  # as nearly always
            return gathered, whole
        work = 0
        for number, write in enumerate(gathered):
            if work and work + write.work > room:
                self._gathered = gathered[number:]
                self._work = whole - work
                self._journals.gathered(self)
                return gathered[:number], work
            work += write.work
        return gathered, work

    def _stage_batch(self, leader: Leader, builder: BuiltBatch, inside: list[JournalWrite], limit: int) -> bool:
        log = leader.log
        if builder.count:
            data = builder.build(compression=self._journals.settings().compression)
            if len(data) > limit:
                data = builder.build()  # what does not compress may grow
            try:
                log.stage(memoryview(bytearray(data)), leader.epoch, self._journals.clock.wall_ms(), Origin.COORDINATOR)
                self._journals.writes.staged(leader)
            except RollDue:
                self._put_back(inside)
                self._wait_for(self._journals.replicas.files.roll(leader))
                return False
            except StorageFault as fault:
                # What this round staged and is not written will not be.
                self._journals.writes.refused(leader, fault)
                return False
            except AppendRefused as refused:
                log_event.error("a coordinator's batch was refused", partition=self.tp, reason=refused)
                return False
            except Exception as fault:
                self._journals.writes.broke(leader, fault)
                return False
        for write in inside:
            write.end = log.next_offset
            write.records = ()
            write.built = None
        return True

    def _put_back(self, inside: list[JournalWrite]) -> None:
        """These of the round, and all behind them, are for another round."""
        left: list[JournalWrite] = []
        while not left or left[-1] is not inside[0]:
            left.append(self._unsettled.pop())
        self._gathered[:0] = reversed(left)
        self._work += sum(write.work for write in left)

    def _wait_for(self, changing_over: asyncio.Future[StorageFault | None]) -> None:
        """What is gathered is staged when the log takes it again, and refused where it does not."""

        if self._waits_for_log:
            return
        self._waits_for_log = True

        def changed_over(done: asyncio.Future[StorageFault | None]) -> None:
            self._waits_for_log = False
            if done.cancelled() or self._closed:
                return
            if done.result() is None:
                self._journals.gathered(self)
            else:
                self._lose((), ErrorCode.KAFKA_STORAGE_ERROR)

        changing_over.add_done_callback(changed_over)

    def _lose(self, lost: Sequence[JournalWrite], error: ErrorCode) -> None:
        """And what was left for the next round, since that was decided on top of what is lost."""
        left, self._gathered, self._work = self._gathered, [], 0
        self._producers.all_staged()
        end_all((*lost, *left), as_coordinator(error))
        self._owner.journal_lost(self.tp)

    def round_written(self) -> None:
        """The round's writes are done: what is not in the log is lost, the rest waits for its commit."""
        leader = self._current()
        if leader is None or self._closed:
            return
        lost: list[JournalWrite] = []
        end = leader.log.end_offset
        while self._unsettled and self._unsettled[-1].end > end:
            lost.append(self._unsettled.pop())
        self._settle(leader)
        self._park()
        if lost:
            lost.reverse()
            self._lose(lost, leader.fault or ErrorCode.KAFKA_STORAGE_ERROR)

    def give_up(self, fault: Exception) -> None:
        """After a fault of ours nobody knows what became of what waits here: all of it is refused, no more of it is
        written, and the coordinator loads anew."""
        leader = self._current()
        if leader is not None:
            self._journals.writes.broke(leader, fault)
        waiting = [*self._unsettled, *self._gathered]
        self._unsettled.clear()
        self._gathered.clear()
        self._producers.all_staged()
        self._work = 0
        self._parked = False
        self._journals.replicas.waiters.forget(self)
        end_all(waiting, ErrorCode.UNKNOWN_SERVER_ERROR)
        self._owner.journal_lost(self.tp)

    # -- commits

    def _settle(self, leader: Leader) -> None:
        unsettled, committed = self._unsettled, leader.high_watermark
        while unsettled and unsettled[0].end <= committed:
            unsettled.popleft().end_with(ErrorCode.NONE)

    def _park(self) -> None:
        if self._unsettled and not self._parked and not self._closed:
            self._parked = True
            self._journals.replicas.waiters.park(self, (self.tp,), self._unsettled[0].deadline_ms)

    def try_complete(self, now_ms: int) -> bool:
        """As a waiter: the partition has changed."""
        leader = self._current()
        if leader is not None:
            self._settle(leader)
        self._parked = bool(self._unsettled)
        return not self._parked

    def expire(self, now_ms: int) -> None:
        """As a waiter: the oldest write has waited for long enough, unless it is another one by now."""
        self._parked = False
        leader = self._current()
        if leader is not None:
            self._settle(leader)
        timed_out = as_coordinator(ErrorCode.REQUEST_TIMED_OUT)
        while self._unsettled and self._unsettled[0].deadline_ms <= now_ms:
            late = self._unsettled.popleft()
            if late.end != NOWHERE:
                self._doubtful_end = max(self._doubtful_end, late.end)
            late.end_with(timed_out)
        self._park()

    def failed(self, fault: Exception) -> None:
        """As a waiter."""
        self.give_up(fault)

    def close(self) -> None:
        """The role is lost: nobody knows what will be found of the writes that are not committed."""
        self._closed = True
        self._journals.replicas.waiters.forget(self)
        waiting = [*self._unsettled, *self._gathered]
        self._unsettled.clear()
        self._gathered.clear()
        self._producers.all_staged()
        self._work = 0
        end_all(waiting, ErrorCode.NOT_COORDINATOR)

    # -- loading

    async def replay(self) -> AsyncIterator[bytes]:
        """All batches from the log's start to its present end, whole, in pieces. Raises StorageFault or CorruptLog.

        Ends early when the role is lost, of which the coordinator hears in another way.
        """
        leader = await self._producers_read()
        if leader is None:
            return
        offset, end = leader.log.start_offset, leader.log.end_offset
        self._found_end = end
        while leader is not None and not self._closed:
            # Cleaning and retention may take segments away between two pieces.
            log = leader.log
            offset = max(offset, log.start_offset)
            if offset >= end:
                return
            bytes_max = self._journals.settings().load_bytes_max
            data = await read_piece(log, offset, end, bytes_max, self._journals.workers)
            before, leader = leader, self._current()
            if data is None:
                if leader is before and offset >= log.start_offset:
                    raise CorruptLog(self.tp, log.directory, 0, f"the log does not go on at offset {offset}")
                continue  # it was moved to another directory, or its start has passed the offset
            if leader is None or not data:
                return
            size, offset = whole_batches(data, offset)
            if not size:
                raise CorruptLog(self.tp, log.directory, 0, f"no whole batch is found at offset {offset}")
            yield data if size == len(data) else data[:size]
            leader = self._current()

    async def _producers_read(self) -> Leader | None:
        """The leader, once its log knows its transactional producers: another one where that log has moved."""
        read, leader = None, self._current()
        while leader is not None and leader is not read:
            await read_producers(leader.log, self._journals.workers)
            read, leader = leader, self._current()
        return leader


def _batch_bytes_max(log: Log) -> int:
    return min(log.config.max_message_bytes, log.config.segment_bytes)
