"""The quickest client that may be: it asks every broker for Metadata each 20 ms, and produces record after record
to the leader, with acks=all. What it waits for is the cluster, and not a client's pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Final

from ottla.client.errors import KafkaError
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.dialling import connect
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.record import Record, encode_batch
from ottla.testing.own_loop import OwnLoop

LOOK_S: Final = 0.02
#: Between two records, and before a record is tried again.
PAUSE_S: Final = 0.004
#: For an answer that does not come, of a broker that is not known to have lost its leadership.
ANSWER_MS: Final = 1_500
CONNECT_MS: Final = 500
_CLIENT: Final = "probe"


class Probe:
    """Works from `start` to `stop`, on a thread of its own."""

    def __init__(self, addresses: Mapping[int, str], topic: str) -> None:
        self._addresses = {broker: _host_port(address) for broker, address in addresses.items()}
        self._topic = topic
        self._loop = OwnLoop()
        self._tasks: list[asyncio.Task[None]] = []
        #: Who leads under which epoch, as far as anybody has said.
        self._leader = -1
        self._epoch = -1
        self._changed = asyncio.Event()
        #: When each acknowledgement came and how long it took, by the monotonic clock.
        self.acknowledged: list[tuple[float, float]] = []

    @property
    def acknowledged_at(self) -> list[float]:
        return [at for at, _ in self.acknowledged]

    def start(self) -> None:
        async def work() -> None:
            self._changed = asyncio.Event()
            self._tasks = [asyncio.create_task(self._look(broker)) for broker in self._addresses]
            self._tasks.append(asyncio.create_task(self._produce()))

        self._loop.submit(work).result(10)

    def stop(self) -> None:
        async def work() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            for task in self._tasks:
                if not task.cancelled() and (fault := task.exception()) is not None:
                    raise fault

        self._loop.submit(work).result(10)
        self._loop.end()

    # -- looking

    async def _look(self, broker: int) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self._topic)], allow_auto_topic_creation=False)
        while True:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                connection = await self._connected(broker)
                try:
                    while True:
                        answer = await connection.ask(request, MetadataResponse, timeout_ms=ANSWER_MS, at_most=9)
                        self._note(answer)
                        await asyncio.sleep(LOOK_S)
                finally:
                    connection.abandon(KafkaError("the probe looks anew"))
            await asyncio.sleep(LOOK_S)

    def _note(self, answer: MetadataResponse) -> None:
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.leader_id >= 0 and partition.leader_epoch > self._epoch:
                    self._leader, self._epoch = partition.leader_id, partition.leader_epoch
                    self._changed.set()

    async def _connected(self, broker: int) -> BrokerConnection:
        host, port = self._addresses[broker]
        return await connect(real_world(), host, port, client_id=_CLIENT, setup_timeout_ms=CONNECT_MS)

    # -- producing

    async def _produce(self) -> None:
        while True:
            self._changed.clear()
            if self._leader < 0:
                await self._changed.wait()
                continue
            writing = asyncio.create_task(self._write_to(self._leader))
            news = asyncio.create_task(self._changed.wait())
            try:
                await asyncio.wait([writing, news], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (writing, news):
                    task.cancel()
                await asyncio.wait([writing, news])
            await asyncio.sleep(PAUSE_S)

    async def _write_to(self, leader: int) -> None:
        """Until it fails, or is refused."""
        with contextlib.suppress(KafkaError, OSError, TimeoutError):
            connection = await self._connected(leader)
            try:
                while True:
                    began = time.monotonic()
                    if not await self._is_acknowledged(connection):
                        return
                    now = time.monotonic()
                    self.acknowledged.append((now, now - began))
                    await asyncio.sleep(PAUSE_S)
            finally:
                connection.abandon(KafkaError("the probe writes elsewhere"))

    async def _is_acknowledged(self, connection: BrokerConnection) -> bool:
        batch = encode_batch([Record(0, round(time.time() * 1000), None, b"probe")])
        data = [TopicProduceData(name=self._topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
        request = ProduceRequest(acks=-1, timeout_ms=ANSWER_MS, topic_data=data)
        answer = await connection.ask(request, ProduceResponse, timeout_ms=ANSWER_MS, at_most=9)
        return answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
