"""The clusters that are measured: three brokers of ours with their served tree, one of ours alone, three of Kafka.

Each broker is a process of its own with a folder of its own, so that its CPU, its reads and its files can be looked at.
Nothing is pinned: three brokers and the load share the cores, as they would on a person's machine.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.kafka_server import kafka_server, new_cluster_id
from tools.ottla_server import TreeProcess, ottla_broker, ottla_tree
from tools.server_process import HOST, ServerProcess, free_port

from bench import machine
from bench.cluster.topics import cluster_size
from bench.scenario import Context
from bench.servers import KAFKA, OTTLA, PROPERTIES, Places

#: Our own broker, unreplicated: the same machine, the same load.
ALONE = "one broker"
BROKERS = 3
COPIES = {OTTLA: BROKERS, ALONE: 1, KAFKA: BROKERS}
START_SECONDS_MAX = 90.0

_OURS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
}
_OF_KAFKA = {
    **_OURS,
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Brokers that were started, by their ids."""

    kind: str
    brokers: Mapping[int, ServerProcess]
    folders: Mapping[int, Path]
    tree: ServerProcess | None = None

    @property
    def copies(self) -> int:
        """Replicas of each partition."""
        return COPIES[self.kind]

    @property
    def port(self) -> int:
        """The first broker's, which leads what is measured."""
        return self.brokers[1].port

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def pids(self) -> list[int]:
        """Of the brokers. The tree's process has nothing to do while partitions stay where they are."""
        return [broker.pid for broker in self.brokers.values()]

    def cpu_seconds(self) -> float:
        return sum(map(machine.cpu_seconds, self.pids))


@contextmanager
def started(kind: str, name: str, places: Places) -> Iterator[Cluster]:
    folder = places.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        cluster = _made(kind, folder, places, stack)
        deadline = time.monotonic() + START_SECONDS_MAX
        for broker in cluster.brokers.values():
            stack.callback(broker.kill)  # nothing here is worth a clean stop
            broker.launch()
        for broker in cluster.brokers.values():
            broker.wait_until_answering(deadline)
            while cluster_size(broker.port) < len(cluster.brokers):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{broker.bootstrap} does not know of {len(cluster.brokers)} brokers")
                time.sleep(0.02)
        yield cluster


def _made(kind: str, folder: Path, places: Places, stack: ExitStack) -> Cluster:
    if kind == ALONE:
        return _alone(folder)
    return _ours(folder, stack) if kind == OTTLA else _kafka(folder, places)


def _ours(folder: Path, stack: ExitStack) -> Cluster:
    tree: TreeProcess = ottla_tree(folder / "tree")
    stack.callback(tree.kill)
    tree.start()
    folders = {number: folder / f"broker-{number}" for number in range(1, BROKERS + 1)}
    brokers = {
        number: ottla_broker(
            folders[number],
            properties={**PROPERTIES, **_OURS, "broker.id": str(number), "zookeeper.connect": tree.bootstrap},
        )
        for number in folders
    }
    return Cluster(kind=OTTLA, brokers=brokers, folders=folders, tree=tree)


def _alone(folder: Path) -> Cluster:
    own = {"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1"}
    one = ottla_broker(folder / "broker-1", properties={**PROPERTIES, **own, "transaction.state.log.min.isr": "1"})
    return Cluster(kind=ALONE, brokers={1: one}, folders={1: folder / "broker-1"})


def _kafka(folder: Path, places: Places) -> Cluster:
    """KRaft; each node is a broker and a controller."""
    numbers = range(1, BROKERS + 1)
    cluster_id = new_cluster_id()
    ports = {number: (free_port(), free_port()) for number in numbers}
    voters = ",".join(f"{number}@{HOST}:{ports[number][1]}" for number in numbers)
    folders = {number: folder / f"broker-{number}" for number in numbers}
    brokers = {}
    for number, (port, controller) in ports.items():
        own = {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        }
        brokers[number] = kafka_server(
            folders[number],
            folder=places.kafka_jars,
            port=port,
            properties={**PROPERTIES, **_OF_KAFKA, **own},
            cluster_id=cluster_id,
        )
    return Cluster(kind=KAFKA, brokers=brokers, folders=folders)


@dataclass(kw_only=True)
class ClusterContext(Context):
    """One run over clusters, of which some live on from one scenario to the next."""

    _clusters: ExitStack = field(default_factory=ExitStack)
    _running: dict[str, Cluster] = field(default_factory=dict)

    def cluster(self, kind: str) -> Cluster:
        """One that lives on until ``stop_clusters``. One at a time: an idle JVM takes its share of two cores."""
        if kind not in self._running:
            self.stop_clusters()
            self._running[kind] = self._clusters.enter_context(
                started(kind, f"cluster-{kind.replace(' ', '-')}", self.places)
            )
        return self._running[kind]

    def stop_clusters(self) -> None:
        self._clusters.close()
        self._running.clear()


def restarts(context: ClusterContext) -> Mapping[str, int]:
    """Rounds of what begins with fresh brokers."""
    return {OTTLA: context.effort.restarts, KAFKA: context.effort.kafka_restarts}
