"""Reads brokers into the state that the invariants speak of: the one place that knows where brokers keep things.

Only what ran in a turn can have changed in it, so that an observer looks at those processes alone; of each replica it
compares a few fields with what it saw last, and reads on only where one differs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ottla.coordination.zookeeper.client import RemoteTree
from ottla.model import TRANSACTION_TOPIC, ZERO_TOPIC_ID, TopicPartition
from ottla.ports.memory.processes import Process
from ottla.records.batch import TRANSACTIONAL
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment
from ottla.testing.sim.invariants.cluster import Cluster, Replica
from ottla.testing.sim.invariants.shadow_log import SeenBatch
from ottla.testing.sim.transaction_observation import seen_decisions, seen_transaction

if TYPE_CHECKING:
    from ottla.ports.memory.disk import MemoryDisk
    from ottla.testing.sim.world import SimulatedBroker, Simulation

#: Base offset, size behind the first two fields, leader epoch, magic, checksum, attributes, last offset delta.
_BATCH_HEAD: Final = struct.Struct(">qiibIhi")
_SIZE_OVERHEAD: Final = 12


class _SeenReplica:
    """What a replica was like when it was looked at last."""

    __slots__ = ("end", "epoch", "isr_mark", "log", "position", "replica", "role", "segment", "start", "watermark")

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.role: Leader | Follower | None = None
        self.log: Log | None = None
        self.start = self.end = self.watermark = self.epoch = -1
        self.isr_mark: object = None
        #: Where in which segment the next batch will lie.
        self.segment: Segment | None = None
        self.position = 0


class Observer:
    """Watches the brokers of a simulation. The tree has an observer of its own (`tree_observation.py`)."""

    def __init__(self, simulation: Simulation, cluster: Cluster) -> None:
        self.cluster = cluster
        self._simulation = simulation
        self._seen: dict[str, dict[TopicPartition, _SeenReplica]] = {}
        self._lives: dict[str, tuple[Process, SimulatedBroker]] = {}
        #: Of each process that lives: the session at the tree that it used last.
        self._sessions: dict[str, int] = {}
        #: How many processes had ended when it looked last.
        self._ends = 0
        simulation.watchers.append(self.look)

    def look(self, ran: Mapping[Process, None]) -> None:
        """After a turn. Raises InvariantBroken."""
        if self._ends != self._simulation.loop.ends:
            self._ends = self._simulation.loop.ends
            for name, (process, _) in list(self._lives.items()):
                if process.ended:
                    self._has_ended(name)
        for process in ran:
            if process.ended:
                continue
            life = self._lives.get(process.name)
            if life is None or life[0] is not process:
                broker = next((each for each in self._simulation.brokers if each.process is process), None)
                if broker is None:
                    continue
                life = self._lives[process.name] = process, broker
            if (session := session_of(life[1])) and self._sessions.get(process.name) != session:
                self._sessions[process.name] = session
                self.cluster.uses_session(session, process)
            self._look_at(process, life[1])
        self.cluster.settle()

    def _has_ended(self, name: str) -> None:
        del self._lives[name]
        self._sessions.pop(name, None)
        for seen in self._seen.pop(name, {}).values():
            self.cluster.resign(seen.replica)

    def _look_at(self, process: Process, broker: SimulatedBroker) -> None:
        replicas = replicas_of(broker)
        if replicas is None:
            return
        seen = self._seen.setdefault(process.name, {})
        leaders, followers = replicas.leaders, replicas.followers
        for tp, leader in leaders.items():
            known = seen.get(tp)
            log = leader.log
            if (
                known is None
                or known.role is not leader
                or known.epoch != leader.epoch
                or known.watermark != leader.high_watermark
                or known.end != log.places.end_offset
                or known.isr_mark is not isr_mark(leader)
                or known.start != log.places.start_offset
                or known.log is not log
            ):
                self._changed(process, broker, seen, tp, leader)
        for tp, follower in followers.items():
            known = seen.get(tp)
            log = follower.log
            if (
                known is None
                or known.role is not follower
                or known.epoch != follower.epoch
                or known.watermark != follower.high_watermark
                or known.end != log.places.end_offset
                or known.start != log.places.start_offset
                or known.log is not log
            ):
                self._changed(process, broker, seen, tp, follower)
        if len(seen) != len(leaders) + len(followers):
            for tp in [tp for tp in seen if tp not in leaders and tp not in followers]:
                self.cluster.resign(seen.pop(tp).replica)

    def _changed(
        self,
        process: Process,
        broker: SimulatedBroker,
        seen: dict[TopicPartition, _SeenReplica],
        tp: TopicPartition,
        role: Leader | Follower,
    ) -> None:
        cluster, log = self.cluster, role.log
        topic_id = bytes(log.topic_id)
        known = seen.get(tp)
        if known is None or known.replica.partition.topic_id != topic_id:
            known = seen[tp] = _SeenReplica(cluster.replica(tp, replicas_id(broker), topic_id))
        replica = known.replica
        leads = isinstance(role, Leader)
        if known.role is not role or known.epoch != role.epoch:
            if known.epoch == role.epoch and isinstance(known.role, Leader) is not leads:
                cluster.events["leaders that lead again" if leads else "leaders that stand aside"] += 1
            if isinstance(role, Leader) and isinstance(known.role, Leader) and known.role is not role:
                self._leads_on(replica, known.role, role)
            known.role, known.epoch = role, role.epoch
            cluster.take_role(replica, leads=leads, epoch=role.epoch, life=process)
            self._simulation.trace.say(
                "cluster", f"{broker.name} {'leads' if leads else 'follows in'} {tp} {role.epoch}"
            )
        self._read_log(broker.ports.disk, known, log)
        if known.watermark != role.high_watermark:
            known.watermark = role.high_watermark
            cluster.take_watermark(replica, role.high_watermark)
        replica.stable = -1 if replica.log.transactions is None else stable_offset(role)
        if isinstance(role, Leader) and known.isr_mark is not isr_mark(role):
            known.isr_mark = isr_mark(role)
            settled, maximal = isr_of(role)
            cluster.take_isr(replica, settled, maximal)
            self._simulation.trace.say("cluster", f"{broker.name} counts {sorted(maximal)} for {tp}")

    def _leads_on(self, replica: Replica, before: Leader, now: Leader) -> None:
        if now.epoch > before.epoch + 1:
            return  # somebody else may have led
        forgotten = frozenset[int]()
        if now.epoch == before.epoch:
            followers = now.isr.followers
            forgotten = frozenset(
                each.id
                for each in before.isr.followers.values()
                if each.id in followers and followers[each.id].end < each.end
            )
        self.cluster.leads_on(replica, forgotten=forgotten, left_waiting=before.present is not now)

    def _read_log(self, disk: MemoryDisk, known: _SeenReplica, log: Log) -> None:
        replica, places = known.replica, log.places
        end, start = places.end_offset, places.start_offset
        base = places.segments[0].base_offset
        if known.log is log and end < known.end:
            self._simulation.trace.say("cluster", f"broker {replica.broker} cuts {log.tp} from {known.end} to {end}")
            known.segment = None
            self.cluster.log_was_cut(replica, end)
        was_opened = known.log is not log
        if was_opened or replica.log.end < base or (base == end and end < known.end):
            known.log, known.segment = log, None
            self.cluster.begin_log(replica, base)
        known.start, known.end = start, end
        if replica.log.end < end:
            batches = list(_new_batches(disk, known, log, replica.log.end))
            if replica.partition.is_compacted and (not batches or batches[-1].end < end):
                # What stood at its end was cleaned away, and the active segment is empty.
                epoch = batches[-1].epoch if batches else replica.log.last_epoch
                batches.append(SeenBatch(end - 1, end, epoch, 0))
            self.cluster.log_grew(replica, batches)
        if was_opened and replica.log.transactions is not None:
            replica.log.transactions.read_from_files()


def _new_batches(disk: MemoryDisk, known: _SeenReplica, log: Log, after: int) -> Iterator[SeenBatch]:
    """Those that end behind `after`."""
    segments = log.places.segments
    first = len(segments) - 1
    while first > 0 and segments[first].base_offset > after:
        first -= 1
    for segment in segments[first:]:
        data = disk.content(segment.path())
        position = known.position if segment is known.segment else 0
        while position + _BATCH_HEAD.size <= segment.size:
            base, size, epoch, _, checksum, attributes, delta = _BATCH_HEAD.unpack_from(data, position)
            at, position = position, position + _SIZE_OVERHEAD + size
            if base + delta + 1 > after:
                transaction = seen_transaction(data, at) if attributes & TRANSACTIONAL else None
                decided = seen_decisions(data, at) if log.tp.topic == TRANSACTION_TOPIC else ()
                yield SeenBatch(base, base + delta + 1, epoch, checksum, transaction, decided)
        known.segment, known.position = segment, position


# Where brokers keep it


def replicas_of(broker: SimulatedBroker) -> Replicas | None:
    """None while it has none, or no process runs."""
    running = broker.broker
    return None if running is None or running.services is None else running.services.replicas


def replicas_id(broker: SimulatedBroker) -> int:
    replicas = replicas_of(broker)
    assert replicas is not None
    return replicas.broker_id


def session_of(broker: SimulatedBroker) -> int:
    """At the tree that is served to it; 0 where it has none now."""
    running = broker.broker
    tree = None if running is None else running.tree
    return tree.session.id if isinstance(tree, RemoteTree) else 0


def isr_mark(leader: Leader) -> object:
    """Something that is another object after each change of what the leader counts."""
    return leader.isr.maximal


def isr_of(leader: Leader) -> tuple[frozenset[int], frozenset[int]]:
    """The members that count now, and with those that a pending change adds or takes away."""
    return leader.isr.members, leader.isr.maximal


def stable_offset(role: Leader | Follower) -> int:
    """The last stable offset; -1 where the broker has to read first which transactions are open."""
    memory = role.log.producer_memory
    return role.last_stable_offset if memory.loaded is not None or memory.knows_of_none else -1


def topic_id_of(broker: SimulatedBroker, tp: TopicPartition) -> bytes:
    replicas = replicas_of(broker)
    role = None if replicas is None else replicas.leaders.get(tp) or replicas.followers.get(tp)
    return bytes(ZERO_TOPIC_ID) if role is None else bytes(role.log.topic_id)
