"""One broker's controller over the real local provider, in a machine that can be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tests.coordination.contract import until

from ottla.broker.memory import BrokerMemory
from ottla.controller.controller import ClusterController
from ottla.controller.deciding.orders import ReplicaStop
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.identity import make_persistent_paths
from ottla.controller.registration import register_broker
from ottla.coordination.local import LocalSession, open_local
from ottla.coordination.znodes import BrokerRegistration
from ottla.metadata import Endpoint, MetadataCache, MetadataUpdate, PartitionState
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.ports.memory import World
from ottla.ports.memory.loop import cancel_all

T = TypeVar("T")

ENDPOINT = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)
SETTINGS = ControllerSettings(broker_id=BrokerId(1))


class Broker:
    """Carries out what it is told in the plainest way: roles in a dict, metadata in the cache that brokers use."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.cache = MetadataCache()
        #: The logs that are "on disk" are the keys.
        self.roles: dict[TopicPartition, PartitionState] = {}
        self.created: set[TopicPartition] = set()
        #: Logs are made ahead of their roles while this is set.
        self.may_make = asyncio.Event()
        self.may_make.set()
        #: Logs that were made before their roles came.
        self.made: set[TopicPartition] = set()
        #: What was called, in order.
        self.calls: list[str] = []
        #: Partitions whose log directory is broken.
        self.broken: set[TopicPartition] = set()
        #: Partitions for whose logs there is no room.
        self.no_room: set[TopicPartition] = set()
        #: Called when something cannot be opened.
        self.on_no_room: Callable[[], None] = lambda: None
        #: What it was to give up.
        self.stops: list[ReplicaStop] = []
        #: Calls of this name do not return, until they go on.
        self.hangs_in: str | None = None
        self._hanging = asyncio.Event()
        #: Raised by the next calls, one each.
        self.faults: list[BaseException] = []

    def go_on(self) -> None:
        """What hangs returns."""
        self._hanging.set()

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.hangs_in == name:
            await self._hanging.wait()
        if self.faults:
            raise self.faults.pop(0)

    async def on_new_replicas(self, states: Sequence[PartitionState]) -> bool:
        await self._called("new_replicas")
        await self.may_make.wait()
        tps = [TopicPartition(state.topic, state.partition) for state in states]
        self.made.update(tps)
        return not any(tp in self.broken or tp in self.no_room for tp in tps)

    async def on_leader_and_isr(self, states: Sequence[PartitionState]) -> Mapping[TopicPartition, ErrorCode]:
        await self._called("leader_and_isr")
        await asyncio.sleep(0.001)  # whoever was answered before goes on first
        answers = {}
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            assert self.id in state.replicas
            # What governs the log is known before the log is opened.
            assert state.topic in self.cache._topic_configs
            fails = tp in self.broken or tp in self.no_room
            answers[tp] = ErrorCode.KAFKA_STORAGE_ERROR if fails else ErrorCode.NONE
            if fails:
                self.on_no_room()
            else:
                self.roles[tp] = state
                if state.is_new:
                    self.created.add(tp)
        return answers

    async def on_metadata_update(self, update: MetadataUpdate) -> None:
        await self._called("metadata")
        assert self.cache.apply(update)
        for state in update.partitions:
            # Clients are only sent to leaders that are ready.
            if state.leader == self.id:
                assert TopicPartition(state.topic, state.partition) in self.roles

    async def on_stop_replicas(self, stops: Sequence[ReplicaStop]) -> Mapping[TopicPartition, ErrorCode]:
        await self._called("stop_replicas")
        self.stops += stops
        failed: dict[TopicPartition, ErrorCode] = {}
        for tp, epoch, delete in stops:
            assert delete
            if tp in self.roles and 0 <= epoch < self.roles[tp].leader_epoch:
                failed[tp] = ErrorCode.FENCED_LEADER_EPOCH
                continue
            # Nobody is sent to a log that is going: with its topic, or to other brokers.
            known = self.cache.partition(*tp)
            assert known is None or self.id not in known.replicas
            if tp in self.broken:
                failed[tp] = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                self.roles.pop(tp, None)
        return failed


def is_settled(controller: ClusterController) -> bool:
    """Nothing waits for its turn, and brokers know everything."""
    tenure = controller.tenure
    lines = tenure.announcer._lines.values()
    return not (len(tenure.events) or tenure.events._running) and all(
        line.queue.is_idle and line.task is None for line in lines
    )


class Cluster:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.broker = Broker(1)
        self.session: LocalSession
        self.controller: ClusterController

    @property
    def disk(self) -> Any:
        return self.world.machine("m").disk

    @property
    def context(self) -> Any:
        return self.controller.context

    def run(self, work: Awaitable[T]) -> T:
        async def body() -> T:
            return await work

        return self.world.loop.run_until_complete(body())

    def settle(self, work: Awaitable[T]) -> T:
        """As `run`, until brokers have carried out what follows from it, and the controller has seen that."""
        controller = self.controller

        async def body() -> T:
            done = await work
            await until(lambda: is_settled(controller))
            return done

        return self.world.loop.run_until_complete(body())

    async def open(self) -> LocalSession:
        ports = self.world.machine("m")
        self.session = await open_local(
            disk=ports.disk, workers=ports.workers, clock=ports.clock, entropy=ports.entropy, directory="/tree"
        )
        return self.session

    async def start(self, rack: str | None = None, **changes: Any) -> ClusterController:
        """Opens the tree and starts the controller, for a broker that knows nothing yet."""
        settings = replace(SETTINGS, **changes)
        session = await self.open()
        logs = self.broker.roles
        self.broker = Broker(settings.broker_id)
        # Logs outlive the process.
        self.broker.roles = logs
        ports = self.world.machine("m")
        self.controller = ClusterController(
            session, ports.clock, ports.entropy, lambda _: self.broker, settings, BrokerMemory(self.broker.cache)
        )
        await make_persistent_paths(session)
        registration = BrokerRegistration((ENDPOINT,), rack, ports.clock.wall_ms())
        await register_broker(session, settings.broker_id, registration)
        await self.controller.stand()
        return self.controller

    async def stop(self) -> None:
        await self.controller.stop()
        await self.session.close()

    def kill(self) -> None:
        self.world.kill("m")
        self._bury()

    def crash(self) -> None:
        self.world.crash("m")
        self._bury()

    def close(self) -> None:
        self._bury()
        self.world.loop.close()

    def _bury(self) -> None:
        self.world.loop.call_soon(self.world.loop.stop)
        self.world.loop.run_forever()
        cancel_all(self.world.loop)


Run = Callable[[Awaitable[Any]], Any]
