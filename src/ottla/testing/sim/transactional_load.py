"""All that has to do with transactions in one schedule: its topics, its clients, and what must be true in the end.

    feeders (both generations of the protocol) ─▶ events ─▶ loop ─▶ made
                                                    └─ readers of what is committed

Its random choices are its own: a schedule without it is what it was before there was any of this.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from ottla.javahash import partition_of
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicPartition
from ottla.testing.sim.cluster import SimulatedCluster
from ottla.testing.sim.invariants.cluster import CommitAnswered, Partition
from ottla.testing.sim.members import OF_TRANSACTIONS, GroupRefusal, coordinator_of
from ottla.testing.sim.mover import PREFERRED, Mover
from ottla.testing.sim.profiles import Profile
from ottla.testing.sim.reader import follow_committed, read_all_committed
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.transaction_history import FENCED_COMMIT_NO_OFFSETS, TransactionHistory, broken
from ottla.testing.sim.transactional import TransactionalClient
from ottla.testing.sim.transactional_producer import HAUNTED, TransactionalProducer
from ottla.testing.sim.transforming import TransformLoop
from ottla.testing.sim.wire import Unreachable

EVENTS: Final = "events"
MADE: Final = "made"
_PARTITIONS: Final = 2
_STATE_PARTITIONS: Final = 2
#: Of one feeder, in a minute.
_TRANSACTIONS: Final = 40
#: Between two moves of a leader or a coordinator, on the average.
_MOVE_S: Final = 6.0
_TIMEOUT_MS: Final = (3_000, 6_000)

Patiently = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Coroutine[Any, Any, Any]]


def properties(replication_factor: int, min_insync_replicas: int) -> Mapping[str, str]:
    """Of brokers that have transactions."""
    return {
        "transaction.state.log.num.partitions": str(_STATE_PARTITIONS),
        "transaction.state.log.replication.factor": str(replication_factor),
        "transaction.state.log.min.isr": str(min_insync_replicas),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # Followers serve consumers.
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }


class TransactionalLoad:
    def __init__(self, cluster: SimulatedCluster, profile: Profile, random: Random) -> None:
        self._cluster = cluster
        self._profile = profile
        self._random = random
        self._clock = cluster.simulation.world.machine(cluster.clients_host).clock
        self.history = TransactionHistory(cluster.simulation.trace)
        self.history.on_acknowledged = cluster.history.on_acknowledged
        self.inputs = [TopicPartition(EVENTS, number) for number in range(_PARTITIONS)]
        self.outputs = [TopicPartition(MADE, number) for number in range(_PARTITIONS)]
        #: Few batches fit into a segment of some schedules: what was aborted lies in several.
        self._segment_bytes = random.choice((1 << 30, 1 << 30, 1_500))
        of_late_offsets = Random()
        of_late_offsets.setstate(random.getstate())  # a stream of its own: the others draw what they drew before
        seconds = profile.seconds
        count = max(1, round(_TRANSACTIONS * seconds / 60))
        self.feeders = [
            TransactionalProducer(
                self._producer(f"feeder{number}", newer=number == 1),
                Random(random.getrandbits(64)),
                self.inputs,
                count,
                pause_s=seconds / count,
                offsets_random=Random(of_late_offsets.getrandbits(64)),
            )
            for number in range(2)
        ]
        self.loop = TransformLoop(
            cluster.client("loop"),
            self._producer("loop", newer=random.random() < 0.5),
            self.history,
            Random(random.getrandbits(64)),
            self.inputs,
            self.outputs,
            lambda: not all(feeder.is_done for feeder in self.feeders),
            lambda group, broker: cluster.commits.replaced_at(group, broker) is not None,
        )
        self.mover = Mover(
            cluster.client("txn mover"), Random(random.getrandbits(64)), len(cluster.brokers), cluster.simulation.trace
        )

    def _producer(self, name: str, *, newer: bool) -> TransactionalClient:
        return TransactionalClient(
            self._cluster.client(name),
            self._clock,
            self.history,
            Random(self._random.getrandbits(64)),
            newer=newer,
            timeout_ms=self._random.randint(*_TIMEOUT_MS),
            commit_seen=self._commit_seen,
        )

    def _commit_seen(self, ended: CommitAnswered) -> None:
        wanted = TopicPartition(TRANSACTION_TOPIC, partition_of(ended.transactional_id, _STATE_PARTITIONS))
        for (tp, _), partition in self._cluster.state.partitions.items():
            if tp == wanted:
                self._cluster.state.commit_acknowledged(partition, ended)

    # What it does

    async def begin(self, min_insync_replicas: int) -> None:
        configs = {"min.insync.replicas": str(min_insync_replicas), "segment.bytes": str(self._segment_bytes)}
        for topic in (EVENTS, MADE):
            self._cluster.state.minima[topic] = min_insync_replicas
            await self._cluster.backing.create(topic, _PARTITIONS, self._profile.replication_factor, configs)
        # The topic of the transactions is made when somebody asks for a coordinator.
        looking = self._cluster.client("looking for transactions")
        while True:
            if await self._has_leaders(looking):
                return
            await asyncio.sleep(0.1)

    async def _has_leaders(self, client: ClusterClient) -> bool:
        try:
            await coordinator_of(client, "anybody", OF_TRANSACTIONS)
            for number in range(_STATE_PARTITIONS):
                await client.leader_of(TopicPartition(TRANSACTION_TOPIC, number))
        except (Unreachable, GroupRefusal):
            return False
        return True

    def load(self) -> list[Coroutine[Any, Any, None]]:
        return [*(feeder.run() for feeder in self.feeders), self.loop.run(), self._move()]

    def endless(self) -> list[Coroutine[Any, Any, None]]:
        leaders = [
            follow_committed(self._cluster.client(f"committed{tp.topic}{tp.partition}"), tp, self.history)
            for tp in (self.inputs[0], self.outputs[0])
        ]
        client = self._cluster.client("committed at followers")
        return [*leaders, follow_committed(client, self.inputs[1], self.history, of_followers=True)]

    def hurry(self) -> None:
        for feeder in self.feeders:
            feeder.hurry()

    async def _move(self) -> None:
        """Leaders and coordinators go elsewhere."""
        random, loop = Random(self._random.getrandbits(64)), self._cluster.simulation.loop
        states = [TopicPartition(TRANSACTION_TOPIC, number) for number in range(_STATE_PARTITIONS)]
        end = loop.time() + self._profile.seconds
        while loop.time() < end:
            await asyncio.sleep(min(random.expovariate(1 / _MOVE_S), end - loop.time()))
            tp = random.choice([*self.inputs, *self.outputs, *states, *states])
            if random.random() < 0.5:
                await self.mover.elect(tp, PREFERRED)
            else:
                await self.mover.reassign(tp, self._profile.replication_factor)

    # What must be true

    def unended(self) -> str | None:
        """Which transactions are open; None where all have ended."""
        for (tp, _), partition in self._cluster.state.partitions.items():
            if partition.tree is None:
                continue
            if tp.topic == TRANSACTION_TOPIC and (ids := _unfinished(partition)):
                return f"under way: {', '.join(ids)}"
            for replica in partition.replicas.values():
                transactions = replica.log.transactions
                if replica.leads and transactions is not None and transactions.open:
                    return f"{tp}: transactions of producers {sorted(transactions.open)} are open"
        return None

    async def verify(self, patiently: Patiently) -> None:
        """Raises InvariantBroken and HistoryFault."""
        reader = self._cluster.client("verifying transactions")
        found = {tp: await patiently(partial(read_all_committed, reader, tp)) for tp in [*self.inputs, *self.outputs]}
        self.history.check(found)
        self.loop.check({tp: found[tp] for tp in self.inputs}, await patiently(self.loop.committed))
        late = await patiently(partial(self.loop.stored_of, HAUNTED))
        if any(position >= 0 for position in late.values()):
            broken(FENCED_COMMIT_NO_OFFSETS, f"{HAUNTED} has positions of producers whose epoch was over: {late}")
        self.history.check_order()

    @property
    def topics(self) -> set[str]:
        """Those that exist because of it."""
        return {EVENTS, MADE, TRANSACTION_TOPIC, OFFSETS_TOPIC}

    @property
    def events(self) -> Counter[str]:
        return self.history.counts + self.loop.events + sum((each.events for each in self.feeders), Counter[str]())


def _unfinished(partition: Partition) -> list[str]:
    decisions = partition.decisions
    decisions.read_on(partition.committed.values(), partition.decided)
    return decisions.unfinished()
