"""Kafka's own tools, and clients of three kinds, against three brokers that are killed, restarted and reassigned."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import pytest
from tools.kafka_tools import KafkaTools, ToolResult

import ottla.testing
from ottla.client.admin.results import NewTopic
from ottla.client.sync import Admin, Consumer
from ottla.testing.processes import Cluster

pytestmark = [pytest.mark.xdist_group("kafka-tools")]

SECONDS_MAX = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"auto.leader.rebalance.enable": "false"}) as running:
        yield running


@pytest.fixture(autouse=True)
def all_are_there(cluster: Cluster) -> Iterator[None]:
    yield
    for broker in cluster.addresses:
        cluster.resume(broker)
    cluster.until(lambda: all(map(cluster.is_serving, cluster.addresses)))
    for address in cluster.addresses.values():  # whichever is asked next
        with Admin(bootstrap_servers=address) as admin:
            cluster.until(lambda: len(admin.describe_cluster().brokers) == len(cluster.addresses))


def create(cluster: Cluster, name: str, *replicas: int) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(name, assignments={0: replicas})])
    cluster.until_heard(name)


def read_all(cluster: Cluster, topic: str) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        count = sum(consumer.end_offsets([(topic, 0)]).values())
        while len(found) < count:
            found += [record.value for record in consumer.poll(timeout_ms=1_000)]
    return found


@pytest.mark.java
def test_topic_command_names_what_is_under_replicated(cluster: Cluster, kafka_tools: KafkaTools) -> None:
    create(cluster, "lacking", 1, 2, 3)

    def listed() -> str:
        return kafka_tools.run(
            "TopicCommand", "--bootstrap-server", cluster.addresses[1], "--describe", "--under-replicated-partitions"
        ).checked()

    assert "lacking" not in listed()
    cluster.pause(3)
    # A client that is sent to a broker which stands still waits for its own time-out.
    with Admin(bootstrap_servers=cluster.addresses[1]) as admin:
        cluster.until(lambda: admin.describe_topic("lacking").partitions[0].isr == (1, 2))
    # Each broker hears of it at its own pace, and the tool may ask any.
    cluster.until(lambda: "Topic: lacking\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2\t" in listed())
    cluster.resume(3)
    cluster.until(lambda: "lacking" not in listed())


@pytest.mark.java
def test_leaders_are_elected_and_partitions_reassigned(
    cluster: Cluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    create(cluster, "moved", 2, 1, 3)
    server = ("--bootstrap-server", cluster.bootstrap)
    cluster.kill(2)
    cluster.until(lambda: cluster.leader("moved") not in (-1, 2))
    cluster.until_in_sync("moved")
    elected = kafka_tools.run(
        "LeaderElectionCommand", *server, "--election-type", "PREFERRED", "--topic", "moved", "--partition", "0"
    ).checked()
    assert "Successfully completed leader election (PREFERRED) for partitions moved-0" in elected
    cluster.until(lambda: cluster.leader("moved") == 2)

    create(cluster, "single", 1)
    moves = {"version": 1, "partitions": [{"topic": "single", "partition": 0, "replicas": [3, 2]}]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(moves))
    command = ("reassign.ReassignPartitionsCommand", *server, "--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignment" in kafka_tools.run(*command, "--execute").checked()
    cluster.until(lambda: "is completed" in kafka_tools.run(*command, "--verify").checked())
    cluster.until(lambda: cluster.isrs("single") in ([(3, 2)], [(2, 3)]))
    cluster.until(lambda: cluster.leader("single") in (2, 3))


def beside(work: Callable[[], ToolResult]) -> tuple[threading.Thread, list[ToolResult]]:
    done: list[ToolResult] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    return thread, done


@pytest.mark.java
def test_a_verifiable_producer_loses_nothing_when_its_leaders_are_killed(
    cluster: Cluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    create(cluster, "verified", 1, 2, 3)
    # By itself the tool tries nothing again: how much of what is under way at a kill it loses is anybody's guess.
    patient = tmp_path / "producer.properties"
    patient.write_text("retries=2147483647\n")
    count = 2_000
    words = ("--bootstrap-server", cluster.bootstrap, "--topic", "verified", "--acks", "-1")
    limits = ("--max-messages", str(count), "--throughput", "400", "--command-config", str(patient))
    thread, done = beside(lambda: kafka_tools.run("VerifiableProducer", *words, *limits, seconds=SECONDS_MAX))
    cluster.until(lambda: len(read_all(cluster, "verified")) > 200)
    killed = cluster.kill_leader("verified")
    cluster.until(lambda: cluster.leader("verified") not in (-1, killed))
    cluster.until_in_sync("verified")
    cluster.restart(cluster.until_led("verified"))
    thread.join(SECONDS_MAX)
    events = [json.loads(line) for line in done[0].checked().splitlines() if line.startswith("{")]
    acknowledged = [int(event["value"]) for event in events if event["name"] == "producer_send_success"]
    assert sorted(acknowledged) == list(range(count))
    assert list(map(int, read_all(cluster, "verified"))) == list(range(count))


# Groups whose coordinator is killed.


def coordinator(cluster: Cluster, group: str) -> int:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return int(admin.describe_consumer_groups([group])[group].result(SECONDS_MAX).coordinator.id)


def committed(cluster: Cluster, group: str) -> list[int]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return [found.offset for found in admin.list_group_offsets(group).values()]


class Writer:
    """A record each few milliseconds, until it is stopped; at `pause_at` it waits for `go_on`."""

    def __init__(self, cluster: Cluster, topic: str, pause_at: int | None = None) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._topic = topic
        self._stop = threading.Event()
        self._pause_at = pause_at
        self._goes_on = threading.Event()
        self.acknowledged: set[str] = set()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._stop.is_set():
            if number == self._pause_at:
                self._producer.flush(SECONDS_MAX)
                self._goes_on.wait(SECONDS_MAX)
            self._producer.produce(self._topic, str(number), on_delivery=self._done)
            self._producer.poll(0.005)
            number += 1
        self._producer.flush(SECONDS_MAX)

    def _done(self, error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            self.acknowledged.add(bytes(value).decode())

    def go_on(self) -> None:
        self._goes_on.set()

    def stop(self) -> set[str]:
        self._stop.set()
        self._thread.join(SECONDS_MAX)
        return self.acknowledged


def consumed_by_librdkafka(cluster: Cluster, topic: str, fault: Callable[[], None], writer: Writer) -> set[str]:
    members = [
        confluent_kafka.Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "log_level": 0,
                "auto.commit.interval.ms": 200,
            }
        )
        for _ in range(2)
    ]
    found: set[str] = set()
    try:
        for member in members:
            member.subscribe([topic])

        def take() -> None:
            for member in members:
                for message in member.consume(500, 0.1):
                    if message.error() is None:
                        found.add(message.value().decode())

        went(take, found, fault, writer)
    finally:
        for member in members:
            member.close()
    return found


def consumed_by_aiokafka(cluster: Cluster, topic: str, fault: Callable[[], None], writer: Writer) -> set[str]:
    found: set[str] = set()

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=200,
        )
        await consumer.start()
        try:

            async def take() -> None:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found.update(record.value.decode() for record in records)

            await went_async(take, found, fault, writer)
        finally:
            await consumer.stop()

    asyncio.run(run())
    return found


def went(take: Callable[[], None], found: set[str], fault: Callable[[], None], writer: Writer) -> None:
    """Consumes, has the fault happen in the middle, and goes on until everything that was written came."""
    ends = time.monotonic() + SECONDS_MAX
    while len(found) < 100:
        take()
        assert time.monotonic() < ends
    fault()
    before = len(found)
    while len(found) < before + 300:
        take()
        assert time.monotonic() < ends
    acknowledged = writer.stop()
    while not acknowledged <= found:
        take()
        assert time.monotonic() < ends, f"{len(acknowledged - found)} did not come"


async def went_async(take: Callable[[], object], found: set[str], fault: Callable[[], None], writer: Writer) -> None:
    ends = time.monotonic() + SECONDS_MAX
    while len(found) < 100:
        await take()  # type: ignore[misc]
        assert time.monotonic() < ends
    await asyncio.to_thread(fault)
    before = len(found)
    while len(found) < before + 300:
        await take()  # type: ignore[misc]
        assert time.monotonic() < ends
    acknowledged = await asyncio.to_thread(writer.stop)
    while not acknowledged <= found:
        await take()  # type: ignore[misc]
        assert time.monotonic() < ends, f"{len(acknowledged - found)} did not come"


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka"])
def test_a_group_goes_on_when_its_coordinator_is_killed(cluster: Cluster, client: str) -> None:
    topic = f"group-{client}"
    cluster.create_topic(topic, 2)
    consumed = consumed_by_librdkafka if client == "librdkafka" else consumed_by_aiokafka
    writer = Writer(cluster, topic)
    found = consumed(cluster, topic, lambda: cluster.kill(coordinator(cluster, topic)), writer)
    assert writer.acknowledged <= found
    cluster.until_in_sync(topic)


@pytest.mark.java
@pytest.mark.slow
def test_a_java_group_goes_on_when_its_coordinator_is_killed(cluster: Cluster, kafka_tools: KafkaTools) -> None:
    topic, before, count = "group-java", 500, 1_500
    cluster.create_topic(topic, 2)
    # There is less than the group takes until its coordinator is killed: it takes the rest from the next one.
    writer = Writer(cluster, topic, pause_at=before)
    words = ("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group-id", topic)
    more = ("--max-messages", str(count), "--reset-policy", "earliest", "--verbose")
    thread, done = beside(lambda: kafka_tools.run("VerifiableConsumer", *words, *more, seconds=SECONDS_MAX))
    cluster.until(lambda: len(writer.acknowledged) == before)
    cluster.until(lambda: any(position > 0 for position in committed(cluster, topic)))
    killed_at = time.time() * 1000
    cluster.kill(coordinator(cluster, topic))
    writer.go_on()
    thread.join(SECONDS_MAX)
    writer.stop()
    events = [json.loads(line) for line in done[0].checked().splitlines() if line.startswith("{")]
    seen: dict[int, set[int]] = {}
    for event in events:
        if event["name"] == "record_data":
            seen.setdefault(event["partition"], set()).add(event["offset"])
    # What was taken and not committed comes again, and nothing is passed over.
    assert all(offsets == set(range(len(offsets))) for offsets in seen.values())
    commits = [event for event in events if event["name"] == "offsets_committed" and event["timestamp"] > killed_at]
    assert any(event["success"] for event in commits), commits
    cluster.until_in_sync(topic)
