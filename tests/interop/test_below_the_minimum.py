"""An in-sync set that falls below `min.insync.replicas` while requests with acks=all wait: three brokers of Apache
Kafka 4.3 and three of ours answer the same (`docs/decisions/watermark-under-the-minimum.md`).

Both followers of a leader stand still. Four requests show what it does, by their answers and their order alone:

    patient   was written while three were in sync. Nobody fails it: its answer is NONE, when the followers are back
    hasty     the same with little time: REQUEST_TIMED_OUT, and only behind the answer of the next one
    late      comes when one is in sync: NOT_ENOUGH_REPLICAS at once, and is not written
    after     comes when all are back

An answer NOT_ENOUGH_REPLICAS_AFTER_APPEND at the moment in which the set falls would be the patient one's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tools.kafka_jars import KAFKA
from tools.kafka_server import QUICK_KAFKA_FLAGS, kafka_server, new_cluster_id
from tools.server_process import HOST, ServerProcess, free_port

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import NewTopic
from ottla.client.errors import KafkaError
from ottla.client.sync import Consumer
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.dialling import connect
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.processes import Cluster
from tests.conftest import found_jars

#: In `./test`, of one broker whose followers are played: `tests/handlers/produce/test_held_answers.py`.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = "below"
LEADER, FOLLOWERS = 1, (2, 3)
SECONDS_MAX = 120.0
#: A follower that stands still leaves the set after so long, if the death of its session has not taken it out before.
PROPERTIES = {"replica.lag.time.max.ms": "2000", "min.insync.replicas": "2", "default.replication.factor": "3"}
#: How much time the hasty one has, at first and at most. It has to be there when the set falls.
HASTY_MS, HASTY_MS_MAX = 10_000, 80_000


class ThreeOfOurs:
    def __init__(self, stack: ExitStack, _: Path) -> None:
        self._cluster = stack.enter_context(Cluster(3, properties=PROPERTIES))
        self.addresses = self._cluster.addresses

    def pause(self, broker: int) -> None:
        self._cluster.pause(broker)

    def resume(self, broker: int) -> None:
        self._cluster.resume(broker)


class ThreeOfKafka:
    """The leader is the only controller as well: that one lives on."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        if shutil.which("java") is None:
            pytest.skip("Java is not installed")
        jars, cluster_id, controller = found_jars(KAFKA), new_cluster_id(), free_port()
        self._servers: dict[int, ServerProcess] = {}
        for number in (LEADER, *FOLLOWERS):
            port = free_port()
            listeners, roles = f"PLAINTEXT://{HOST}:{port}", "broker"
            if number == LEADER:
                listeners, roles = f"{listeners},CONTROLLER://{HOST}:{controller}", "broker,controller"
            own = {
                "node.id": str(number),
                "process.roles": roles,
                "listeners": listeners,
                "controller.quorum.voters": f"{LEADER}@{HOST}:{controller}",
            }
            self._servers[number] = kafka_server(
                folder / str(number),
                folder=jars,
                port=port,
                properties={**PROPERTIES, **own},
                cluster_id=cluster_id,
                flags=QUICK_KAFKA_FLAGS,
            )
        for server in self._servers.values():
            stack.callback(server.kill)
            server.launch()
        for server in self._servers.values():
            server.wait_until_answering(time.monotonic() + SECONDS_MAX)
        self.addresses = {number: server.bootstrap for number, server in self._servers.items()}

    def pause(self, broker: int) -> None:
        os.kill(self._servers[broker].pid, signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        os.kill(self._servers[broker].pid, signal.SIGCONT)


Three = ThreeOfOurs | ThreeOfKafka


@pytest.fixture(
    params=[pytest.param(ThreeOfOurs, id="ottla"), pytest.param(ThreeOfKafka, id="kafka", marks=pytest.mark.java)]
)
def three(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Three]:
    made: Callable[[ExitStack, Path], Three] = request.param
    with ExitStack() as stack:
        yield made(stack, tmp_path)


def asked(value: bytes, timeout_ms: int) -> ProduceRequest:
    batch = encode_batch([Record(0, int(time.time() * 1000), None, value)])
    data = [TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=data)


class Leader:
    """What it answers to requests that wait side by side, each on a connection of its own."""

    def __init__(self, three: Three) -> None:
        self._address = three.addresses[LEADER]
        self._open: list[BrokerConnection] = []

    async def connected(self) -> BrokerConnection:
        host, _, port = self._address.rpartition(":")
        connection = await connect(real_world(), host, int(port), client_id="asking", setup_timeout_ms=60_000)
        self._open.append(connection)
        return connection

    async def produce(
        self, value: bytes, timeout_ms: int = 300_000, connection: BrokerConnection | None = None
    ) -> ErrorCode:
        connection = connection or await self.connected()
        answer = await connection.ask(asked(value, timeout_ms), ProduceResponse, timeout_ms=400_000, at_most=9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def until_in_sync(self, *wanted: int) -> None:
        """As the leader's own Metadata says."""
        async with Admin(bootstrap_servers=self._address) as admin:
            for _ in range(round(SECONDS_MAX / 0.05)):
                try:
                    (partition,) = (await admin.describe_topic(TOPIC)).partitions
                    if set(partition.isr) == set(wanted) and partition.leader == LEADER:
                        return
                except KafkaError:
                    pass  # it has not heard of the topic yet
                await asyncio.sleep(0.05)
        raise AssertionError(f"{wanted} are never those in sync")

    def close(self) -> None:
        for connection in self._open:
            connection.abandon(RuntimeError("done"))  # type: ignore[arg-type]


async def fall_and_return(three: Three, leader: Leader, hasty_ms: int) -> tuple[bool, list[bytes]]:
    """Whether both requests were there when the set fell, or else the try says nothing; and what was written."""
    await leader.until_in_sync(LEADER, *FOLLOWERS)
    assert await leader.produce(b"before") is ErrorCode.NONE
    first, second = await leader.connected(), await leader.connected()
    for follower in FOLLOWERS:
        three.pause(follower)
    patient = asyncio.ensure_future(leader.produce(b"patient", connection=first))
    hasty = asyncio.ensure_future(leader.produce(b"hasty", hasty_ms, second))
    await leader.until_in_sync(LEADER)
    assert await leader.produce(b"late") is ErrorCode.NOT_ENOUGH_REPLICAS
    was_there = not patient.done() and not hasty.done()
    ends = {b"hasty": await hasty}
    for follower in FOLLOWERS:
        three.resume(follower)
    ends[b"patient"] = await patient
    await leader.until_in_sync(LEADER, *FOLLOWERS)
    assert await leader.produce(b"after") is ErrorCode.NONE
    if was_there:
        assert ends == {b"hasty": ErrorCode.REQUEST_TIMED_OUT, b"patient": ErrorCode.NONE}
    # On a machine that has much to do they may have come behind the fall.
    written = [value for value, end in ends.items() if end is not ErrorCode.NOT_ENOUGH_REPLICAS]
    return was_there, [b"before", *written, b"after"]


async def scenario(three: Three) -> list[bytes]:
    """What is in the log then."""
    async with Admin(bootstrap_servers=three.addresses[LEADER]) as admin:
        for _ in range(round(SECONDS_MAX / 0.05)):
            if len((await admin.describe_cluster()).brokers) == len(three.addresses):
                break
            await asyncio.sleep(0.05)
        await admin.create_topics([NewTopic(TOPIC, assignments={0: [LEADER, *FOLLOWERS]})])
    leader, written, hasty_ms = Leader(three), [], HASTY_MS
    try:
        while True:
            was_there, values = await fall_and_return(three, leader, hasty_ms)
            written += values
            if was_there:
                return written
            hasty_ms *= 2
            assert hasty_ms <= HASTY_MS_MAX, "no set falls below its minimum in that time"
    finally:
        leader.close()


def test_what_waits_is_answered_when_enough_are_back_or_its_time_is_over(three: Three) -> None:
    written = asyncio.run(scenario(three))
    with Consumer(bootstrap_servers=three.addresses[LEADER], auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        end = consumer.end_offsets([(TOPIC, 0)])[TOPIC, 0]
        found: list[bytes | None] = []
        while consumer.position((TOPIC, 0)) < end:
            found += [record.value for record in consumer.poll(timeout_ms=60_000)]
    # What timed out is written all the same, before the patient one or behind it; what was refused is not.
    assert sorted(value or b"" for value in found) == sorted(written)
