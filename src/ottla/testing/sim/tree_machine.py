"""A machine that serves the tree on ZooKeeper's protocol, and clusters whose brokers coordinate by it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, Final

from ottla.coordination import znodes
from ottla.coordination.errors import CoordinationError
from ottla.coordination.interface import Delete, SetData
from ottla.coordination.served.server import CannotListen, TreeServer
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.tree import TreeNode
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
            self.observer.watch_ends(self.server._serving.life)  # noqa: SLF001 - as `expire`, below

    def node(self, path: str) -> TreeNode | None:
        """As it is now; None where there is none, or no process that serves it."""
        if self.server is None or not self.serving.is_set():
            return None
        return self.server.store._tree.nodes.get(path)  # noqa: SLF001 - read as it lies there

    def is_refusal(self, error: Exception) -> bool:
        return isinstance(error, OSError | CannotListen)

    async def close(self) -> None:
        assert self.server is not None
        await self.server.stop()

    def wake(self) -> None:
        if self.is_paused and self.observer is not None:
            self.observer.nobody_heard()
        super().wake()

    def has_ended(self) -> None:
        self.server = None

    def _lost(self, reason: str) -> None:
        self.say(f"is lost: {reason}")


class ServedTree:
    """Implements `Backing`: one tree, and brokers that find it by their configuration."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
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
        self._machine.observer = TreeObserver(cluster.state, self._simulation.trace, cluster.unclean_topics)

    @property
    def events(self) -> Mapping[str, int]:
        observer = self._machine.observer
        return {} if observer is None else observer.events

    def controller(self) -> int | None:
        node = self._machine.node(znodes.CONTROLLER)
        return None if node is None else int(znodes.decode_controller(znodes.CONTROLLER, node.data).broker_id)

    def expire(self, broker: int) -> None:
        """Ends the session under which the broker is registered, as if nothing had been heard of it."""
        node, server = self._machine.node(znodes.broker_path(broker)), self._machine.server
        if node is not None and server is not None:
            server._serving.life.end(node.stat().ephemeral_owner)  # noqa: SLF001 - nobody else may do this

    def delete_controller(self) -> None:
        server = self._machine.server
        if server is not None and self._machine.node(znodes.CONTROLLER) is not None:
            self._machine.carry_out(_by_hand(server, Delete(znodes.CONTROLLER)))

    def data(self, path: str) -> bytes | None:
        node = self._machine.node(path)
        return None if node is None else node.data

    def write(self, path: str, data: bytes) -> None:
        server = self._machine.server
        if server is not None and self._machine.node(path) is not None:
            self._machine.carry_out(_by_hand(server, SetData(path, data)))

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


async def _by_hand(server: TreeServer, op: Delete | SetData) -> None:
    """Nothing where the node is gone by then, or the disk is full."""
    with contextlib.suppress(CoordinationError):
        await server.store.write(STORE_SESSION, [op])
