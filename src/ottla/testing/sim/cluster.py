"""A simulated cluster: brokers on machines of their own, what they coordinate by, those who watch them, their clients.

What the brokers coordinate by is a `Backing`: a tree that is served to them (`tree_machine.py`). Everything above does
not ask what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from random import Random
from typing import Any, Final, Protocol

from ottla.controller.registration import BrokerIdInUse
from ottla.javahash import partition_of
from ottla.model import OFFSETS_TOPIC, TopicPartition
from ottla.testing.sim.commits import CommitHistory, OwnershipHistory
from ottla.testing.sim.history import History
from ottla.testing.sim.invariants import Cluster, InvariantBroken, every_invariant
from ottla.testing.sim.machines import SimulatedMachine
from ottla.testing.sim.observation import Observer, topic_id_of
from ottla.testing.sim.routing import ClusterClient
from ottla.testing.sim.world import PORT, SimulatedBroker, Simulation

#: Between two tries to start a process that did not start: a supervisor's pause.
_START_AGAIN_S: Final = 1.0
#: Of all links, unless they are slow.
LATENCY_MS: Final = (0.05, 1.0)


class Backing(Protocol):
    @property
    def machines(self) -> list[SimulatedMachine]:
        """Those that serve a tree."""
        ...

    def properties(self, number: int) -> Mapping[str, str]:
        """What a broker is configured with, so that it takes part."""
        ...

    def begin(self, cluster: SimulatedCluster) -> None:
        """Every machine is there; none is started."""
        ...

    @property
    def events(self) -> Mapping[str, int]:
        """How often what happened in the tree."""
        ...

    def controller(self) -> int | None:
        """The broker that the tree names; None where it names nobody, or does not run."""
        ...

    def expire(self, broker: int) -> None:
        """Ends the broker's session, while the broker lives. Nothing where it has none."""
        ...

    def delete_controller(self) -> None:
        """Deletes the node that names the controller, as an operator does who wants another one. Nothing where there
        is none."""
        ...

    def data(self, path: str) -> bytes | None:
        """What stands in a node of the tree; None where there is none, or nobody serves it."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """As somebody with a shell at the tree. Nothing where the node is not there, or nobody serves it."""
        ...

    async def create(self, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> None:
        """Returns when it is served."""
        ...


class SimulatedCluster:
    def __init__(
        self,
        simulation: Simulation,
        backing: Backing,
        brokers: int,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.simulation = simulation
        self.backing = backing
        self.latency_ms = LATENCY_MS
        self.clients_host: Final = "clients"
        self.brokers: list[SimulatedBroker] = [
            simulation.broker(
                f"broker{number}", {"broker.id": str(number), **backing.properties(number), **(properties or {})}
            )
            for number in range(1, brokers + 1)
        ]
        self.trees = backing.machines
        #: Those that replicas from outside of the ISR may lead: what was acknowledged there may be lost.
        self.unclean_topics: set[str] = set()
        self.state = Cluster(every_invariant())
        self.observer = Observer(simulation, self.state)
        self.history = History(simulation.trace)
        self.history.on_acknowledged = self._acknowledged
        self.commits = CommitHistory(simulation.trace)
        self.commits.replaced_at = self._coordinator_replaced_at
        self.ownership = OwnershipHistory(simulation.trace)
        simulation.world.fabric.latency(*self.latency_ms)
        backing.begin(self)

    @property
    def machines(self) -> list[SimulatedMachine]:
        return [*self.trees, *self.brokers]

    def _acknowledged(self, tp: TopicPartition, end: int) -> None:
        ids = {topic_id for (known, topic_id) in self.state.partitions if known == tp}
        if len(ids) == 1:
            self.state.acknowledged(tp, ids.pop(), end)

    def _coordinator_replaced_at(self, group: str, broker: int) -> float | None:
        partitions = self.state.partitions
        count = len({tp.partition for tp, _ in partitions if tp.topic == OFFSETS_TOPIC})
        wanted = TopicPartition(OFFSETS_TOPIC, partition_of(group, count)) if count else None
        found = [each.replaced_at(broker) for (tp, _), each in partitions.items() if tp == wanted]
        return next((at for at in found if at is not None), None)

    # Machines

    def start(self, machine: SimulatedMachine) -> None:
        """Starts it, and again until it serves or something else becomes of it."""
        self.task(self._keep_starting(machine))

    async def _keep_starting(self, machine: SimulatedMachine) -> None:
        while not machine.runs:
            lives = machine.lives + 1
            await machine.start()
            if machine.lives != lives or machine.refusal is None:
                return
            if isinstance(machine.refusal, BrokerIdInUse):
                # No two have one id: it is its earlier life's, for whose end it waits.
                raise InvariantBroken("OwnIdIsWaitedFor", f"{machine.name}: {machine.refusal}")
            await asyncio.sleep(_START_AGAIN_S)

    async def started(self) -> None:
        """Starts everything; returns when all serve."""
        for machine in self.machines:
            self.start(machine)
        for machine in self.machines:
            await machine.serving.wait()

    def task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Work of the scenario whose failure ends the run."""
        task = self.simulation.loop.create_task(work)
        task.add_done_callback(_raise_fault)
        return task

    # Clients

    def client(self, name: str) -> ClusterClient:
        bootstrap = [(broker.name, PORT) for broker in self.brokers]
        network = self.simulation.world.machine(self.clients_host).network
        return ClusterClient(network, name, bootstrap, Random(self.simulation.random.getrandbits(64)))

    # What is in the end

    def unequal(self) -> str | None:
        """Why the replicas are not all in the ISR and equal; None where they are."""
        for partition in self.state.partitions.values():
            tree = partition.tree
            if tree is None:
                continue
            replicas = {number: each for number, each in partition.replicas.items() if each.leads or each.follows}
            if set(tree.isr) != set(replicas):
                return f"not all are in the ISR; {partition}"
            logs = [each.log for each in replicas.values()]
            if any((log.end, log.chains[-1:]) != (logs[0].end, logs[0].chains[-1:]) for log in logs):
                return f"the logs differ; {partition}"
            if any(each.high_watermark != each.log.end for each in replicas.values()):
                return f"not everything is committed; {partition}"
        return None

    def topic_id(self, tp: TopicPartition) -> bytes:
        return next((found for each in self.brokers if any(found := topic_id_of(each, tp))), b"")


def _raise_fault(task: asyncio.Task[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, Exception):
        raise error  # the loop's handler ends the run with it
