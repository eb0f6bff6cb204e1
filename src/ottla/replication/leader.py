"""The leader's side of a partition: appends, what is committed, and reads below it.

Two offsets say how far things are. The log's end is what this broker has; the high watermark is what every in-sync
replica has, and where the topic asks for a flush with each append, what the disk has as well. Consumers see nothing at
or above the high watermark, so nothing they saw can be lost with this broker.

    log.start_offset <= high_watermark <= log.end_offset <= log.next_offset        durable_end <= log.end_offset

The high watermark only rises, and to the durable end at most. It stands still while fewer replicas are confirmed to be
in sync than the topic asks for (docs/decisions/watermark-under-the-minimum.md).

A leader leads with one log, and until another broker may have led. Where the controller gives this broker the next
leader epoch, nobody has led in between: the leader goes on in that (`begin_epoch`), with all requests that wait for it
and all that is remembered of it. Otherwise, and where its log has moved, there is another leader:

    active ──retire──▶ not active: requests that waited are answered `end_error`
                          └ succeeded_by ▶ `present` is the leader that has its records now

Within a round it goes like this. `Writes` alone moves it, and all that stage look at `fault` first:

    clean ──stage──▶ dirty ──write──▶ clean
                       └ a fault ▶ faulted: nothing more is staged ──the round's requests are answered──▶ clean
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.model import ErrorCode, TopicPartition
from ottla.replication.fencing import fencing
from ottla.replication.isr import InSyncReplicas
from ottla.storage.errors import StorageFault
from ottla.storage.log.append import AppendResult
from ottla.storage.log.log import Log

if TYPE_CHECKING:
    from ottla.native.lane import Lane, Run
    from ottla.replication.waiters import Waiter

    class HeldRequests(Waiter, Protocol):
        @property
        def is_empty(self) -> bool: ...

        def take_out(self, lane: Lane) -> None:
            """Gives what is held of a lane places of its own in its connection's order."""
            ...


