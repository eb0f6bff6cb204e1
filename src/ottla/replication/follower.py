"""The follower's side of a partition: a copy of the leader's log, byte for byte, cut by epochs and never by watermark.

Cutting a follower's log at its own high watermark loses committed records, since the watermark lags one fetch behind.
A follower therefore asks the leader where its own last leader epoch ended, and cuts there (Kafka's KIP-101).

A follower that asks for an offset vouches for all below it: the leader counts it as having that. Where the topic is
flushed before the answer, the leader vouches for what the disk has, and so does a follower: its next fetch waits until
`may_ask` is true. The fetcher sets `on_may_ask`, which is called then.

A `Follower` follows in one leader epoch. In the next one there is another object, and answers to fetches of the former
one are recognised by that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ottla.model import ErrorCode, TopicPartition
from ottla.records.batch import BatchHeader
from ottla.replication.fencing import fencing
from ottla.steps import DiskSteps, done_at_once
from ottla.storage.errors import AppendRefused, RollDue
from ottla.storage.log.log import Log
from ottla.storage.log.replica_append import spanning


class Follower:
    __slots__ = (
        *(
            "_committed",
            "_lowering",
            "_wrote",
            "active",
            "adding_replicas",
            "controller_epoch",
            "epoch",
            "high_watermark",
            "leader_id",
        ),
        *("log", "on_may_ask", "partition_epoch", "removing_replicas", "tp"),
    )

    def __init__(
        self,
        tp: TopicPartition,
        log: Log,
        epoch: int,
        leader_id: int,
        high_watermark: int,
        lowering: Callable[[TopicPartition, int], DiskSteps[None]],
        wrote: Callable[[Log], None] | None = None,
        committed: Callable[[TopicPartition], None] | None = None,
    ) -> None:
        self.tp = tp
        self.log = log
        self.epoch = epoch
        #: As the controller last said: what is older changes nothing. Of `Replicas`.
        self.controller_epoch = -1
        self.partition_epoch = -1
        #: The replicas that a reassignment adds, and those that it removes, until it ends.
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        #: -1 while the partition has no leader.
        self.leader_id = leader_id
        #: False once the role has moved on. What still comes for it is to be dropped.
        self.active = True
        #: log.start_offset <= high_watermark <= log.end_offset
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        #: Done with where the log will end, before it is cut: no checkpoint may speak of more.
        self._lowering = lowering
        #: Called with each write: a flush may be due.
        self._wrote = wrote
        #: Called where the high watermark has moved: consumers may read here.
        self._committed = committed
        #: Of the fetcher: called when `may_ask` has become true.
        self.on_may_ask: Callable[[], None] | None = None

    def go_on_in(self, log: Log) -> None:
        """The same records stand in another directory now."""
        self.log = log

    @property
    def durable_end(self) -> int:
        """The end of what this broker vouches for, as a leader's."""
        log = self.log
        return log.durability.certain_end if log.config.flush_messages <= 1 else log.places.end_offset

    @property
    def may_ask(self) -> bool:
        """Whether the next offset may be asked for, which says that everything below it is here."""
        return self.durable_end >= self.log.end_offset

    def flushed(self) -> None:
        """More of the log is on the disk than before."""
        if self.on_may_ask is not None and self.active and self.may_ask:
            self.on_may_ask()

    def append(self, records: memoryview, leader_high_watermark: int, leader_start: int = -1) -> None:
        """Takes what a fetch brought: batches that carry the leader's offsets and leader epochs already.

        Raises AppendRefused where they do not go on from this log's end, or were written in a later leader epoch than
        this one: a follower that took them without having cut its log for that leader epoch could hold what no leader
        ever had (KAFKA-18723). And StorageFault; where that is RollDue, what came before the roll is here.
        `leader_start`: -1 where the leader did not say.
        """
        if len(records):
            try:
                self.log.stage_replica(records, epoch_max=self.epoch)
            except RollDue:
                # What was sound before it is kept: the leader is asked for the rest again.
                self._write()
                raise
            except AppendRefused:
                # Also what was sound before it: the leader is asked for all of it again.
                self.log.discard_staged()
                raise
            self._write()
        self.leader_committed(leader_high_watermark)
        self.leader_starts(leader_start)

    def spanning_the_start(self, records: memoryview) -> BatchHeader | None:
        """The batch that has to come first, where nothing is here yet and the leader's log begins in the middle of it:
        somebody has deleted the records before. This log can begin with the batch only."""
        log = self.log
        return spanning(records, log.end_offset) if log.start_offset == log.end_offset else None

    def _write(self) -> None:
        self.log.write_staged()
        if self._wrote is not None:
            self._wrote(self.log)

    def leader_committed(self, leader_high_watermark: int) -> None:
        """What the leader says is committed is so here as far as it is here; it never goes back."""
        committed = min(leader_high_watermark, self.log.end_offset)
        if committed > self.high_watermark:
            self.high_watermark = committed
            self.log.committed_to(committed)
            if self._committed is not None:
                self._committed(self.tp)

    # -- for consumers that read here

    @property
    def last_stable_offset(self) -> int:
        """Everything below is decided, as far as is known here."""
        unstable = self.log.first_unstable(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def fencing(self, current_leader_epoch: int) -> ErrorCode:
        return fencing(self.epoch, current_leader_epoch)

    # -- what the leader says

    def leader_starts(self, leader_start: int) -> None:
        """The leader has removed what lies below, by retention or because somebody asked for that."""
        log = self.log
        if log.start_offset < leader_start <= self.high_watermark:
            log.advance_start(leader_start, self.high_watermark)

    def cutting_to_leader(self, leader_epoch: int, leader_end: int) -> DiskSteps[int]:
        """Cuts what the leader does not have, given the leader's answer for our last leader epoch; returns the new end.

        The leader answers with the largest epoch it knows up to ours, and where that ended with it. Where this log does
        not know that very leader epoch, what is left may still part from the leader's: the next answer shows it
        (KIP-279). A leader that knows no such leader epoch (-1) has said nothing to cut by.
        """
        log = self.log
        if leader_epoch < 0 or leader_end < 0:
            return log.end_offset
        own = log.epochs.end_offset_for(leader_epoch, log.end_offset)
        cut = leader_end if own is None else min(leader_end, own[1])
        if cut < log.end_offset:
            yield from log.cutting_to(cut, partial(self._lowering, self.tp), self._ends)
        return log.end_offset

    def _ends(self) -> None:
        """The log was cut, and nobody has seen it yet."""
        log = self.log
        self.high_watermark = max(log.start_offset, min(self.high_watermark, log.end_offset))

    def starting_over(self, offset: int) -> DiskSteps[int]:
        """Gives up all that is here and goes on at `offset`: the leader's log begins behind this one's end, or this
        one's files are worth nothing."""
        yield from self.log.beginning_anew_at(offset, partial(self._lowering, self.tp), self._ends)
        if self._wrote is not None:
            self._wrote(self.log)
        return offset

    def start_over(self, offset: int) -> None:
        done_at_once(self.starting_over(offset))
