"""One schedule: a cluster, its load and its faults from one seed, and what must be true in the end.

    ClusterSchedule(seed, PROFILES["any"]).run()      raises ScheduleFailed, with the seed and the trace's end

After the last fault everything is healed. Then, within 30 virtual seconds: every request is answered, every
acknowledged record is there once and in order, all replicas are in the ISR and equal, and the tree is as acknowledged.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.ports.memory import MemoryPorts
from ottla.testing.sim.altering import Alterer
from ottla.testing.sim.carrier import PROPERTIES as TWO_DIRECTORIES
from ottla.testing.sim.carrier import Carrier
from ottla.testing.sim.cluster import Backing, SimulatedCluster
from ottla.testing.sim.consumers import Consumer
from ottla.testing.sim.faults import Faults
from ottla.testing.sim.history import HistoryFault, Row
from ottla.testing.sim.invariants import InvariantBroken
from ottla.testing.sim.machines import BrokerFault
from ottla.testing.sim.members import GroupRefusal, Member, committed
from ottla.testing.sim.mover import PREFERRED, UNCLEAN, Mover
from ottla.testing.sim.news import check_news
from ottla.testing.sim.operator import Operator
from ottla.testing.sim.producer import IdempotentProducer, PlainProducer
from ottla.testing.sim.profiles import POWER, Profile
from ottla.testing.sim.reader import ReadFault, follow, read_all, start_offset
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.short_lived import ShortLivedTopics
from ottla.testing.sim.tables import CONFIGS as TABLE_CONFIGS
from ottla.testing.sim.tables import PROPERTIES as CLEANING
from ottla.testing.sim.tables import TABLE, Tables
from ottla.testing.sim.transaction_history import EVERY_TRANSACTION_ENDS, broken
from ottla.testing.sim.transactional_load import TransactionalLoad
from ottla.testing.sim.transactional_load import properties as transaction_properties
from ottla.testing.sim.trimmer import Trimmer
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import Simulation

#: Virtual seconds from the healing until everything must be well again.
LIVENESS_S: Final = 30.0
#: Virtual seconds until a cluster without faults has started, and made its topics.
BEGINNING_S: Final = 60.0
#: Between two looks at whether it is.
_LOOK_S: Final = 0.25
GROUP: Final = "group"


class ScheduleFailed(AssertionError):
    """A seed has found something. `invariant` names what was broken, where it was one."""

    def __init__(self, seed: int, profile: str, error: BaseException, tail: str) -> None:
        super().__init__(f"seed {seed}, profile {profile!r}: {error!r}\n{tail}")
        self.seed = seed
        found = error
        while not isinstance(found, InvariantBroken | HistoryFault) and found.__cause__ is not None:
            found = found.__cause__
        self.invariant = found.name if isinstance(found, InvariantBroken) else type(found).__name__


@dataclass(slots=True)
class ScheduleOutcome:
    """What a schedule has done: how often each kind of event occurred in it."""

    seed: int
    digest: str = ""
    acknowledged: int = 0
    calls: int = 0
    events: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> bool:
        """A schedule in which nobody was elected, no log was cut and no ISR changed has shown nothing."""
        return any(self.events[kind] for kind in ("elections", "truncations", "ISR changes"))


BackingOf = Callable[[Simulation], Backing]


class ClusterSchedule:
    def __init__(self, seed: int, profile: Profile, backing: BackingOf) -> None:
        self.seed = seed
        self.profile = profile
        self.simulation = Simulation(seed)
        random = self.random = self.simulation.random
        self.simulation.world.fabric.chop = random.random() < 0.2
        self.simulation.world.fabric.gives_up_s = random.uniform(3.0, 30.0)
        self.min_insync_replicas = random.choice(profile.min_insync_replicas)
        self.flush = random.random() < profile.flush
        self.is_operated = random.random() < profile.operator
        brokers = random.choice(profile.brokers)
        properties = {
            "log.flush.interval.messages": "1" if self.flush else str(2**63 - 1),
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": str(profile.replication_factor),
            "group.initial.rebalance.delay.ms": "100",
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.heartbeat.interval.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "1000",
            "log.cleaner.enable": "false",
            "replica.lag.time.max.ms": str(random.choice((2_000, 5_000, 10_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(random.choice((500, 5_000))),
            "num.replica.fetchers": str(random.choice((1, 1, 2))),
            "auto.create.topics.enable": "false",
            **profile.properties,
        }
        compacts = Random(f"compaction {seed}").random() < profile.compacts
        if compacts:
            properties |= CLEANING
        carries = Random(f"directories {seed}").random() < profile.carries
        if carries:
            properties |= TWO_DIRECTORIES
        is_transactional = Random(f"transactions {seed}").random() < profile.transactions
        if is_transactional:
            properties |= transaction_properties(profile.replication_factor, self.min_insync_replicas)
        self.cluster = SimulatedCluster(self.simulation, backing(self.simulation), brokers, properties)
        if compacts:
            self.cluster.state.compacted |= {TABLE, OFFSETS_TOPIC}
        for machine in self.cluster.machines:
            machine.on_start = self._slow_disks
        if random.random() < profile.unclean:
            # The first one always: there is something to lose.
            self.cluster.unclean_topics |= {f"t{n}" for n in range(profile.topics) if n == 0 or random.random() < 0.5}
        self.cluster.state.forgets = not profile.faults.keys().isdisjoint(("power_when_whole", "power_outside"))
        self.kinds = {kind: share for kind, share in profile.faults.items() if self.flush or kind not in POWER}
        self.faults = Faults(self.cluster, Random(random.getrandbits(64)))
        self.partitions: list[TopicPartition] = []
        self.producers: list[IdempotentProducer | PlainProducer] = []
        #: Members of a group of the newer protocol; none where they speak the classic one.
        self.consumers: list[Consumer] = []
        self.operator = Operator(
            self.cluster.client("operator"),
            replication_factor=profile.replication_factor,
            trace=self.simulation.trace,
        )
        self.mover = Mover(self.cluster.client("mover"), Random(random.getrandbits(64)), brokers, self.simulation.trace)
        self.short_lived = ShortLivedTopics(
            self.operator,
            self.cluster.client("writer"),
            self.simulation.world.machine(self.cluster.clients_host).clock,
            Random(random.getrandbits(64)),
        )
        #: None where nobody deletes records.
        self.trimmer = (
            Trimmer(
                self.cluster.client("trimmer"),
                self.cluster.history,
                Random(f"trims {seed}"),
                self.simulation.trace,
            )
            if profile.trims
            else None
        )
        #: None where nobody changes settings.
        self.alterer = (
            Alterer(self.cluster.client("alterer"), Random(f"alters {seed}"), self.simulation.trace)
            if Random(f"settings {seed}").random() < profile.alters
            else None
        )
        #: None where brokers have one directory.
        self.carrier = (
            Carrier(
                self.cluster.client("carrier"),
                range(1, brokers + 1),
                Random(f"carries {seed}"),
                self.simulation.trace,
            )
            if carries
            else None
        )
        #: None where nothing is cleaned.
        self.tables = (
            Tables(
                self.cluster.history,
                self.simulation.world.machine(self.cluster.clients_host).clock,
                Random(f"tables {seed}"),
                profile.partitions,
            )
            if compacts
            else None
        )
        self.has_newer_members = Random(f"members {seed}").random() < profile.newer_members
        #: None in a schedule without transactions.
        self.transactions = (
            TransactionalLoad(self.cluster, profile, Random(f"of transactions {seed}")) if is_transactional else None
        )
        self.outcome = ScheduleOutcome(seed)

    def _slow_disks(self, ports: MemoryPorts) -> None:
        """What a flush takes: where it is waited for, a power cut finds more of them under way."""
        most = self.random.choice((1.0, 10.0, 40.0) if self.flush else (0.0, 0.0, 5.0))
        ports.workers.latency_ms = (0.0, most)

    def run(self) -> ScheduleOutcome:
        """Raises ScheduleFailed."""
        first: Exception | BrokerFault | None = None
        try:
            with self.simulation as simulation:
                try:
                    simulation.run(self._scenario())
                except (Exception, BrokerFault) as error:
                    first = error
                    raise
        except (Exception, BrokerFault) as error:
            # Ending what is left may fail as well: of a loop that never comes to rest, for the same reason.
            cause = first or error
            raise ScheduleFailed(self.seed, self.profile.name, cause, self.simulation.trace.tail()) from cause
        return self._finished()

    @property
    def trace(self) -> str:
        return self.simulation.trace.text()

    def _finished(self) -> ScheduleOutcome:
        outcome, state = self.outcome, self.cluster.state
        outcome.digest = self.simulation.trace.digest()
        outcome.acknowledged = self.cluster.history.acknowledged_count
        outcome.calls = self.simulation.loop.calls
        outcome.events.update(self.faults.counts)
        for counted in (state.events, self.cluster.backing.events, self.mover.events, self.short_lived.events):
            outcome.events.update(counted)
        if self.transactions is not None:
            outcome.events.update(self.transactions.events)
        if self.trimmer is not None:
            outcome.events.update(self.trimmer.events)
        if self.alterer is not None:
            outcome.events.update(self.alterer.events)
        if self.tables is not None:
            outcome.events.update(self.tables.events)
        if self.carrier is not None:
            outcome.events.update(self.carrier.events)
        outcome.events["lives of brokers"] += sum(each.lives for each in self.cluster.brokers)
        outcome.events["commits"] += self.cluster.commits.acknowledged_count
        outcome.events["generations of groups"] += self.cluster.commits.generations
        outcome.events["partitions given to members"] += self.cluster.ownership.given
        return outcome

    # The scenario

    async def _scenario(self) -> None:
        cluster = self.cluster
        try:
            async with asyncio.timeout(BEGINNING_S):
                await self._begin()
        except TimeoutError as late:
            raise HistoryFault(f"the cluster does not serve {BEGINNING_S} s after its start") from late
        load = [cluster.task(each) for each in self._load()]
        for task in load:
            task.set_name(getattr(task.get_coro(), "__qualname__", "?"))
        endless = [cluster.task(each) for each in self._endless()]
        await self._strike()
        await self.faults.heal_all()
        for producer in self.producers:
            producer.hurry()
        if self.transactions is not None:
            self.transactions.hurry()
        await self._settle(load, endless)
        await self._verify()

    async def _begin(self) -> None:
        profile = self.profile
        await self.cluster.started()
        for number in range(profile.topics):
            configs = {"min.insync.replicas": str(self.min_insync_replicas)}
            if f"t{number}" in self.cluster.unclean_topics:
                configs |= {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
            self.cluster.state.minima[f"t{number}"] = int(configs["min.insync.replicas"])
            await self.cluster.backing.create(f"t{number}", profile.partitions, profile.replication_factor, configs)
            self.partitions += [TopicPartition(f"t{number}", each) for each in range(profile.partitions)]
        if self.tables is not None:
            configs = {"min.insync.replicas": str(self.min_insync_replicas), **TABLE_CONFIGS}
            self.cluster.state.minima[TABLE] = self.min_insync_replicas
            await self.cluster.backing.create(TABLE, profile.partitions, profile.replication_factor, configs)
        if self.transactions is not None:
            await self.transactions.begin(self.min_insync_replicas)

    async def _strike(self) -> None:
        """Faults at their times, until theirs is over."""
        profile, random, loop = self.profile, self.random, self.simulation.loop
        kinds, weights = list(self.kinds), list(self.kinds.values())
        end = loop.time() + profile.seconds
        while True:
            pause = random.expovariate(1 / profile.pause_s) if kinds else profile.seconds
            if loop.time() + pause >= end:
                await asyncio.sleep(end - loop.time())
                return
            await asyncio.sleep(pause)
            self.faults.strike(random.choices(kinds, weights)[0])

    def _load(self) -> list[Coroutine[Any, Any, None]]:
        profile, random, cluster = self.profile, self.random, self.cluster
        clock = self.simulation.world.machine(cluster.clients_host).clock
        for number in range(profile.producers):
            certain = self._certain_or_not(certain=number == 0 or random.random() < 0.5)
            producer = IdempotentProducer(
                cluster.client(f"p{number}"),
                clock,
                cluster.history,
                Random(random.getrandbits(64)),
                sorted(random.sample(certain, random.randint(1, len(certain)))),
                profile.records,
                padding=random.choice((0, 0, 500)),
                pause_s=profile.seconds / profile.records,
                gives_up=self._is_unclean(certain[0]),
                certain=not self._is_unclean(certain[0]),
            )
            self.producers.append(producer)
        for number in range(profile.plain_producers):
            plain = PlainProducer(
                cluster.client(f"plain{number}"),
                clock,
                cluster.history,
                Random(random.getrandbits(64)),
                random.choice(self.partitions),
                profile.records // 2,
                acks=random.choice((0, 1)),
                certain=False,
                pause_s=profile.seconds / profile.records,
            )
            cluster.history.unordered.add(plain.name)
            self.producers.append(plain)
        if self.tables is not None:
            self.producers.append(
                self.tables.load(cluster.client("keys"), 2 * profile.records, profile.seconds / (2 * profile.records))
            )
        work = [producer.run() for producer in self.producers]
        if self.transactions is not None:
            work += self.transactions.load()
        if self.trimmer is not None:
            work.append(self.trimmer.run(self.partitions, profile.seconds))
        if self.alterer is not None:
            work.append(self.alterer.run(sorted({tp.topic for tp in self.partitions}), profile.seconds))
        if self.carrier is not None:
            work.append(self.carrier.run(self._kept, profile.seconds))
        return [*work, self.short_lived.run(profile.seconds), self._move()] if self.is_operated else work

    @property
    def _kept(self) -> list[TopicPartition]:
        """Partitions that are there from the beginning to the end."""
        return self.partitions if self.tables is None else [*self.partitions, *self.tables.partitions]

    def _is_unclean(self, tp: TopicPartition) -> bool:
        return tp.topic in self.cluster.unclean_topics

    def _certain_or_not(self, *, certain: bool) -> list[TopicPartition]:
        """Partitions that keep what was acknowledged, or those that may lose it; the others where there are none."""
        found = [tp for tp in self.partitions if self._is_unclean(tp) != certain]
        return found or self.partitions

    async def _move(self) -> None:
        """Replicas and leaders that go elsewhere beside the load; the last ones when the load's time is over."""
        random, loop = Random(self.random.getrandbits(64)), self.simulation.loop
        end = loop.time() + self.profile.seconds
        while loop.time() < end:
            await asyncio.sleep(min(random.expovariate(1 / 5.0), end - loop.time()))
            tp = random.choice(self._kept)
            if self._is_unclean(tp) and random.random() < 0.3:
                await self.mover.elect(tp, UNCLEAN)
            elif random.random() < 0.5:
                await self.mover.elect(tp, PREFERRED)
            else:
                await self.mover.reassign(tp, self.profile.replication_factor)

    def _endless(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on until it is stopped."""
        profile, random, cluster = self.profile, self.random, self.cluster
        work: list[Coroutine[Any, Any, None]] = []
        if certain := [tp for tp in self.partitions if not self._is_unclean(tp)]:
            for number in range(profile.readers):
                tp = random.choice(certain)
                work.append(follow(cluster.client(f"reader{number}"), tp, cluster.history))
        if self.tables is not None:
            work.append(self.tables.read(cluster.client("table reader")))
        for number in range(profile.members):
            client, own = cluster.client(f"member{number}"), Random(random.getrandbits(64))
            if self.has_newer_members:
                topics = sorted({tp.topic for tp in self.partitions})
                consumer = Consumer(client, GROUP, topics, cluster.commits, cluster.ownership, own)
                self.consumers.append(consumer)
                work.append(consumer.run())
            else:
                work.append(Member(client, GROUP, self.partitions, cluster.commits, own).run())
        if self.transactions is not None:
            work += self.transactions.endless()
        return work

    # The end

    async def _settle(self, load: list[asyncio.Task[Any]], endless: list[asyncio.Task[Any]]) -> None:
        """Everything must be well within 30 seconds."""
        loop = self.simulation.loop
        deadline = loop.time() + LIVENESS_S
        while True:
            working = [task for task in load if not task.done()]
            if working:
                unwell: str | None = f"not done: {', '.join(task.get_name() for task in working)}"
            elif (unwell := self._unended() or self._unshared()) is None:
                for task in endless:
                    task.cancel()
                unwell = self.cluster.unequal()
            if unwell is None and self.alterer is not None:
                unwell = self.alterer.unheard(self.cluster.brokers)
            if unwell is None and self.carrier is not None:
                unwell = self.carrier.under_way(self.cluster.brokers)
            if unwell is None:
                unwell = await self._misplaced()
            if unwell is None:
                self.simulation.trace.say("scenario", "all is well again")
                return
            if loop.time() >= deadline:
                if unended := self._unended():
                    broken(EVERY_TRANSACTION_ENDS, f"{LIVENESS_S} s after the healing: {unended}; {unwell}")
                raise HistoryFault(f"not well {LIVENESS_S} s after the healing: {unwell}")
            await asyncio.sleep(_LOOK_S)

    def _unended(self) -> str | None:
        return None if self.transactions is None else self.transactions.unended()

    def _unshared(self) -> str | None:
        """Which partitions nobody in the group has; None where each has a member."""
        had = {tp for consumer in self.consumers for tp in consumer.assigned}
        left = [str(tp) for tp in self.partitions if self.consumers and tp not in had]
        return f"no member has {', '.join(left)}" if left else None

    async def _misplaced(self) -> str | None:
        try:
            misplaced = await self.mover.check(self.cluster.client("looking"))
            if misplaced is None and self.transactions is not None:
                misplaced = await self.transactions.mover.check(self.cluster.client("looking"))
        except Unreachable as fault:
            return repr(fault)
        return misplaced

    async def _verify(self) -> None:
        moved = self.cluster.state.events["elections"]
        if moved and not (self.kinds or self.is_operated):
            raise HistoryFault(f"nothing has failed, and leaders moved {moved} times")
        reader = self.cluster.client("verifying")
        if self.is_operated:
            ours = {tp.topic for tp in self.partitions}
            if self.transactions is not None:
                ours |= self.transactions.topics
            if self.tables is not None:
                ours.add(TABLE)
            await self._patiently(partial(self.operator.check, reader, {*ours, OFFSETS_TOPIC}))
            await self._patiently(partial(self.short_lived.check, reader))
        for tp in self.partitions:
            # Of the leader of that moment: leadership goes back to the preferred replicas after the end of all faults,
            # too.
            rows = await self._patiently(partial(self._all_of, reader, tp))
            self.cluster.history.check(tp, rows, durable=not self._is_unclean(tp))
        if self.tables is not None:
            self.tables.check_replicas(self.cluster.brokers)
            await self._patiently(partial(self.tables.check, reader))
        if self.profile.members:
            for tp in self.partitions:
                found = await self._patiently(partial(committed, reader, GROUP, tp))
                self.cluster.commits.check(GROUP, tp, found)
        if self.transactions is not None:
            await self.transactions.verify(self._patiently)
        # The last of all: what it writes stands in no history.
        for tp in self.partitions:
            await self._patiently(partial(check_news, self.cluster, reader, tp))

    async def _all_of(self, client: ClusterClient, tp: TopicPartition) -> list[Row]:
        start = await start_offset(client, tp) if self.trimmer is not None else 0
        return await read_all(client, tp, start=start)

    async def _patiently(self, attempt: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        deadline = self.simulation.loop.time() + LIVENESS_S
        while True:
            try:
                return await attempt()
            except (Unreachable, ReadFault, GroupRefusal) as fault:
                if self.simulation.loop.time() >= deadline:
                    raise HistoryFault(f"no answer {LIVENESS_S} s after all was well: {fault!r}") from fault
            await asyncio.sleep(_LOOK_S)
