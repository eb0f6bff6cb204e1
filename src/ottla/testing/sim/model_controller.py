"""A controller of a test's own: it sees who is alive, elects, takes ISR changes, and says so to brokers, late or never.

It stands in for tree and controller where the replication alone is looked at. It lives on a machine of the network
(`tree`): a broker that cannot be reached from there for a session's time is dead to it, whatever that broker believes,
and hears of what was decided when it can be reached again. What it decides is the truth that invariants speak of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from ottla.broker.broker import Broker
from ottla.config.topic import effective_log_config
from ottla.controller.interface import IsrChange, IsrResult, ProducerIdRange
from ottla.metadata import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState
from ottla.model import NO_BROKER, BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.ports.memory.processes import Process
from ottla.testing.sim.cluster import SimulatedCluster
from ottla.testing.sim.given_roles import CONTROLLER_EPOCH, LISTENER, topic_id
from ottla.testing.sim.invariants import TreeChange, TreeState
from ottla.testing.sim.machines import SimulatedMachine
from ottla.testing.sim.world import PORT, SimulatedBroker, Simulation

#: Between two looks at who is alive.
_LOOK_S: Final = (0.05, 0.2)
#: A broker that was not reached for so long is dead.
_SESSION_S: Final = 1.5
#: How long it takes to tell a broker something, or to be asked.
_WAY_S: Final = (0.0005, 0.05)
#: A question that does not come through.
_NO_ANSWER_S: Final = 1.0
#: Between two elections of a preferred leader.
_PREFERRED_S: Final = 4.0
_PRODUCER_IDS: Final = 1_000


class _Place(SimulatedMachine):
    """Where the controller is in the network; it does nothing by itself."""

    async def open(self, process: Process) -> None: ...

    async def close(self) -> None: ...


class ModelController:
    """Implements `Backing`."""

    def __init__(self, simulation: Simulation, *, unclean: bool = False) -> None:
        self._simulation = simulation
        self._random = Random(simulation.random.getrandbits(64))
        self._place = _Place(simulation, "tree")
        self._unclean = unclean
        self._cluster: SimulatedCluster
        self._brokers: dict[int, SimulatedBroker] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        self._configs: dict[str, Mapping[str, str]] = {}
        #: Broker -> the life that is registered, and when it was reached last.
        self._registered: dict[int, int] = {}
        self._reached_at: dict[int, float] = {}
        #: Broker -> partitions whose state it has not heard.
        self._unsaid: dict[int, dict[TopicPartition, None]] = {}
        #: Brokers that have to hear who is there.
        self._speaking: set[int] = set()
        self._next_preferred = 0.0
        self._next_producer_id = 0

    @property
    def machines(self) -> list[SimulatedMachine]:
        return [self._place]

    def properties(self, number: int) -> Mapping[str, str]:
        del number
        return {}

    def begin(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._brokers = dict(enumerate(cluster.brokers, 1))
        self._unsaid = {number: {} for number in self._brokers}
        for broker in cluster.brokers:
            broker.on_assembled = self._assembled
        cluster.task(self._go_on())

    def _assembled(self, broker: Broker) -> None:
        """Its own tree knows none of the topics, whose logs it is to open all the same."""
        own: Any = broker
        open_directories = own._open_directories  # noqa: SLF001 - as below

        def opened(cluster: str, _: object) -> Any:
            topics = {
                name: SimpleNamespace(id=topic_id(name), configs=configs) for name, configs in self._configs.items()
            }
            return open_directories(cluster, SimpleNamespace(topics=topics))

        own._open_directories = opened  # noqa: SLF001

    async def create(self, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> None:
        await self._until(lambda: len(self._registered) == len(self._brokers))
        self._configs[topic] = configs
        ids = sorted(self._brokers)
        for partition in range(partitions):
            first = self._random.randrange(len(ids))
            replicas = tuple(BrokerId(ids[(first + n) % len(ids)]) for n in range(replication_factor))
            self._write(
                PartitionState(
                    topic=topic,
                    partition=partition,
                    topic_id=topic_id(topic),
                    controller_epoch=CONTROLLER_EPOCH,
                    leader=replicas[0],
                    leader_epoch=Epoch(0),
                    isr=replicas,
                    replicas=replicas,
                    partition_epoch=0,
                    is_new=True,
                )
            )
        await self._until(lambda: not any(self._unsaid.values()))

    async def _until(self, so: Callable[[], bool]) -> None:
        while not so():  # noqa: ASYNC110 - what it waits for is nobody's event
            await asyncio.sleep(0.05)

    # Who is alive

    def _reaches(self, number: int) -> bool:
        broker, fabric = self._brokers[number], self._simulation.world.fabric
        return (
            self._place.runs
            and not self._place.is_paused
            and broker.serving.is_set()
            and not broker.is_paused
            and fabric.passes(broker.name, self._place.name)
            and fabric.passes(self._place.name, broker.name)
        )

    async def _go_on(self) -> None:
        loop = self._simulation.loop
        while True:
            await asyncio.sleep(self._random.uniform(*_LOOK_S))
            if not self._place.runs or self._place.is_paused:
                continue
            for number, broker in self._brokers.items():
                life = self._registered.get(number)
                if life is not None and broker.lives != life and broker.serving.is_set():
                    self._died(number)  # a bounce between two looks is a death and a birth
                    life = None
                if self._reaches(number):
                    self._reached_at[number] = loop.time()
                    if life is None:
                        self._born(number)
                elif life is not None and (not broker.runs or loop.time() - self._reached_at[number] > _SESSION_S):
                    self._died(number)
                if (self._unsaid[number]) and number not in self._speaking and self._reaches(number):
                    self._speaking.add(number)
                    self._cluster.task(self._speak(number))
            if loop.time() >= self._next_preferred:
                self._next_preferred = loop.time() + _PREFERRED_S
                self._elect_preferred()

    def _born(self, number: int) -> None:
        broker = self._brokers[number]
        self._simulation.trace.say("controller", f"{broker.name} is there, life {broker.lives}")
        self._registered[number] = broker.lives
        running: Any = broker.broker
        # It asks its own controller, in whose place this one stands.
        own = running._controller  # noqa: SLF001 - there is no other way in
        own.alter_isr = partial(self._asked, number)
        own.allocate_producer_ids = self._allocate
        for tp, state in list(self.states.items()):
            if state.leader == NO_BROKER and (number in state.isr or (self._unclean and number in state.replicas)):
                self._elect(tp)
        self._say_to(number, self.states)
        for other in self._registered:
            self._say_to(other, list(self.states)[:1])

    def _died(self, number: int) -> None:
        self._simulation.trace.say("controller", f"{self._brokers[number].name} is dead")
        del self._registered[number]
        for tp, state in list(self.states.items()):
            if number in state.isr or state.leader == number:
                self._elect(tp)

    # Decisions

    def _elect(self, tp: TopicPartition, preferred: int | None = None) -> None:
        """The dead leave the ISR, all but the last of it, and somebody in it leads, in the next leader epoch."""
        before = self.states[tp]
        alive = [each for each in before.isr if each in self._registered]
        isr: Sequence[int] = alive or before.isr
        leader: int = NO_BROKER
        if alive:
            leader = before.leader if before.leader in alive else next(b for b in before.replicas if b in alive)
        elif self._unclean and (others := [each for each in before.replicas if each in self._registered]):
            leader, isr = others[0], others[:1]
        if preferred is not None:
            leader = preferred
        self._write(
            before._replace(
                leader=BrokerId(leader),
                leader_epoch=Epoch(before.leader_epoch + 1),
                isr=tuple(BrokerId(each) for each in isr),
                partition_epoch=before.partition_epoch + 1,
                is_new=False,
            )
        )

    def _elect_preferred(self) -> None:
        for tp, state in list(self.states.items()):
            wanted = state.replicas[0]
            if state.leader not in (wanted, NO_BROKER) and wanted in state.isr and wanted in self._registered:
                self._elect(tp, wanted)
                return

    async def _asked(self, number: int, broker_id: int, changes: Sequence[IsrChange]) -> list[IsrResult]:
        """AlterPartition. Runs in the process that asks."""
        await asyncio.sleep(self._random.uniform(*_WAY_S))
        if not self._reaches(number):
            await asyncio.sleep(_NO_ANSWER_S)
            return [IsrResult(change.tp, ErrorCode.REQUEST_TIMED_OUT) for change in changes]
        results = [self._change_isr(broker_id, change) for change in changes]
        await asyncio.sleep(self._random.uniform(*_WAY_S))
        if not self._reaches(number):
            await asyncio.sleep(_NO_ANSWER_S)
            return [IsrResult(change.tp, ErrorCode.REQUEST_TIMED_OUT) for change in changes]
        return results

    def _change_isr(self, broker: int, change: IsrChange) -> IsrResult:
        state = self.states.get(change.tp)
        error = ErrorCode.NONE
        if state is None:
            return IsrResult(change.tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if state.leader_epoch > change.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif state.leader != broker or state.leader_epoch < change.leader_epoch:
            error = ErrorCode.NOT_CONTROLLER
        elif state.partition_epoch != change.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif not set(change.isr) <= set(state.replicas) or broker not in change.isr:
            error = ErrorCode.INVALID_REQUEST
        elif not self._are_eligible(change):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error != ErrorCode.NONE:
            return IsrResult(change.tp, error, state)
        after = state._replace(isr=change.isr, partition_epoch=state.partition_epoch + 1, is_new=False)
        self._write(after)
        return IsrResult(change.tp, ErrorCode.NONE, after)

    def _are_eligible(self, change: IsrChange) -> bool:
        epochs = change.isr_epochs or tuple(self._registered.get(each, -1) for each in change.isr)
        return all(
            member in self._registered and epoch in (-1, self._registered[member])
            for member, epoch in zip(change.isr, epochs, strict=True)
        )

    async def _allocate(self, broker_id: BrokerId) -> ProducerIdRange:
        """Each broker alone would begin with the same."""
        del broker_id
        self._next_producer_id += _PRODUCER_IDS
        return ProducerIdRange(self._next_producer_id - _PRODUCER_IDS, _PRODUCER_IDS)

    # What is decided, and who hears of it

    def _write(self, state: PartitionState) -> None:
        tp = TopicPartition(state.topic, state.partition)
        before, self.states[tp] = self.states.get(tp), state
        partition = self._cluster.state.partition(tp, bytes(state.topic_id))
        after = _tree_state(state)
        self._simulation.trace.say("tree", f"{tp} {after}")
        self._cluster.state.tree_changed(
            TreeChange(
                partition,
                None if before is None else _tree_state(before),
                after,
                1,
                1,
                CONTROLLER_EPOCH,
                self._unclean,
            )
        )
        for number in self._registered:
            self._say_to(number, [tp])

    def _say_to(self, number: int, partitions: Sequence[TopicPartition] | Mapping[TopicPartition, object]) -> None:
        self._unsaid[number].update(dict.fromkeys(partitions))

    async def _speak(self, number: int) -> None:
        """Says what is new to one broker; what does not come through is said again."""
        broker = self._brokers[number]
        try:
            said, self._unsaid[number] = self._unsaid[number], {}
            states = [self.states[tp] for tp in said]
            await asyncio.sleep(self._random.uniform(*_WAY_S))
            if self._reaches(number):
                task = broker.carry_out(self._take_on(broker, number, states))
                await asyncio.wait([task])
                if not task.cancelled():
                    if task.exception() is None:
                        return
                    if broker.runs:
                        task.result()
            if number in self._registered:
                self._unsaid[number] = {**said, **self._unsaid[number]}
        finally:
            self._speaking.discard(number)

    async def _take_on(self, machine: SimulatedBroker, number: int, states: Sequence[PartitionState]) -> None:
        """Runs in the broker's process."""
        broker = machine.broker
        if broker is None or broker.services is None:
            return
        replicas, defaults = broker.services.replicas, broker.config.log
        endpoints = [
            BrokerEndpoints(BrokerId(other), (Endpoint(LISTENER, LISTENER, each.name, PORT),), None, each.lives)
            for other, each in self._brokers.items()
            if other in self._registered
        ]
        update = partial(
            MetadataUpdate,
            controller_epoch=CONTROLLER_EPOCH,
            brokers=endpoints,
            topic_configs=dict(self._configs),
        )
        broker.metadata.apply(update(partitions=()))
        held = [state for state in states if number in state.replicas]
        await replicas.change(
            replicas.take_on(held, lambda topic: effective_log_config(self._configs.get(topic, {}), defaults))
        )
        broker.metadata.apply(update(partitions=states))


def _tree_state(state: PartitionState) -> TreeState:
    return TreeState(state.leader, state.leader_epoch, tuple(state.isr), state.partition_epoch, state.controller_epoch)
