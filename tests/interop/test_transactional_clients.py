"""Transactions of five clients on one topic of ours, open at the same time: all readers see the same records.

librdkafka, aiokafka, kafka-python, Java's and our own, of both generations of the protocol: those that know the newer
one speak it where the cluster's `transaction.version` is 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka
import pytest
from tools.kafka_tools import KafkaTools

from ottla.client import sync
from ottla.client.admin.results import FeatureChange
from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import READERS, SECONDS_MAX, eventually
from tests.interop.conftest import new_broker
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

VERSION = "transaction.version"
ROUNDS = 4
#: Records of Java's producer, each of some milliseconds' transaction.
JAVAS = 20


class Writer(Protocol):
    def begin(self) -> None: ...

    def send(self, value: bytes) -> None:
        """Returns when it is acknowledged."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Librdkafka:
    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self._topic = topic
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        self._producer.init_transactions(SECONDS_MAX)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes) -> None:
        self._producer.produce(self._topic, value, partition=0)
        assert self._producer.flush(SECONDS_MAX) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(SECONDS_MAX)

    def abort(self) -> None:
        self._producer.abort_transaction(SECONDS_MAX)

    def close(self) -> None:
        self._producer.flush(SECONDS_MAX)


class Aiokafka:
    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self._topic = topic
        self._runner = asyncio.Runner()

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
            await producer.start()
            return producer

        self._producer = self._runner.run(start())

    def begin(self) -> None:
        self._runner.run(self._producer.begin_transaction())

    def send(self, value: bytes) -> None:
        self._runner.run(self._producer.send_and_wait(self._topic, value, partition=0))

    def commit(self) -> None:
        self._runner.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._runner.run(self._producer.abort_transaction())

    def close(self) -> None:
        self._runner.run(self._producer.stop())
        self._runner.close()


class KafkaPython:
    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self._topic = topic
        self._producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes) -> None:
        self._producer.send(self._topic, value, partition=0).get(SECONDS_MAX)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


class Ours:
    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self._topic = topic
        self._producer = sync.Producer(bootstrap_servers=bootstrap, transactional_id=name)

    def begin(self) -> None:
        self._producer.begin()

    def send(self, value: bytes) -> None:
        self._producer.send_and_wait(self._topic, value, partition=0)

    def commit(self) -> None:
        self._producer.commit()

    def abort(self) -> None:
        self._producer.abort()

    def close(self) -> None:
        self._producer.close()


CLIENTS: dict[str, Callable[[str, str, str], Writer]] = {
    "confluent": Librdkafka,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
    "ottla": Ours,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    made = new_broker(tmp_path_factory.mktemp("clients"), PROPERTIES)
    with watch_server(made.server), made.server:
        yield made


#: aiokafka and kafka-python speak the older generation in any case.
@pytest.mark.parametrize("level", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_five_clients_on_one_topic(broker: Broker, kafka_tools: KafkaTools, tmp_path: Path, level: int) -> None:
    topic, bootstrap = f"five-{level}", broker.bootstrap
    with sync.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, 1)
        change = FeatureChange.UPGRADE if level == 2 else FeatureChange.SAFE_DOWNGRADE
        admin.update_features({VERSION: level}, change)
        eventually(lambda: admin.describe_features()[VERSION].level == level)

    writers = {name: kind(bootstrap, topic, f"{name}-{level}") for name, kind in CLIENTS.items()}
    expected = []
    for number in range(ROUNDS):
        for name, writer in writers.items():
            writer.begin()
            writer.send(b"%s %d" % (name.encode(), number))
        for place, (name, writer) in enumerate(writers.items()):
            if (number + place) % 2:
                writer.commit()
                expected.append(b"%s %d" % (name.encode(), number))
            else:
                writer.abort()
    # What Java's producer commits lies between the records of a transaction that is open, and is aborted later.
    writers["ottla"].begin()
    writers["ottla"].send(b"before")
    write_by_java(kafka_tools, bootstrap, topic, f"java-{level}", tmp_path)
    writers["ottla"].send(b"behind")
    writers["ottla"].abort()
    expected += [b"java"] * JAVAS
    for name, writer in writers.items():
        writer.begin()
        writer.send(b"last of " + name.encode())
        writer.commit()
        expected.append(b"last of " + name.encode())
        writer.close()

    with sync.Admin(bootstrap_servers=bootstrap) as admin:
        # An epoch for each transaction, or one for all of them. How many there are is a matter of Java's pace.
        epoch = admin.describe_transactions([f"java-{level}"])[f"java-{level}"].producer_epoch
        assert epoch > 0 if level == 2 else epoch == 0
    for name in CLIENTS:
        settings = {} if name == "confluent" else {"isolation_level": "read_committed"}
        read = READERS[name](bootstrap, topic, len(expected), **settings)
        assert [each.row.value for each in read] == expected, name
    assert read_by_java(kafka_tools, bootstrap, topic, len(expected)) == expected


def write_by_java(tools: KafkaTools, bootstrap: str, topic: str, name: str, folder: Path) -> None:
    payload = folder / "payload.txt"
    payload.write_text("java")
    tools.run(
        "ProducerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--num-records", str(JAVAS), "--throughput", "200"),
        *("--payload-file", str(payload), "--transactional-id", name, "--transaction-duration-ms", "20"),
    ).checked()


def read_by_java(tools: KafkaTools, bootstrap: str, topic: str, count: int) -> list[bytes]:
    read = tools.run(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", str(count)),
        *("--isolation-level", "read_committed", "--timeout-ms", str(int(SECONDS_MAX * 1000))),
    ).checked()
    return [line.encode() for line in read.splitlines()[:count]]
