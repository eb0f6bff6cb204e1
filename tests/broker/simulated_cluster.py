"""Brokers over one served tree in a simulation: each a process of its own, with its own client of the tree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Self

from ottla.coordination.served.server import TreeServer
from ottla.model import ErrorCode
from ottla.ports.memory.processes import Process
from ottla.protocol.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim import SimulatedBroker, Simulation
from ottla.testing.sim.machines import SimulatedMachine
from ottla.testing.sim.wire import Client

TREE_PORT = 2181
SESSION_MS = 1_500


class TreeMachine(SimulatedMachine):
    """The process of the served tree."""

    server: TreeServer

    async def open(self, process: Process) -> None:
        self.server = TreeServer(self.ports, "/tree")
        await self.server.start("0.0.0.0", TREE_PORT)

    async def close(self) -> None:
        await self.server.stop()


class SimulatedCluster:
    """Opens with `with`. Brokers are numbered from 1 on."""

    def __init__(self, brokers: int, seed: int = 1, properties: Mapping[str, str] | None = None) -> None:
        self.simulation = Simulation(seed)
        self.tree = TreeMachine(self.simulation, "tree")
        self.brokers: dict[int, SimulatedBroker] = {}
        for number in range(1, brokers + 1):
            self.brokers[number] = self.simulation.broker(f"b{number}", self.properties(number, properties or {}))
        self._clients: dict[int, Client] = {}

    @staticmethod
    def properties(number: int, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "broker.id": str(number),
            "zookeeper.connect": f"tree:{TREE_PORT}",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "2",
            "group.initial.rebalance.delay.ms": "0",
            "controlled.shutdown.retry.backoff.ms": "100",
            **more,
        }

    def __enter__(self) -> Self:
        self.simulation.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.simulation.__exit__(*exc)

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        try:
            self.simulation.run(scenario)
        except Exception as error:
            raise AssertionError(f"seed {self.simulation.seed}: {error!r}\n{self.simulation.trace.tail()}") from error

    async def start(self) -> None:
        await self.tree.started()
        await asyncio.gather(*(broker.started() for broker in self.brokers.values()))

    def said(self, *words: str) -> list[str]:
        return [line for line in self.simulation.trace.lines if all(word in line for word in words)]

    # What brokers know

    def broker(self, number: int) -> Any:
        found = self.brokers[number].broker
        assert found is not None
        return found

    @property
    def controllers(self) -> list[int]:
        """Those that say that they are it."""
        return [
            number
            for number, each in self.brokers.items()
            if each.broker is not None
            and each.broker.services is not None
            and each.broker.services.own_controller.active
        ]

    def epoch(self, number: int) -> int:
        return int(self.broker(number).services.announced.broker_epoch)

    def epoch_or_none(self, number: int) -> int | None:
        """None while it is not registered."""
        node = self.tree.server.store._tree.nodes.get(f"/brokers/ids/{number}")
        return None if node is None else node.stat().czxid

    def listens(self, number: int) -> bool:
        """Whether it serves other brokers at least."""
        broker = self.brokers[number].broker
        return broker is not None and broker._server is not None and broker._server._open

    async def expire(self, number: int) -> None:
        """Ends the session of a broker, as if the tree had not heard of it."""
        server = self.tree.server
        owner = server.store._tree.nodes[f"/brokers/ids/{number}"].stat().ephemeral_owner

        async def end() -> None:
            server._serving.life.end(owner)

        await self.simulation.loop.create_task(end(), context=self.tree.process.context())
        await until(lambda: owner not in server.store._tree.sessions)

    async def leave(self, number: int, way: str) -> None:
        """The broker stops or is killed; its clients connect anew when they ask again."""
        if way == "stop":
            await self.brokers[number].stop()
        else:
            self.brokers[number].kill()
        client = self._clients.pop(number, None)
        if client is not None:
            client.close()

    @staticmethod
    async def pause(seconds: float) -> None:
        await asyncio.sleep(seconds)

    # Clients

    def client(self, number: int) -> Client:
        """That asks this broker, whatever it answers."""
        client = self._clients.get(number)
        if client is None:
            network = self.simulation.world.machine("clients").network
            client = self._clients[number] = Client(network, f"client-of-{number}", *self.brokers[number].address)
        return client

    async def create(
        self,
        number: int,
        name: str,
        placed: Mapping[int, tuple[int, ...]],
        configs: Mapping[str, str] | None = None,
    ) -> ErrorCode:
        """By a client of this broker."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                for index, replicas in placed.items()
            ],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        answer = await self.client(number).ask(CreateTopicsRequest(topics=[topic], timeout_ms=2_000), 7)
        return ErrorCode(answer.topics[0].error_code)

    async def alter(self, number: int, kind: int, name: str, key: str, value: str) -> None:
        """One setting, by a client of this broker."""
        resource = AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=0, value=value)],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        answer = await self.client(number).ask(request, 1)
        assert answer.responses[0].error_code == ErrorCode.NONE, answer

    async def metadata(self, number: int, *topics: str) -> MetadataResponse:
        named = [MetadataRequestTopic(name=name) for name in topics] if topics else None
        answer: MetadataResponse = await self.client(number).ask(
            MetadataRequest(topics=named, allow_auto_topic_creation=False), 9
        )
        return answer

    def leader(self, topic: str, partition: int, seen_by: int) -> int | None:
        state = self.broker(seen_by).metadata.partition(topic, partition)
        return None if state is None else int(state.leader)

    async def produce(self, number: int, topic: str, partition: int = 0, acks: int = -1) -> ErrorCode:
        batch = encode_batch([Record(0, self.brokers[number].ports.clock.wall_ms(), b"key", b"value")])
        data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
        answer = await self.client(number).ask(ProduceRequest(acks=acks, timeout_ms=2_000, topic_data=data), 9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)


async def until(found: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits in virtual time."""
    for _ in range(round(100 * seconds)):
        if found():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not so within {seconds} s")
