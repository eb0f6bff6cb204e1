"""One simulated broker and one client, for scenarios that are told step by step."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Self

from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory.disk import MemoryDisk
from ottla.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim import SimulatedBroker, Simulation
from ottla.testing.sim.history import History
from ottla.testing.sim.reader import read_all
from ottla.testing.sim.wire import Client

TP = TopicPartition("t", 0)


class OneBroker:
    """Opens with `with`; `history` knows what was acknowledged."""

    def __init__(self, seed: int = 1, properties: Mapping[str, str] | None = None) -> None:
        self.simulation = Simulation(seed)
        self.broker: SimulatedBroker = self.simulation.broker("broker", properties)
        self.history = History(self.simulation.trace)
        self.client = self.new_client("client")
        self._made = 0

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

    def new_client(self, name: str) -> Client:
        return Client(self.simulation.world.machine("clients").network, name, *self.broker.address)

    @property
    def disk(self) -> MemoryDisk:
        return self.broker.ports.disk

    def said(self, *words: str) -> list[str]:
        """The broker's log lines with all of these words."""
        return [line for line in self.simulation.trace.lines if all(word in line for word in words)]

    # The client

    async def create(self, name: str = "t", partitions: int = 1, configs: Mapping[str, str] | None = None) -> ErrorCode:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        answer = await self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        return ErrorCode(answer.topics[0].error_code)

    async def create_partitions(self, name: str, count: int) -> ErrorCode:
        topics = [CreatePartitionsTopic(name=name, count=count, assignments=None)]
        answer = await self.client.ask(CreatePartitionsRequest(topics=topics, timeout_ms=10_000), 3)
        return ErrorCode(answer.results[0].error_code)

    async def metadata(self, name: str) -> ErrorCode | list[ErrorCode]:
        """Of the topic, or where that is there of each partition."""
        topics = [MetadataRequestTopic(name=name)]
        (told,) = (await self.client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)).topics
        if told.error_code != ErrorCode.NONE:
            return ErrorCode(told.error_code)
        return [ErrorCode(partition.error_code) for partition in told.partitions]

    async def produce(
        self,
        tp: TopicPartition = TP,
        count: int = 1,
        *,
        padding: int = 0,
        acks: int = -1,
        client: Client | None = None,
        timestamp: int | None = None,
    ) -> ErrorCode:
        """Sends one batch of new values and remembers what was acknowledged."""
        values = [b"%d" % (self._made + place) + b"." * padding for place in range(count)]
        self._made += count
        self.history.send(tp, (client or self.client).name, values)
        at_ms = self.broker.ports.clock.wall_ms() if timestamp is None else timestamp
        data = encode_batch([Record(place, at_ms, None, value) for place, value in enumerate(values)])
        partition = PartitionProduceData(index=tp.partition, records=data)
        request = ProduceRequest(
            acks=acks, timeout_ms=2000, topic_data=[TopicProduceData(name=tp.topic, partition_data=[partition])]
        )
        answer = await (client or self.client).ask(request, 9)
        said = answer.responses[0].partition_responses[0]
        if said.error_code == ErrorCode.NONE:
            self.history.acknowledge(tp, values, said.base_offset)
        return ErrorCode(said.error_code)

    async def must_produce(self, tp: TopicPartition = TP, batches: int = 1, padding: int = 0) -> None:
        for _ in range(batches):
            error = await self.produce(tp, padding=padding)
            assert error == ErrorCode.NONE, error.name

    async def check(self, partitions: Sequence[TopicPartition] = (TP,)) -> None:
        """Reads all and compares with the history."""
        for tp in partitions:
            self.history.check(tp, await read_all(self.client, tp))

    # The machine

    async def restart(self, *, power: bool = True) -> None:
        if power:
            self.broker.lose_power()
        else:
            self.broker.kill()
        self.client.close()
        await self.broker.started()

    async def stop_and_start(self) -> None:
        await self.broker.stop()
        self.client.close()
        await self.broker.started()

    async def stop_after_start(self) -> None:
        """Leaves the machine as a clean stop does."""
        await self.broker.started()
        await self.broker.stop()

    def leave_free(self, size: int) -> None:
        """So many bytes are left on the disk."""
        self.disk.capacity_bytes = self.disk.total_bytes("/data") - self.disk.free_bytes("/data") + size

    def give_space(self) -> None:
        self.disk.capacity_bytes = 1 << 40
