"""All partitions that this broker holds: who leads, who follows, and what is offline.

`apply` is the one way in for changes of role, in the shape of Kafka's LeaderAndIsr. What is appended in a round is
written by `writes.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from ottla import logs
from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import NO_BROKER, ErrorCode, TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.decisions import is_older, is_same_topic, note_state
from ottla.replication.follower import Follower
from ottla.replication.isr import InSyncReplicas
from ottla.replication.isr_changes import IsrChanges
from ottla.replication.isr_progress import NEVER, Beat
from ottla.replication.leader import Leader
from ottla.replication.log_files import FileWork, LogFiles
from ottla.replication.missing import MissingReplicas
from ottla.replication.moves import Moves
from ottla.replication.roles import ReplicaOwner, RoleListener, RoleListeners
from ottla.replication.throttles import LeaderThrottle
from ottla.replication.traffic import TrafficByTopic
from ottla.replication.waiters import Waiters
from ottla.steps import DiskSteps, Work, done_at_once, in_turns, pieces
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.formats.names import FolderKind
from ottla.storage.log.cold_reads import ColdReads
from ottla.storage.log.log import Log

log_event = logs.logger("replication")

T = TypeVar("T")


class Replicas:
    def __init__(
        self,
        broker_id: int,
        directories: LogDirectories,
        waiters: Waiters,
        workers: Workers,
        clock: Clock,
        remove_later: Callable[[FolderRemoval], None],
    ) -> None:
        self.broker_id = broker_id
        self.directories = directories
        self.waiters = waiters
        self.leaders: dict[TopicPartition, Leader] = {}
        self.followers: dict[TopicPartition, Follower] = {}
        #: Those that led until they stood aside; each of these partitions has a follower of nobody meanwhile.
        self.aside: dict[TopicPartition, Leader] = {}
        #: Those that another broker is to lead, since there is no room here: to lead them is refused meanwhile.
        self.giving_way: set[TopicPartition] = set()
        #: Whether others may lead by now what this broker takes itself to lead.
        self.may_be_replaced: Callable[[], bool] = lambda: False
        #: When a follower last asked for one that stands aside, by the monotonic clock.
        self.sought_ms = NEVER
        #: Why a partition cannot be served, where its directory could not take it; others stand with the directories.
        self._offline: dict[TopicPartition, str] = {}
        self._missing = MissingReplicas(broker_id, directories, workers, clock, self._go_offline)
        self._workers = workers
        self._clock = clock
        self._remove_later = remove_later
        self._changing = asyncio.Lock()
        #: Changes that nobody need wait for.
        self._apart: set[asyncio.Future[Any]] = set()
        self._owner: ReplicaOwner | None = None
        self._listeners = RoleListeners((), self.leaders, self.followers, clock)
        directories.belong_to(self)
        #: Who joins and who leaves the in-sync sets.
        self.isr_changes = IsrChanges(self.leaders, waiters.changed_between_rounds)
        #: Of what followers are sent.
        self.throttle = LeaderThrottle(broker_id, clock)
        #: What workers read before logs are.
        self.cold_reads = ColdReads(workers)
        #: For metrics.
        self.traffic = TrafficByTopic()
        self.files = LogFiles(self.leaders, self.followers, directories, waiters, workers, clock, self.change_apart)
        self.moves = Moves(directories, workers, clock, self, self.cold_reads, self.files.roll_log, remove_later)

    def open(self, owner: ReplicaOwner, listeners: Sequence[RoleListener]) -> None:
        """Before any role. Listeners are called in their order; they and the owner stand on what stands on this."""
        assert self._owner is None, "replicas have one owner"
        self._owner = owner
        self._listeners = RoleListeners(listeners, self.leaders, self.followers, self._clock)

    def _opened(self) -> ReplicaOwner:
        assert self._owner is not None, "replicas have roles only after `open`"
        return self._owner

    # -- roles

    def apply(
        self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]
    ) -> dict[TopicPartition, ErrorCode]:
        """As `take_on`, with the caller waiting for the disk: for where nothing else is served."""
        return done_at_once(self.take_on(states, config_for))

    def take_on(
        self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]
    ) -> DiskSteps[dict[TopicPartition, ErrorCode]]:
        """Takes on the roles that the controller gave; a state of an older leader epoch changes nothing.

        Run it with `change`. A partition that is being made is served to nobody before all of them are made.
        """
        self._opened()
        yield from self._create_missing(states, config_for)
        answers: dict[TopicPartition, ErrorCode] = {}
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            if (log := self._missing.came_later(tp)) is not None:
                log.reconfigure(config_for(tp.topic))
            answers[tp] = self._apply_one(tp, state)
            yield None
        # Another metadata update may be long in coming.
        self.waiters.settle_outside(self._clock.monotonic_ms())
        return answers

    def make(self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]) -> DiskSteps[bool]:
        """Creates the logs of some of many new replicas ahead of their roles. Returns whether all of them are there.

        Run it with `change`. Nobody is served from them before `take_on`.
        """
        yield from self._create_missing(states, config_for)
        for piece in pieces(states):
            if any(self.directories.get(TopicPartition(state.topic, state.partition)) is None for state in piece):
                return False
            yield None
        return True

    async def change(self, steps: DiskSteps[T]) -> T:
        """Does what may wait for workers, one change after the other: each finds what the last one left."""
        async with self._changing:
            return await in_turns(steps, self._clock.monotonic_ms, self._worked)

    def change_apart(self, steps: DiskSteps[T]) -> asyncio.Future[T]:
        """The same for a caller that may be ended meanwhile: what has begun goes on to its end."""
        task = asyncio.ensure_future(self.change(steps))
        self._apart.add(task)
        task.add_done_callback(self._apart_ended)
        return asyncio.shield(task)

    def _apart_ended(self, task: asyncio.Future[Any]) -> None:
        self._apart.discard(task)
        if not task.cancelled():
            task.exception()  # those that still wait have it

    def _worked(self, work: Work) -> Awaitable[object]:
        return work.wait() if isinstance(work, FileWork) else self._workers.thread(work)

    async def changes_end(self) -> None:
        """Returns when no change is under way, and none waits for its turn."""
        while self._apart:
            await asyncio.wait(self._apart)
        async with self._changing:
            pass

    def _create_missing(
        self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]
    ) -> DiskSteps[None]:
        """Creates the logs that are to be here and are not."""
        yield from self._set_strangers_aside(states)
        yield from self._missing.create(states, config_for)

    def _set_strangers_aside(self, states: Sequence[PartitionState]) -> DiskSteps[None]:
        """Logs of earlier topics with these names, which this broker found and nobody has given a role since.

        While one has a role, the state that names another topic is refused: first the topic is to be deleted here.
        """
        strangers: list[TopicPartition] = []
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            log = self.directories.get(tp)
            if log is not None and not is_same_topic(state.topic_id, log.topic_id) and self.epoch(tp) < 0:
                log_event.warning("a log of an earlier topic of that name is set aside", partition=tp)
                strangers.append(tp)
            yield None
        if strangers:
            yield from self.set_aside(strangers, keep=False)

    def set_aside(self, partitions: Sequence[TopicPartition], *, keep: bool) -> DiskSteps[None]:
        """Logs that have no role here. Those that nobody is to `keep` are removed later. Run it with `change`."""
        yield from self.files.work_ends(partitions)
        given_up = yield from self.directories.delete_many(partitions, FolderKind.STRAY)
        for removal in () if keep else given_up.removals:
            self._remove_later(removal)
            yield None
        for tp, reason in given_up.refused.items():
            log_event.error("a log without a role could not be set aside", partition=tp, reason=reason)

    def make_missing(self) -> DiskSteps[None]:
        """Tries again to make or open the logs that lacked room; says which there are until they have roles.

        And calls the coordinators again that could not follow a role.
        """
        owner = self._opened()
        yield from self.files.finishing()
        yield from self._listeners.catching_up()
        yield from self._missing.try_again(owner.replicas_made)

    def is_here_before(self, state: PartitionState) -> bool:
        """Whether the partition has a role here, or waits for room to have one, by a decision that is no later."""
        tp = TopicPartition(state.topic, state.partition)
        role = self.leaders.get(tp) or self.followers.get(tp)
        known = self._missing.awaited(tp) if role is None else (role.log.topic_id, role.epoch)
        return known is not None and known[0] == state.topic_id and known[1] <= state.leader_epoch

    @property
    def lacks_some(self) -> bool:
        """Whether there is anything to try again."""
        return bool(self._missing.are_left or self.files.are_unfinished or self._listeners.is_behind)

    def _apply_one(self, tp: TopicPartition, state: PartitionState) -> ErrorCode:
        role = self.leaders.get(tp) or self.followers.get(tp)
        if role is not None and is_older(state, role):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if tp in self.giving_way and state.leader == self.broker_id:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if tp in self.aside:
            self.lead_again(tp)
            role = self.leaders[tp]
        if role is not None and role.epoch == state.leader_epoch and role.leader_id != state.leader:
            # In one leader epoch there is one leader.
            return ErrorCode.STALE_CONTROLLER_EPOCH
        log = self.directories.get(tp)
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        log.staging.roll_apart()
        if not is_same_topic(state.topic_id, log.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if self.broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader == self.broker_id and self.broker_id not in state.isr:
            # No controller of ours says that. Another one's mistake ends nothing here.
            log_event.error("a state was refused: its leader is not in its in-sync set", partition=tp, state=state)
            return ErrorCode.INVALID_REQUEST
        self._offline.pop(tp, None)
        self._missing.is_there(tp)
        if state.leader == self.broker_id:
            self._lead(tp, log, state)
        else:
            self._follow(tp, log, state)
        return ErrorCode.NONE

    def _lead(self, tp: TopicPartition, log: Log, state: PartitionState) -> None:
        now_ms = self._clock.monotonic_ms()
        leader = self.leaders.get(tp)
        if leader is not None and state.leader_epoch <= leader.epoch + 1:
            self._lead_on(leader, state, now_ms)
            return
        isr = InSyncReplicas(self.broker_id, state.replicas, state.isr, now_ms)
        high_watermark = self._known_high_watermark(tp)
        self._drop_roles(tp)
        former, leader = leader, Leader(tp, log, state.leader_epoch, isr, high_watermark)
        note_state(leader, state)
        if former is not None:
            former.succeeded_by(leader)
        self.leaders[tp] = leader
        self._listeners.became_leader(leader)

    def _lead_on(self, leader: Leader, state: PartitionState, now_ms: int) -> None:
        """In the leader epoch that it leads in, or in its own next one: nobody has led in between."""
        isr = leader.isr
        is_known = (state.leader_epoch, state.partition_epoch) == (leader.epoch, leader.partition_epoch)
        if is_known and state.replicas == isr.replicas:
            # Said again, by this controller or the next one. What was asked of it since is still open.
            note_state(leader, state)
            return
        if state.leader_epoch > leader.epoch:
            leader.begin_epoch(state.leader_epoch)
        if is_known:
            isr.reassigned(state.replicas)
        else:
            isr.assigned(state.replicas, state.isr, now_ms)
        note_state(leader, state)
        leader.advance()
        self.waiters.changed_between_rounds(leader.tp)

    def _follow(self, tp: TopicPartition, log: Log, state: PartitionState) -> None:
        follower = self.followers.get(tp)
        if follower is not None and follower.epoch == state.leader_epoch:
            note_state(follower, state)
            return
        follower = self._follower(tp, log, state.leader_epoch, state.leader)
        note_state(follower, state)
        self._become(follower)

    def _follower(self, tp: TopicPartition, log: Log, epoch: int, leader: int) -> Follower:
        return Follower(
            *(tp, log, epoch, leader, self._known_high_watermark(tp)),
            lowering=self.directories.lowering,
            wrote=self.files.follower_wrote,
            committed=self._follower_committed,
        )

    def _become(self, follower: Follower) -> None:
        self._drop_roles(follower.tp)
        self.followers[follower.tp] = follower
        if not follower.may_ask:
            # What a crash has left, or what it wrote as a leader. Nobody else may come to ask for the flush.
            self.files.flush(follower.log)
        self._listeners.became_follower(follower)

    def stand_aside(self, tp: TopicPartition) -> None:
        """A leader that may have been replaced leads nobody any more, until `lead_again`, or a state says who leads:
        it follows nobody, in the leader epoch that it led in. Nothing where none leads here."""
        leader = self.leaders.get(tp)
        if leader is None:
            return
        leader.log.staging.roll_apart()
        follower = self._follower(tp, leader.log, leader.epoch, NO_BROKER)
        note_state(follower, leader)
        self._become(follower)
        self.aside[tp] = leader

    def lead_again(self, tp: TopicPartition) -> None:
        """One that stood aside leads as it did, in the same leader epoch, with what it knows of its in-sync set: the
        controller may have taken a member of which this broker has not heard. Nothing where none stood aside."""
        aside = self.aside.pop(tp, None)
        if aside is None:
            return
        log = self.followers[tp].log
        log.staging.roll_apart()
        self._drop_roles(tp)
        leader = self.leaders[tp] = aside.moved_to(log)
        self.isr_changes.goes_on(leader)
        self._listeners.became_leader(leader)

    def sought(self, tp: TopicPartition, replica: int, leader_epoch: int) -> None:
        """A follower asks one that stood aside, in the leader epoch in which this led."""
        aside = self.aside.get(tp)
        if aside is not None and leader_epoch == aside.epoch and replica in aside.isr.followers:
            self.sought_ms = self._clock.monotonic_ms()

    def _known_high_watermark(self, tp: TopicPartition) -> int:
        role = self.leaders.get(tp) or self.followers.get(tp)
        return role.high_watermark if role is not None else self.directories.high_watermark(tp) or 0

    def _drop_roles(self, tp: TopicPartition) -> None:
        leader, follower = self.leaders.pop(tp, None), self.followers.pop(tp, None)
        self.aside.pop(tp, None)
        if leader is not None:
            leader.retire()
            leader.changed_over()
        if follower is not None:
            follower.active = False
        if leader is not None or follower is not None:
            self._listeners.resigned(tp)
        self.waiters.changed_between_rounds(tp)

    def stop(self, tp: TopicPartition, *, delete: bool) -> ErrorCode:
        """As `give_up` of one, with the caller waiting for the disk."""
        return done_at_once(self.give_up([tp], delete=delete)).get(tp, ErrorCode.NONE)

    def give_up(
        self, partitions: Sequence[TopicPartition], *, delete: bool
    ) -> DiskSteps[dict[TopicPartition, ErrorCode]]:
        """Gives partitions up, as StopReplica says; with `delete` they are gone for certain when this returns.

        Returns those that could not be deleted. Run it with `change`.
        """
        for tp in partitions:
            self._drop_roles(tp)
            self._offline.pop(tp, None)
            self._missing.is_given_up(tp)
            yield None
        self.waiters.settle_outside(self._clock.monotonic_ms())
        if not delete:
            return {}
        yield from self.traffic.forgetting(partitions, [*self.leaders, *self.followers])
        yield from self.files.work_ends(partitions)
        deletion = yield from self.directories.delete_many(partitions)
        for removal in deletion.removals:
            self._remove_later(removal)
            yield None
        for tp, reason in deletion.refused.items():
            log_event.error("a partition could not be deleted", partition=tp, reason=reason)
        return dict.fromkeys(deletion.refused, ErrorCode.KAFKA_STORAGE_ERROR)

    def follower_fetched(
        self,
        leader: Leader,
        replica: int,
        offset: int,
        broker_epoch: int,
        beat: Beat | None,
        *,
        log_start: int,
    ) -> None:
        """A replica asks for an offset, in a read that was in order: it has everything below, from its log's start."""
        now_ms = self._clock.monotonic_ms()
        follower = leader.isr.followers[replica]
        if log_start != follower.log_start:
            follower.log_start = log_start
            self.waiters.changed(leader.tp)
        follower.broker_epoch = broker_epoch
        follower.follows_beat(beat)
        if leader.follower_fetched(replica, offset, now_ms):
            self.waiters.changed(leader.tp)
        if replica not in leader.isr.maximal:
            self.isr_changes.fetched(leader, follower, now_ms)

    def _follower_committed(self, tp: TopicPartition) -> None:
        """Outside of a round, where a fetcher has it from the leader."""
        if self.waiters:
            self.waiters.changed(tp)
            self.waiters.settle_outside(self._clock.monotonic_ms())

    def epoch(self, tp: TopicPartition) -> int:
        role = self.leaders.get(tp) or self.followers.get(tp)
        return role.epoch if role is not None else -1

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """What the replication checkpoint is to say."""
        roles: list[Leader | Follower] = [*self.leaders.values(), *self.followers.values()]
        return {role.tp: role.high_watermark for role in roles}

    def why_not_leader(self, tp: TopicPartition) -> ErrorCode:
        """What to answer for a partition that has no leader here."""
        if tp in self._offline or tp in self.directories.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if tp in self.followers:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- logs that move to another directory

    def log_changes_over(self, tp: TopicPartition) -> None:
        leader = self.leaders.get(tp)
        if leader is not None:
            leader.changes_over()

    def log_stays(self, tp: TopicPartition) -> None:
        leader = self.leaders.get(tp)
        if leader is not None:
            leader.changed_over()

    def log_replaced(self, tp: TopicPartition, log: Log) -> None:
        log.staging.roll_apart()
        leader = self.leaders.get(tp)
        if leader is not None:
            # Not the same leader with another log: requests remember a leader together with its log.
            self.leaders[tp] = leader.moved_to(log)
            leader.changed_over()
        elif tp in self.followers:
            self.followers[tp].go_on_in(log)
        self.waiters.changed_between_rounds(tp)

    async def flushes_end(self) -> None:
        """Returns when no segment is being made and no flush is running any more, of copies neither."""
        await self.files.flushes_end()
        await self.moves.flushes_end()

    # -- failures

    def fail_directory_of(self, tp: TopicPartition, reason: str) -> None:
        """Takes the log directory that a partition is in offline, with all its partitions; the others go on."""
        self.directories.fail_directory_of(tp, reason)

    def fail_directory(self, path: str, reason: str) -> None:
        self.directories.fail_directory(path, reason)

    def directory_failed(self, failed: Sequence[TopicPartition]) -> None:
        """As the owner of the directories. Wherever the fault was met: what was in it is served no more."""
        owner = self._opened()
        for tp in failed:
            leader = self.leaders.get(tp)
            if leader is not None:
                leader.retire(ErrorCode.KAFKA_STORAGE_ERROR)
            self._drop_roles(tp)
        self.waiters.settle_outside(self._clock.monotonic_ms())
        if failed:
            owner.replicas_failed(failed)
        if not self.directories.online_paths:
            reasons = "; ".join(f"{path}: {why}" for path, why in self.directories.failures.items())
            owner.no_directory_left(f"no log directory works any more: {reasons}")

    def _go_offline(self, tp: TopicPartition, reason: str) -> None:
        self._offline[tp] = reason
        self._drop_roles(tp)
        if tp not in self.directories.offline:  # those are logged by the directories
            log_event.error("partition is offline", partition=tp, reason=reason)