class Leader:
    __slots__ = (
        *(
            "active",
            "adding_replicas",
            "changing_over",
            "controller_epoch",
            "dirty",
            "end_error",
            "epoch",
            "epoch_start",
            "fault",
            "held",
            "high_watermark",
            "isr",
            "known_from",
            "log",
            "partition_epoch",
            "removing_replicas",
            "run",
            "run_of_leader",
            "run_policy",
            "successor",
            "tp",
        ),
    )

    def __init__(self, tp: TopicPartition, log: Log, epoch: int, isr: InSyncReplicas, high_watermark: int) -> None:
        self.tp = tp
        self.log = log
        #: Of this leadership. Requests that name another one are fenced.
        self.epoch = epoch
        #: Where it began. A replica with everything up to there has all that was committed before.
        self.epoch_start = log.end_offset
        #: Where this broker's leadership began, in an earlier leader epoch perhaps: what is committed is known once the
        #: high watermark has come so far (KIP-207).
        self.known_from = log.end_offset
        #: As the controller last said, or has answered: what is older changes nothing.
        self.controller_epoch = -1
        self.partition_epoch = -1
        #: The replicas that a reassignment adds, and those that it removes, until it ends.
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        #: The in-sync replicas, this broker among them, and how far they are.
        self.isr = isr
        #: What the leader before it had, or the checkpoint, as far as the log has it. Never below what a client was
        #: answered.
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        #: False once the role has moved on: those who kept a reference must look again.
        self.active = True
        #: The leader in its place, with all of its records: in a later leader epoch, or with a log that has moved.
        self.successor: Leader | None = None
        #: The answer to requests that waited for it when it ceased to lead.
        self.end_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        #: Set while its log takes nothing, since a copy in another directory takes over or its next segment is made:
        #: done once there are appends again, or with the fault for which those that wait are refused. What cannot
        #: wait for that is refused by the log.
        self.changing_over: asyncio.Future[StorageFault | None] | None = None
        #: Whether something is staged that the round has yet to write. Of `Writes`.
        self.dirty = False
        #: Why a write of this round failed. Of `Writes`. While it stands nothing is staged: offsets that were given to
        #: lost batches must not be given again before those are answered.
        self.fault: ErrorCode | None = None
        #: What compiled lanes collect for this leader in a round, once there are any, of acks=all and of acks=1. Of
        #: `Lanes`.
        self.run: Run | None = None
        self.run_of_leader: Run | None = None
        #: Recognised requests whose answers wait for replicas or for the disk. Of `ProduceHandler`.
        self.held: HeldRequests | None = None
        #: The policy under which their requests were allowed. Of `Lanes`.
        self.run_policy = -1
        log.begin_leader_epoch(epoch)
        self.advance()

    @property
    def leader_id(self) -> int:
        return self.isr.local

    @property
    def present(self) -> Leader:
        """The leader that has its records now; one that is not active where none here leads."""
        leader = self
        while leader.successor is not None:
            leader = leader.successor
        return leader

    def retire(self, error: ErrorCode | None = None) -> None:
        """This broker does not lead any more, or not as this leader. `error`: the answer to requests that wait."""
        self.active = False
        if error is not None:
            self.end_error = error

    def succeeded_by(self, leader: Leader) -> None:
        """All of its records are there, and more may be."""
        assert not self.active
        self.successor = leader

    def changes_over(self) -> asyncio.Future[StorageFault | None]:
        """From now on its log takes nothing, until `changed_over`."""
        if self.changing_over is None:
            self.changing_over = asyncio.get_running_loop().create_future()
        return self.changing_over

    def changed_over(self, fault: StorageFault | None = None) -> None:
        """Appends go on, at this leader or at its successor; where they do not, those that wait have the fault."""
        waited, self.changing_over = self.changing_over, None
        if waited is not None:
            waited.set_result(fault)

    def moved_to(self, log: Log) -> Leader:
        """The same leader with another log that holds the same records. It takes this one's place."""
        self.retire()
        successor = Leader(self.tp, log, self.epoch, self.isr, self.high_watermark)
        successor.epoch_start, successor.known_from = self.epoch_start, self.known_from
        successor.controller_epoch, successor.partition_epoch = self.controller_epoch, self.partition_epoch
        successor.adding_replicas, successor.removing_replicas = self.adding_replicas, self.removing_replicas
        self.succeeded_by(successor)
        return successor

    def begin_epoch(self, epoch: int) -> None:
        """The controller has chosen this broker again, before anybody else could lead."""
        assert self.active
        assert epoch > self.epoch
        assert not self.dirty, "a batch that is staged has its leader epoch already"
        self.epoch, self.epoch_start = epoch, self.log.end_offset
        self.log.begin_leader_epoch(epoch)

    @property
    def durable_end(self) -> int:
        """The end of what this broker itself vouches for."""
        log = self.log
        return log.durability.certain_end if log.config.flush_messages <= 1 else log.places.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it everything is committed, and every transaction has a marker that is committed too."""
        unstable = self.log.first_unstable(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def has_enough_replicas(self) -> bool:
        """All of the replicas are enough, however many the topic asks for: more there cannot be."""
        isr = self.isr
        in_sync = len(isr.members)
        return in_sync >= self.log.config.min_insync_replicas or in_sync == len(isr.replicas)

    def had_enough_replicas(self) -> bool:
        """The same for what is committed already: every replica that may be a member counts (Kafka's maximal ISR)."""
        isr = self.isr
        in_sync = len(isr.maximal)
        return in_sync >= self.log.config.min_insync_replicas or in_sync == len(isr.replicas)

    def append(self, records: memoryview, now_ms: int) -> AppendResult:
        """Checks the batch and gives it its offsets; the round's end writes it. Raises AppendRefused."""
        return self.log.staging.stage(records, self.epoch, now_ms)

    def append_checked(self, records: memoryview, now_ms: int) -> AppendResult:
        """The same for a batch whose records were looked at in another process."""
        return self.log.staging.stage_checked(records, self.epoch, now_ms)

    def advance(self) -> bool:
        """Moves the high watermark to what all in-sync replicas have; True when it moved."""
        if not self.has_enough_replicas():
            return False
        committed = self.isr.committed(self.durable_end)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        producers = self.log.producer_memory.loaded
        if producers is not None:
            producers.committed_to(committed)
        return True

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The first offset that any replica on a live broker still has, as far as they have said (Kafka's)."""
        return min([self.log.start_offset, *(one.log_start for one in self.isr.followers.values() if is_alive(one.id))])

    @property
    def knows_watermark(self) -> bool:
        """Whether everything is below the high watermark that was committed before this broker led."""
        return self.high_watermark >= self.known_from

    def follower_fetched(self, replica: int, offset: int, now_ms: int = 0) -> bool:
        """A follower that asks for an offset has all below it, where the read was in order. True when that moved the
        high watermark."""
        follower = self.isr.followers.get(replica)
        if follower is None:
            return False
        before = follower.end
        follower.fetched(offset, self.log.end_offset, now_ms)
        return offset != before and self.advance()

    def fencing(self, current_leader_epoch: int) -> ErrorCode:
        """What to answer to one who thinks that this leader epoch is `current_leader_epoch` (-1: does not say)."""
        return fencing(self.epoch, current_leader_epoch)
