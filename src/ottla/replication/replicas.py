"""All partitions that this broker holds: who leads, who follows, what is offline; and the end of a round.

`apply` is the one way in for changes of role, in the shape of Kafka's LeaderAndIsr. `write_round` is called once for
each round of the network, after all appends of the round were staged: one write a partition, then the high watermarks,
then those who waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ottla import logs
from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Workers
from ottla.replication.flushing import Flushing
from ottla.replication.follower import Follower
from ottla.replication.isr import InSyncReplicas
from ottla.replication.leader import Leader
from ottla.replication.waiters import Waiters
from ottla.storage.directories import LogDirectories
from ottla.storage.errors import StorageFault
from ottla.storage.log import Log

log_event = logs.logger("replication")


class RoleState(Protocol):
    """What LeaderAndIsr says of one partition."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def leader(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def isr(self) -> Iterable[int]: ...
    @property
    def replicas(self) -> Iterable[int]: ...


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
        high_watermarks: Mapping[TopicPartition, int],
        now_ms: Callable[[], int],
    ) -> None:
        self.broker_id = broker_id
        self.directories = directories
        self.waiters = waiters
        self.leaders: dict[TopicPartition, Leader] = {}
        self.followers: dict[TopicPartition, Follower] = {}
        #: Why a partition cannot be served here.
        self.offline: dict[TopicPartition, str] = {}
        self._high_watermarks = high_watermarks
        self._now_ms = now_ms
        self._listeners: list[RoleListener] = []
        self._dirty: list[Leader] = []
        self._flushing = Flushing(workers, self._flushed, self._flush_failed)

    def listen(self, listener: RoleListener) -> None:
        self._listeners.append(listener)

    # -- roles

    def apply(self, states: Iterable[RoleState], config_for: Callable[[str], object]) -> dict[TopicPartition, ErrorCode]:
        """Takes on the roles that the controller gave; a state of an older term changes nothing."""
        answers: dict[TopicPartition, ErrorCode] = {}
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            answers[tp] = self._apply_one(tp, state, config_for)
        return answers

    def _apply_one(self, tp: TopicPartition, state: RoleState, config_for: Callable[[str], object]) -> ErrorCode:
        if state.leader_epoch < self.epoch(tp):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        log = self._log_for(tp, state, config_for)
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if state.leader == self.broker_id:
            self._lead(tp, log, state)
        else:
            self._follow(tp, log, state)
        return ErrorCode.NONE

    def _log_for(self, tp: TopicPartition, state: RoleState, config_for: Callable[[str], object]) -> Log | None:
        if tp in self.offline:
            return None
        log = self.directories.get(tp)
        if log is not None:
            return log
        try:
            return self.directories.create(tp, state.topic_id, config_for(tp.topic))  # type: ignore[arg-type]
        except (OSError, StorageFault) as fault:
            self._go_offline(tp, f"its folder cannot be created: {fault}")
            return None

    def _lead(self, tp: TopicPartition, log: Log, state: RoleState) -> None:
        isr = InSyncReplicas(self.broker_id, state.replicas, state.isr)
        leader = self.leaders.get(tp)
        if leader is not None and leader.epoch == state.leader_epoch:
            leader.isr = isr
            if leader.advance():
                self.waiters.changed(tp)
            return
        self._drop_roles(tp)
        leader = Leader(tp, log, state.leader_epoch, isr, self._known_high_watermark(tp))
        self.leaders[tp] = leader
        for listener in self._listeners:
            listener.became_leader(leader)

    def _follow(self, tp: TopicPartition, log: Log, state: RoleState) -> None:
        follower = Follower(tp, log, state.leader_epoch, state.leader, self._known_high_watermark(tp))
        self._drop_roles(tp)
        self.followers[tp] = follower
        for listener in self._listeners:
            listener.became_follower(follower)

    def _known_high_watermark(self, tp: TopicPartition) -> int:
        role = self.leaders.get(tp) or self.followers.get(tp)
        return role.high_watermark if role is not None else self._high_watermarks.get(tp, 0)

    def _drop_roles(self, tp: TopicPartition) -> None:
        leader = self.leaders.pop(tp, None)
        if leader is not None:
            leader.active = False
            for listener in self._listeners:
                listener.resigned(tp)
        self.followers.pop(tp, None)
        self.waiters.changed(tp)

    def stop(self, tp: TopicPartition, *, delete: bool) -> None:
        """Gives a partition up, as StopReplica says; its files go with it where they are to be deleted."""
        self._drop_roles(tp)
        self.offline.pop(tp, None)
        if delete and self.directories.get(tp) is not None:
            self.directories.delete(tp)

    def epoch(self, tp: TopicPartition) -> int:
        role = self.leaders.get(tp) or self.followers.get(tp)
        return role.epoch if role is not None else -1

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """What the replication checkpoint is to say."""
        roles: list[Leader | Follower] = [*self.leaders.values(), *self.followers.values()]
        return {role.tp: role.high_watermark for role in roles}

    def why_not_leader(self, tp: TopicPartition) -> ErrorCode:
        """What to answer for a partition that has no leader here."""
        if tp in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if tp in self.followers:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- rounds

    def staged(self, leader: Leader) -> None:
        """Notes that the round has something to write for this leader."""
        if not leader.dirty:
            leader.dirty = True
            self._dirty.append(leader)

    def write_round(self) -> None:
        """Writes what the round staged, one write a partition, and moves the high watermarks."""
        if not self._dirty:
            return
        dirty, self._dirty = self._dirty, []
        for leader in dirty:
            leader.dirty = False
            try:
                leader.log.write_staged()
            except StorageFault as fault:
                self._write_failed(leader, fault)
                continue
            self._written(leader)

    def _written(self, leader: Leader) -> None:
        leader.advance()
        # Followers may read up to the log's end, so they wait for it and not for the high watermark.
        self.waiters.changed(leader.tp)
        if leader.log.flush_due(self._now_ms()):
            self._flushing.request(leader.log)

    def _write_failed(self, leader: Leader, fault: StorageFault) -> None:
        leader.fault = ErrorCode.KAFKA_STORAGE_ERROR
        if fault.directory_failed:
            self.fail_directory(leader.log.directory, str(fault))
        else:
            log_event.limited("disk-full", 10_000).error("an append was refused", partition=leader.tp, reason=fault)

    # -- flushes

    def request_flush(self, tp: TopicPartition) -> None:
        """Starts a flush now, for `flush.ms` and for recovery points."""
        role = self.leaders.get(tp) or self.followers.get(tp)
        if role is not None:
            self._flushing.request(role.log)

    def _flushed(self, tp: TopicPartition) -> None:
        leader = self.leaders.get(tp)
        if leader is not None:
            leader.advance()
            self.waiters.changed(tp)
            self.waiters.settle(self._now_ms())

    def _flush_failed(self, tp: TopicPartition, error: OSError) -> None:
        log = self.directories.get(tp)
        if log is not None:
            self.fail_directory(log.directory, f"fsync failed: {error}")

    # -- failures

    def fail_directory(self, inside: str, reason: str) -> None:
        """Takes a log directory and all its partitions offline; the others go on."""
        for tp in self.directories.fail_directory_of(inside, reason):
            self._go_offline(tp, reason)
        self.waiters.settle(self._now_ms())

    def _go_offline(self, tp: TopicPartition, reason: str) -> None:
        self.offline[tp] = reason
        self._drop_roles(tp)
        log_event.error("partition is offline", partition=tp, reason=reason)
