"""All partitions that this broker holds: who leads, who follows, and what is offline.

`apply` is the one way in for changes of role, in the shape of Kafka's LeaderAndIsr. What is appended in a round is
written by `writes.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, Protocol

from ottla import logs
from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import NO_BROKER, ErrorCode, TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.flushing import Flushing
from ottla.replication.follower import Follower
from ottla.replication.isr import InSyncReplicas
from ottla.replication.leader import Leader
from ottla.replication.moves import Moves
from ottla.replication.traffic import Topics
from ottla.replication.waiters import Waiters
from ottla.storage.directories import LogDirectories
from ottla.storage.directory_errors import DirectoryError
from ottla.storage.errors import StorageFault
from ottla.storage.log import Log
from ottla.storage.placing import NewReplica
from ottla.storage.removal import FolderRemoval

log_event = logs.logger("replication")


#: Logs that are tried again in one turn of the loop; each is some files.
_MADE_AT_ONCE: Final = 100


class RoleListener(Protocol):
    """Coordinators follow the leaders of their partitions through this."""

    def became_leader(self, leader: Leader) -> None: ...

    def became_follower(self, follower: Follower) -> None: ...

    def resigned(self, tp: TopicPartition) -> None: ...


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
        #: Why a partition cannot be served, where its directory could not take it; others stand with the directories.
        self._offline: dict[TopicPartition, str] = {}
        #: Those of them that a full disk had no room for, and whether they were new: they are tried again.
        self._unmade: dict[TopicPartition, tuple[NewReplica, bool]] = {}
        self._clock = clock
        self._remove_later = remove_later
        self._listeners: list[RoleListener] = []
        #: Told which replicas a failed directory has taken with it.
        self.on_failed: Callable[[Sequence[TopicPartition]], None] | None = None
        #: Told which replicas there is room for now that could not be made before.
        self.on_made: Callable[[Sequence[TopicPartition]], None] | None = None
        #: Told why no directory is left.
        self.on_none_left: Callable[[str], None] | None = None
        directories.on_failed = self._directory_failed
        #: For metrics.
        self.traffic = Topics()
        self._flushing = Flushing(workers, self._flushed, self._flush_failed)
        self.moves = Moves(directories, clock, self._log_replaced, remove_later)

    def listen(self, listener: RoleListener) -> None:
        self._listeners.append(listener)

    # -- roles

    def apply(
        self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]
    ) -> dict[TopicPartition, ErrorCode]:
        """Takes on the roles that the controller gave; a state of an older term changes nothing."""
        self._create_missing(states, config_for)
        answers: dict[TopicPartition, ErrorCode] = {}
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            answers[tp] = self._apply_one(tp, state)
        return answers

    def _create_missing(self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]) -> None:
        """Creates the logs that are to be here and are not, all at once: names are made durable once a directory."""
        for state in states:
            if state.leader not in {self.broker_id, NO_BROKER}:
                self.directories.give_up_missing(TopicPartition(state.topic, state.partition))
        for is_new in (True, False):
            missing = [
                NewReplica(TopicPartition(state.topic, state.partition), state.topic_id, config_for(state.topic))
                for state in states
                if state.is_new == is_new and self.broker_id in state.replicas
            ]
            missing = [replica for replica in missing if self.directories.get(replica.partition) is None]
            for replica in missing:
                # Each by itself, or its reason would be taken for that of the others.
                if replica.partition in self.directories.offline:
                    self._go_offline(replica.partition, self.directories.offline[replica.partition])
            missing = [replica for replica in missing if replica.partition not in self.directories.offline]
            if not missing:
                continue
            try:
                self.directories.create_many(missing, now_ms=self._clock.wall_ms(), is_new=is_new)
            except (DirectoryError, StorageFault) as fault:
                waits = isinstance(fault, StorageFault) and not fault.directory_failed
                reason = f"{fault}; it is tried again until it can be made" if waits else str(fault)
                for replica in missing:
                    if self.directories.get(replica.partition) is None:
                        if waits:
                            self._unmade[replica.partition] = (replica, is_new)
                        self._go_offline(replica.partition, reason)

    def make_missing(self) -> None:
        """Tries again to make the logs that there was no room for. Who gets one is told until it has a role."""
        if not self._unmade:
            return
        tried = list(islice(self._unmade.items(), _MADE_AT_ONCE))
        for is_new in (True, False):
            wanted = [replica for _, (replica, new) in tried if new == is_new]
            with suppress(DirectoryError, StorageFault):
                self.directories.create_many(wanted, now_ms=self._clock.wall_ms(), is_new=is_new)
        for tp, entry in tried:
            # The next ones come first next time.
            del self._unmade[tp]
            self._unmade[tp] = entry
        made = [tp for tp, _ in tried if self.directories.get(tp) is not None]
        if made and self.on_made is not None:
            self.on_made(made)

    def _apply_one(self, tp: TopicPartition, state: PartitionState) -> ErrorCode:
        if state.leader_epoch < self.epoch(tp):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        log = self.directories.get(tp)
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._offline.pop(tp, None)
        self._unmade.pop(tp, None)
        if state.leader == self.broker_id:
            self._lead(tp, log, state)
        else:
            self._follow(tp, log, state)
        return ErrorCode.NONE

    def _lead(self, tp: TopicPartition, log: Log, state: PartitionState) -> None:
        isr = InSyncReplicas(self.broker_id, state.replicas, state.isr)
        leader = self.leaders.get(tp)
        if leader is not None and leader.epoch == state.leader_epoch:
            leader.isr = isr
            if leader.advance():
                self.waiters.changed(tp)
            return
        high_watermark = self._known_high_watermark(tp)
        self._drop_roles(tp)
        former, leader = leader, Leader(tp, log, state.leader_epoch, isr, high_watermark)
        if former is not None:
            former.successor = leader
        self.leaders[tp] = leader
        for listener in self._listeners:
            listener.became_leader(leader)

    def _follow(self, tp: TopicPartition, log: Log, state: PartitionState) -> None:
        high_watermark = self._known_high_watermark(tp)
        follower = Follower(tp, log, state.leader_epoch, state.leader, high_watermark, self.directories.truncating)
        self._drop_roles(tp)
        self.followers[tp] = follower
        for listener in self._listeners:
            listener.became_follower(follower)

    def _known_high_watermark(self, tp: TopicPartition) -> int:
        role = self.leaders.get(tp) or self.followers.get(tp)
        return role.high_watermark if role is not None else self.directories.high_watermark(tp) or 0

    def _drop_roles(self, tp: TopicPartition) -> None:
        leader = self.leaders.pop(tp, None)
        if leader is not None:
            leader.active = False
            for listener in self._listeners:
                listener.resigned(tp)
        self.followers.pop(tp, None)
        self.waiters.changed(tp)

    def stop(self, tp: TopicPartition, *, delete: bool) -> ErrorCode:
        """Gives a partition up, as StopReplica says; with `delete` it is gone for certain when this returns."""
        self._drop_roles(tp)
        self._offline.pop(tp, None)
        self._unmade.pop(tp, None)
        if delete:
            self.traffic.forget(tp.topic)
            try:
                removals = self.directories.delete(tp)
            except (DirectoryError, StorageFault) as fault:
                log_event.error("a partition could not be deleted", partition=tp, reason=fault)
                return ErrorCode.KAFKA_STORAGE_ERROR
            for removal in removals:
                self._remove_later(removal)
        return ErrorCode.NONE

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

    def _log_replaced(self, tp: TopicPartition, log: Log) -> None:
        """A copy in another directory took over: the same records, the same offsets."""
        leader = self.leaders.get(tp)
        if leader is not None:
            # Not the same leader with another log: requests remember a leader together with its log.
            leader.active = False
            leader.successor = Leader(tp, log, leader.epoch, leader.isr, leader.high_watermark)
            self.leaders[tp] = leader.successor
        elif tp in self.followers:
            self.followers[tp].log = log
        self.waiters.changed(tp)

    # -- flushes

    def flush(self, log: Log) -> None:
        """Starts a flush now, or another one behind that which is running."""
        self._flushing.request(log)

    def request_flush(self, tp: TopicPartition) -> None:
        """Starts a flush now, for `flush.ms` and for recovery points."""
        role = self.leaders.get(tp) or self.followers.get(tp)
        if role is not None:
            self._flushing.request(role.log)

    async def flush_found(self) -> None:
        """Before the first request: flushes what a crash has left, where the high watermark waits for the disk.

        It was acknowledged, and may be in the system's memory only: nobody may see a shorter log than before.
        """
        for leader in list(self.leaders.values()):
            if leader.durable_end < leader.log.end_offset:
                self._flushing.request(leader.log)
        await self._flushing.idle()

    async def catch_up(self, seconds: float) -> None:
        """Before a stop: whoever waits only for this broker's disk has its answer when this returns."""
        await self._flushing.catch_up(seconds)
        self.waiters.settle(self._clock.monotonic_ms())

    async def flushes_end(self) -> None:
        """Returns when no flush is running any more."""
        await self._flushing.idle()

    def _flushed(self, log: Log) -> None:
        leader = self.leaders.get(log.tp)
        if leader is None or leader.log is not log:
            return
        try:
            leader.advance()
            self.waiters.changed(log.tp)
        except Exception as fault:
            # Nobody may come to tell them later.
            self.waiters.give_up(log.tp, fault)
        self.waiters.settle(self._clock.monotonic_ms())
        if log.flush_due(self._clock.wall_ms()):
            # What was written while it ran asked for none, and nobody else may come to ask.
            self._flushing.request(log)

    def _flush_failed(self, log: Log, error: OSError | StorageFault) -> None:
        if isinstance(error, StorageFault) and not error.directory_failed:
            log_event.warning_limited("a flush has to wait", key=str(log.tp), partition=log.tp, reason=error)
        elif self.directories.get(log.tp) is log:
            # One that was deleted meanwhile has lost its files, which says nothing about the device.
            self.fail_directory_of(log.tp, f"fsync failed: {error}")

    # -- failures

    def fail_directory_of(self, tp: TopicPartition, reason: str) -> None:
        """Takes the log directory that a partition is in offline, with all its partitions; the others go on."""
        path = self.directories.directory_of(tp)
        if path is not None:
            self.fail_directory(path, reason)

    def fail_directory(self, path: str, reason: str) -> None:
        self.directories.fail_directory(path, reason)

    def _directory_failed(self, _: str, failed: Sequence[TopicPartition]) -> None:
        """Whoever has met the fault: what was in the directory is served no more."""
        for tp in failed:
            leader = self.leaders.get(tp)
            if leader is not None:
                leader.end_error = ErrorCode.KAFKA_STORAGE_ERROR
            self._drop_roles(tp)
        self.waiters.settle(self._clock.monotonic_ms())
        if failed and self.on_failed is not None:
            self.on_failed(failed)
        if not self.directories.online_paths and self.on_none_left is not None:
            reasons = "; ".join(f"{path}: {why}" for path, why in self.directories.failures.items())
            self.on_none_left(f"no log directory works any more: {reasons}")

    def _go_offline(self, tp: TopicPartition, reason: str) -> None:
        self._offline[tp] = reason
        self._drop_roles(tp)
        if tp not in self.directories.offline:  # of those the directories have told
            log_event.error("partition is offline", partition=tp, reason=reason)
