"""Several brokers over one tree, each with a session and a controller of its own: one of them is the active one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tests.controller.cluster import ENDPOINT, SETTINGS, Broker, is_settled
from tests.coordination.contract import until

from ottla.broker.memory import BrokerMemory
from ottla.controller.controller import ClusterController
from ottla.controller.identity import make_persistent_paths
from ottla.controller.interface import IsrChange, IsrResult, TopicToCreate
from ottla.controller.registration import register_broker
from ottla.coordination.local import LocalSession, open_local
from ottla.coordination.znodes import BrokerRegistration, LeaderAndIsr, decode_state, decode_topic, state_path
from ottla.metadata import MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

T = TypeVar("T")


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


class FencedBroker(Broker):
    """Obeys no controller that was replaced, as brokers do."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(broker_id)
        self._one = asyncio.Lock()
        #: Of the last controller that it has heard of.
        self.controller_epoch = -1
        #: What controllers that were replaced have tried.
        self.refused: list[int] = []

    def _obeys(self, epoch: int) -> bool:
        if epoch < self.controller_epoch:
            self.refused.append(epoch)
            return False
        self.controller_epoch = epoch
        return True

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        # One change after the other, also of two controllers.
        async with self._one:
            if not all(self._obeys(state.controller_epoch) for state in states):
                return {}
            return await super().on_leader_and_isr(states)

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        if self._obeys(update.controller_epoch):
            await super().on_metadata_update(update)


class Brokers:
    def __init__(self, count: int = 3, seed: int = 1, **settings: Any) -> None:
        self.world = World(seed)
        self.numbers = range(1, count + 1)
        self.settings = settings
        self.racks: dict[int, str] = {}
        self.all: dict[int, FencedBroker] = {}
        self.sessions: dict[int, LocalSession] = {}
        self.controllers: dict[int, ClusterController] = {}
        #: Somebody with a shell at the tree.
        self.person: LocalSession

    def run(self, work: Awaitable[T]) -> T:
        async def body() -> T:
            return await work

        return self.world.loop.run_until_complete(body())

    def settle(self, work: Awaitable[T] | None = None) -> T | None:
        """Until the active controller has seen to everything, and brokers know it."""

        async def body() -> T | None:
            done = None if work is None else await work
            await self.settled()
            return done

        return self.world.loop.run_until_complete(body())

    async def settled(self) -> None:
        # What is called soon is called first.
        quiet = 0

        def rests() -> bool:
            nonlocal quiet
            active = self.active()
            quiet = quiet + 1 if active is not None and is_settled(active) else 0
            return quiet > 5

        await until(rests)

    async def begin(self) -> None:
        ports = self.world.machine("m")
        self.person = await open_local(
            disk=ports.disk, workers=ports.workers, clock=ports.clock, entropy=ports.entropy, directory="/tree"
        )
        await make_persistent_paths(self.person)
        for number in self.numbers:
            await self.start(number)

    async def session(self) -> LocalSession:
        store = self.person.store
        return LocalSession(store, await store.sessions.open(6000))

    async def register(self, number: int) -> None:
        session = self.sessions[number] = await self.session()
        registration = BrokerRegistration((ENDPOINT,), self.racks.get(number), 0)
        await register_broker(session, BrokerId(number), registration)

    async def start(self, number: int) -> None:
        """A process that knows nothing yet; its logs outlive it."""
        await self.register(number)
        before = self.all.get(number)
        broker = self.all[number] = FencedBroker(number)
        if before is not None:
            # What no tree gives it a broker puts away when it starts.
            assigned = {topic: self.assigned(topic) for topic in {tp.topic for tp in before.roles}}
            broker.roles = {
                tp: role for tp, role in before.roles.items() if number in assigned[tp.topic].get(tp.partition, ())
            }
        self.controllers[number] = self.new_controller(number)
        await self.controllers[number].stand()

    def assigned(self, topic: str) -> Mapping[int, Sequence[int]]:
        """As the tree says; nothing where it has no such topic."""
        node = self.person.store._tree.nodes.get(f"/brokers/topics/{topic}")
        return {} if node is None else decode_topic("", node.data).replicas

    def new_controller(self, number: int) -> ClusterController:
        ports = self.world.machine("m")
        settings = replace(SETTINGS, broker_id=BrokerId(number), **self.settings)
        return ClusterController(
            self.sessions[number],
            ports.clock,
            ports.entropy,
            lambda found: self.all[found.id],
            settings,
            BrokerMemory(self.all[number].cache),
        )

    async def die(self, number: int) -> None:
        await self.sessions[number].expire()

    def active(self) -> ClusterController | None:
        """The one that is it by its own account."""
        found = [controller for controller in self.controllers.values() if controller.tenure.lost is None]
        assert len(found) <= 1, found
        return found[0] if found else None

    def active_number(self) -> int | None:
        return next((n for n, controller in self.controllers.items() if controller.tenure.lost is None), None)

    @property
    def controller(self) -> ClusterController:
        active = self.active()
        assert active is not None
        return active

    # Topics.

    async def create(self, name: str, *replicas: int, configs: Mapping[str, str] | None = None) -> None:
        """A topic of one partition."""
        await self.create_all(name, [replicas], configs)

    async def create_all(
        self, name: str, partitions: Sequence[Sequence[int]], configs: Mapping[str, str] | None = None
    ) -> None:
        placed = tuple((number, ids(*replicas)) for number, replicas in enumerate(partitions))
        topic = TopicToCreate(name, assignments=placed, configs=dict(configs or {}))
        (made,) = await self.controller.create_topics([topic])
        assert made.error is ErrorCode.NONE, made

    def states(self, topic: str) -> list[tuple[int, int, tuple[int, ...]]]:
        """Leader, leader epoch and ISR of each partition, as they are in the tree."""
        nodes = self.person.store._tree.nodes
        found: list[tuple[int, int, tuple[int, ...]]] = []
        while (path := state_path(topic, len(found))) in nodes:
            state = decode_state(path, nodes[path].data)
            found.append((state.leader, state.leader_epoch, state.isr))
        return found

    def state(self, topic: str, partition: int = 0) -> tuple[int, int, tuple[int, ...]]:
        return self.states(topic)[partition]

    def seen_by(self, number: int, topic: str, partition: int = 0) -> PartitionState:
        found = self.all[number].cache.partition(topic, partition)
        assert found is not None
        return found

    def exists(self, path: str) -> bool:
        return path in self.person.store._tree.nodes

    async def change_isr(self, topic: str, *isr: int, partition: int = 0, **options: Any) -> IsrResult:
        """As its leader would."""
        known = self.controller.context.topics[topic].states[partition]
        change = IsrChange(TopicPartition(topic, partition), known.state.leader_epoch, known.version, ids(*isr))
        epoch = options.pop("broker_epoch", -1)
        change = change._replace(**options)
        (result,) = await self.controller.alter_isr(known.state.leader, [change], broker_epoch=epoch)
        return result

    async def write_state(self, topic: str, leader: int, epoch: int, *isr: int, partition: int = 0) -> None:
        """Behind the controller's back."""
        from ottla.coordination.znodes import encode_state

        state = LeaderAndIsr(Epoch(1), BrokerId(leader), Epoch(epoch), ids(*isr))
        await self.person.set(state_path(topic, partition), encode_state(state))

    def close(self) -> None:
        self.world.loop.call_soon(self.world.loop.stop)
        self.world.loop.run_forever()
        cancel_all(self.world.loop)
        self.world.loop.close()


#: What a test waits for.
Condition = Callable[[], object]
