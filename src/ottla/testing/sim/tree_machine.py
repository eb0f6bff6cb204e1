"""A machine that serves the tree on ZooKeeper's protocol, and clusters whose brokers coordinate by it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from ottla.coordination.served.server import CannotListen, TreeServer
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory.processes import Process
from ottla.protocol.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.testing.sim.cluster import SimulatedCluster
from ottla.testing.sim.machines import SimulatedMachine
from ottla.testing.sim.tree_observation import TreeObserver
from ottla.testing.sim.wire import Unreachable
from ottla.testing.sim.world import Simulation

TREE_PORT: Final = 2181
#: What brokers ask of a tree of ours.
SESSION_MS: Final = 1_500
_NONE: Final = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}


class SimulatedTree(SimulatedMachine):
    def __init__(self, simulation: Simulation, name: str = "tree") -> None:
        super().__init__(simulation, name)
        self.server: TreeServer | None = None
        self.observer: TreeObserver | None = None

    async def open(self, process: Process) -> None:
        del process
        self.server = TreeServer(self.ports, "/data/tree", on_lost=self._lost)
        await self.server.start("", TREE_PORT)
        if self.observer is not None:
            self.observer.watch(self.server.store)

    def is_refusal(self, error: Exception) -> bool:
        return isinstance(error, OSError | CannotListen)

    async def close(self) -> None:
        assert self.server is not None
        await self.server.stop()

    def has_ended(self) -> None:
        self.server = None

    def _lost(self, reason: str) -> None:
        self.say(f"is lost: {reason}")


class ServedTree:
    """Implements `Backing`: one tree, and brokers that find it by their configuration."""

    def __init__(self, simulation: Simulation, *, unclean: bool = False) -> None:
        self._simulation = simulation
        self._unclean = unclean
        self._machine = SimulatedTree(simulation)
        self._cluster: SimulatedCluster

    @property
    def machines(self) -> list[SimulatedMachine]:
        return [self._machine]

    def properties(self, number: int) -> Mapping[str, str]:
        del number
        return {
            "zookeeper.connect": f"{self._machine.name}:{TREE_PORT}",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
        }

    def begin(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._machine.observer = TreeObserver(cluster.state, self._simulation.trace, unclean_allowed=self._unclean)

    async def create(self, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> None:
        client = self._cluster.client("creating")
        asked = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        while True:
            try:
                answer: Any = await client.ask_controller(CreateTopicsRequest(topics=[asked], timeout_ms=5_000), 7)
                if answer.topics[0].error_code in _NONE:
                    break
                self._simulation.trace.say("creating", f"{topic}: {ErrorCode(answer.topics[0].error_code).name}")
            except Unreachable:
                pass
            await asyncio.sleep(0.1)
        for number in range(partitions):
            while True:
                try:
                    await client.leader_of(TopicPartition(topic, number))
                    break
                except Unreachable:
                    await asyncio.sleep(0.1)
        client.close()
