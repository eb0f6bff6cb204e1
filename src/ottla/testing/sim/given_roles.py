"""Brokers whose roles a test gives, as a controller would: the smallest cluster, without anybody who decides in it.

Each broker has a tree of its own, in which it is alone; what it holds of the topics here it has from the test, under a
controller epoch above that of its own controller. Everything between the brokers goes over the simulated network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ottla.broker.broker import Broker
from ottla.config.topic import effective_log_config
from ottla.coordination.znodes import (
    LeaderAndIsr,
    TopicAssignment,
    decode_topic,
    encode_config,
    encode_state,
    encode_topic,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.metadata import BrokerEndpoints, Endpoint, MetadataUpdate, PartitionState
from ottla.model import NO_BROKER, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.storage.log.log import Log
from ottla.testing.sim.world import PORT, SimulatedBroker, Simulation

#: Above all that brokers that are alone in their trees come to.
CONTROLLER_EPOCH: Final = Epoch(1_000_000)
LISTENER: Final = "PLAINTEXT"
#: A broker that never lives.
NOBODY: Final = BrokerId(0)
#: Of what brokers find in their own trees, which raise it at their starts: below all that tests give.
FIRST_EPOCH: Final = Epoch(-1_000)


class GivenRoles:
    def __init__(self, simulation: Simulation, brokers: int = 3, properties: Mapping[str, str] | None = None) -> None:
        self.simulation = simulation
        #: By id, from 1 on.
        self.brokers: dict[int, SimulatedBroker] = {}
        for number in range(1, brokers + 1):
            own = {"broker.id": str(number), **(properties or {})}
            self.brokers[number] = simulation.broker(f"broker{number}", own)
        #: What was given last, for brokers that are started again.
        self.states: dict[TopicPartition, PartitionState] = {}
        #: Topic -> its overrides.
        self.configs: dict[str, Mapping[str, str]] = {}

    # -- brokers

    async def start(self, *ids: int) -> None:
        """Starts these brokers, or all. When it returns they have their last roles, and the others their addresses."""
        chosen = ids or tuple(self.brokers)
        await asyncio.gather(*(self.brokers[each].started() for each in chosen))
        await self.announce()

    def kill(self, broker: int) -> None:
        self.brokers[broker].kill()

    def lose_power(self, broker: int) -> None:
        self.brokers[broker].lose_power()

    @property
    def alive(self) -> list[int]:
        return [number for number, broker in self.brokers.items() if broker.serving.is_set()]

    # -- roles

    def state(
        self,
        tp: TopicPartition,
        leader: int,
        epoch: int,
        isr: Iterable[int],
        replicas: Sequence[int] | None = None,
    ) -> PartitionState:
        """The next state of a partition, whose replicas are all brokers unless they are named."""
        before = self.states.get(tp)
        assigned = (before.replicas if before is not None else tuple(self.brokers)) if replicas is None else replicas
        return PartitionState(
            topic=tp.topic,
            partition=tp.partition,
            topic_id=topic_id(tp.topic),
            controller_epoch=CONTROLLER_EPOCH,
            leader=BrokerId(leader),
            leader_epoch=Epoch(epoch),
            isr=tuple(BrokerId(each) for each in isr),
            replicas=tuple(BrokerId(each) for each in assigned),
            partition_epoch=0 if before is None else before.partition_epoch + 1,
            is_new=before is None,
        )

    async def lead(
        self, tp: TopicPartition, leader: int, epoch: int, isr: Iterable[int], *, to: Iterable[int] | None = None
    ) -> None:
        """Gives a partition a leader, and says so to these brokers, or to all that are alive."""
        await self.give([self.state(tp, leader, epoch, isr)], to=to)

    async def give(self, states: Sequence[PartitionState], *, to: Iterable[int] | None = None) -> None:
        for state in states:
            self.states[TopicPartition(state.topic, state.partition)] = state
        for broker in self.alive if to is None else to:
            await self.say(broker, states)

    async def say(self, broker: int, states: Sequence[PartitionState]) -> None:
        """Says these states to one broker, and who is alive."""
        process = self.brokers[broker].process
        await self.simulation.loop.create_task(self._take_on(broker, states), context=process.context())

    async def announce(self) -> None:
        """Says to all that are alive who is, and what was given last."""
        for broker in self.alive:
            await self.say(broker, list(self.states.values()))

    async def _take_on(self, number: int, states: Sequence[PartitionState]) -> None:
        broker = self.brokers[number].broker
        assert broker is not None
        assert broker.services is not None
        replicas, defaults = broker.services.replicas, broker.config.log
        held = [state for state in states if number in state.replicas]

        def update(partitions: Sequence[PartitionState]) -> None:
            broker.metadata.apply(
                MetadataUpdate(
                    controller_epoch=CONTROLLER_EPOCH,
                    brokers=self._endpoints(),
                    partitions=partitions,
                    topic_configs=dict(self.configs),
                )
            )

        await self._register(broker, held)
        update(())
        answers = await replicas.change(
            replicas.take_on(held, lambda topic: effective_log_config(self.configs.get(topic, {}), defaults))
        )
        assert set(answers.values()) <= {ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH}, answers
        update(states)

    async def _register(self, broker: Broker, states: Sequence[PartitionState]) -> None:
        """Writes topics into a broker's tree, lest its next start takes their folders for strays. No broker is in
        sync there that could be elected, so that the broker itself gives nobody a role in them."""
        tree = broker.tree
        assert tree is not None
        for state in states:
            leaderless = LeaderAndIsr(Epoch(0), NO_BROKER, FIRST_EPOCH, (NOBODY,))
            held = dict.fromkeys(range(state.partition + 1), state.replicas)
            for path, data in (
                (topic_path(state.topic), encode_topic(TopicAssignment(state.topic_id, held, {}, {}))),
                (partitions_path(state.topic), b""),
                (partition_path(state.topic, state.partition), b""),
                (state_path(state.topic, state.partition), encode_state(leaderless)),
                (topic_config_path(state.topic), encode_config(self.configs.get(state.topic, {}))),
            ):
                if await tree.exists(path) is None:
                    await tree.create(path, data)
                elif path == topic_path(state.topic):
                    known = decode_topic(path, (await tree.get(path))[0]).replicas
                    if len(known) < len(held):
                        await tree.set(path, data)

    def _endpoints(self) -> list[BrokerEndpoints]:
        return [
            BrokerEndpoints(
                BrokerId(number),
                (Endpoint(LISTENER, LISTENER, broker.name, PORT),),
                None,
                broker.lives,
            )
            for number, broker in self.brokers.items()
            if broker.serving.is_set()
        ]

    # -- what they have

    def log(self, broker: int, tp: TopicPartition) -> Log:
        life = self.brokers[broker].broker
        assert life is not None
        assert life.services is not None
        found = life.services.replicas.directories.get(tp)
        assert found is not None, f"broker {broker} has no log of {tp}"
        return found

    def leader(self, broker: int, tp: TopicPartition) -> Leader:
        life = self.brokers[broker].broker
        assert life is not None
        assert life.services is not None
        return life.services.replicas.leaders[tp]

    def follower(self, broker: int, tp: TopicPartition) -> Follower:
        life = self.brokers[broker].broker
        assert life is not None
        assert life.services is not None
        return life.services.replicas.followers[tp]

    def bytes_of(self, broker: int, tp: TopicPartition) -> bytes:
        """All batches, as they stand in the segments from the log's start on."""
        log = self.log(broker, tp)
        data, offset = b"", log.start_offset
        while offset < log.end_offset:
            piece = log.read(offset, 1 << 30, log.end_offset)
            found = piece.read()
            assert found, f"nothing at {offset} of {tp}"
            data += found
            offset = _end_of(found)
        return data


def topic_id(topic: str) -> TopicId:
    """The same for the same name, in every run."""
    return TopicId(topic.encode().ljust(16, b".")[:16])


def _end_of(data: bytes) -> int:
    from ottla.records.batch import iterate

    end = -1
    for _, header in iterate(data, 0, len(data)):
        end = header.next_offset
    return end
