"""Apache Kafka's transactional producer and its tools, against one broker of ours and what it has stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools

from ottla.client.admin.admin import Admin
from ottla.client.producing.sequences import ProducerIdentity
from ottla.client.sync import Producer
from ottla.model import TopicPartition as ProducedTo
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.testing import InProcessBroker
from tests.client.admin.test_transactions import write_behind_the_end
from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic, new_broker
from tests.interop.group_wire import Peer
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

RECORDS = 400
ID = "performance"


@pytest.fixture(scope="module")
def used(
    tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer, kafka_tools: KafkaTools
) -> Iterator[Broker]:
    """A broker that Java's producer has written to in many short transactions."""
    broker = new_broker(tmp_path_factory.mktemp("java-transactions"), PROPERTIES)
    with watch_server(broker.server), broker.server:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), "written", partitions=2)
        kafka_tools.run(
            "ProducerPerformance",
            *("--bootstrap-server", broker.bootstrap, "--topic", "written", "--num-records", str(RECORDS)),
            *("--record-size", "100", "--throughput", "2000", "--transactional-id", ID),
            *("--transaction-duration-ms", "20"),
        ).checked()
        # Kafka's producer ends when the decision is written, which is before the markers are.
        peer = Peer(broker.bootstrap, "onlooker")
        look = DescribeTransactionsRequest(transactional_ids=[ID])
        eventually(lambda: peer.ask(look, 0).transaction_states[0].transaction_state == "CompleteCommit")
        peer.close()
        yield broker


def committed(broker: Broker, topic: str, partition: int) -> int:
    """How many records a reader of committed ones finds."""
    reader = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "readers", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True}
    )
    found = 0
    try:
        reader.assign([TopicPartition(topic, partition, 0)])
        while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
            found += 1
    finally:
        reader.close()
    return found


def test_javas_transactions_are_read_once_they_are_committed(used: Broker) -> None:
    assert sum(committed(used, "written", partition) for partition in range(2)) == RECORDS


def test_kafkas_tool_lists_and_describes_them(used: Broker, kafka_tools: KafkaTools) -> None:
    listed = kafka_tools.run("TransactionsCommand", "--bootstrap-server", used.bootstrap, "list").checked()
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [ID]
    assert listed.split()[-1] == "CompleteCommit"
    described = kafka_tools.run(
        "TransactionsCommand", "--bootstrap-server", used.bootstrap, "describe", "--transactional-id", ID
    ).checked()
    header, row = described.splitlines()
    shown = dict(zip(header.split(), row.split(), strict=False))
    assert (shown["TransactionalId"], shown["TransactionState"]) == (ID, "CompleteCommit")
    # Java's producer has found `transaction.version` 2, and so an epoch for each transaction.
    assert int(shown["ProducerEpoch"]) > 1


def test_kafkas_tool_reads_what_is_stored(used: Broker, kafka_tools: KafkaTools) -> None:
    states = []
    for partition in range(int(PROPERTIES["transaction.state.log.num.partitions"])):
        (segment,) = used.partition_folder("__transaction_state", partition).glob("*.log")
        dumped = kafka_tools.run(
            "DumpLogSegments", "--transaction-log-decoder", "--print-data-log", "--files", str(segment)
        ).checked()
        assert "Could not" not in dumped
        states += [line for line in dumped.splitlines() if f"transactional_id={ID}" in line or f'"{ID}"' in line]
    assert len(states) > 4, dumped


HELD = "held"
#: Longer than the tool takes for normal.
HANGING_MINUTES = 20


@pytest.fixture(scope="module")
def held() -> Iterator[Held]:
    """A broker that verifies nothing, with a transaction that is open and two that hang."""
    with InProcessBroker(properties={**PROPERTIES, "transaction.partition.verification.enable": "false"}) as broker:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), HELD, partitions=3)
        # Its time is not over while the tools are at work, however busy the machine.
        settings = {"transactional_id": "open", "transaction_timeout_ms": 900_000}
        with Producer(settings, bootstrap_servers=broker.bootstrap) as producer:
            producer.begin()
            producer.send_and_wait(HELD, b"open", partition=0)
            began_s = time.time()
            hanging = asyncio.run(leave_hanging(broker.bootstrap))
            yield Held(broker.bootstrap, hanging, began_s)
            producer.commit()


class Held(NamedTuple):
    bootstrap: str
    #: Whose transactions hang in partitions 1 and 2.
    hanging: ProducerIdentity
    #: Since when, at the earliest; their records are older by HANGING_MINUTES.
    began_s: float


async def leave_hanging(bootstrap: str) -> ProducerIdentity:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        producer = (await admin.fence_producers(["late"]))["late"]
        for partition in (1, 2):
            of_late = ProducedTo(HELD, partition)
            age_ms = HANGING_MINUTES * 60_000
            await write_behind_the_end(admin, of_late, producer, age_ms=age_ms, transactional_id="late")
        return producer


def transactions(kafka_tools: KafkaTools, held: Held, *words: str) -> list[dict[str, str]]:
    """The rows of a table that Kafka's tool prints, by the names of their columns."""
    printed = kafka_tools.run("TransactionsCommand", "--bootstrap-server", held.bootstrap, *words).checked()
    header, *rows = printed.splitlines()
    return [dict(zip(header.split(), row.split(), strict=True)) for row in rows]


def test_kafkas_tool_sees_an_open_transaction(held: Held, kafka_tools: KafkaTools) -> None:
    (row,) = [row for row in transactions(kafka_tools, held, "list") if row["TransactionalId"] == "open"]
    assert row["TransactionState"] == "Ongoing"
    (described,) = transactions(kafka_tools, held, "describe", "--transactional-id", "open")
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", f"{HELD}-0")
    assert (described["ProducerId"], described["TransactionTimeoutMs"]) == (row["ProducerId"], "900000")
    assert int(described["TransactionDurationMs"]) >= 0
    (writes,) = transactions(kafka_tools, held, "describe-producers", "--topic", HELD, "--partition", "0")
    assert (writes["ProducerId"], writes["ProducerEpoch"]) == (row["ProducerId"], described["ProducerEpoch"])
    assert (writes["LastSequence"], writes["CurrentTransactionStartOffset"]) == ("0", "0")


def test_kafkas_tool_finds_those_that_hang_and_ends_them(held: Held, kafka_tools: KafkaTools) -> None:
    found = transactions(kafka_tools, held, "find-hanging", "--broker-id", "1")
    assert sorted((row["Topic"], row["Partition"], row["StartOffset"]) for row in found) == [
        (HELD, "1", "0"),
        (HELD, "2", "0"),
    ]
    assert {row["ProducerId"] for row in found} == {str(held.hanging.producer_id)}
    longest = HANGING_MINUTES + (time.time() - held.began_s) / 60
    assert all(HANGING_MINUTES <= int(row["Duration(min)"]) <= longest for row in found), found
    assert transactions(kafka_tools, held, "find-hanging", "--topic", HELD, "--max-transaction-timeout", "60") == []

    def abort(partition: int, *words: str) -> None:
        place = ("--topic", HELD, "--partition", str(partition))
        run = ("TransactionsCommand", "--bootstrap-server", held.bootstrap, "abort", *place, *words)
        kafka_tools.run(*run).checked()

    abort(1, "--start-offset", "0")
    (left,) = transactions(kafka_tools, held, "find-hanging", "--topic", HELD)
    assert left["Partition"] == "2"
    # As brokers before 3.0 are asked.
    whose = ("--producer-id", left["ProducerId"], "--producer-epoch", left["ProducerEpoch"])
    abort(2, *whose, "--coordinator-epoch", "0")
    assert transactions(kafka_tools, held, "find-hanging", "--topic", HELD) == []
    (writes,) = transactions(kafka_tools, held, "describe-producers", "--topic", HELD, "--partition", "2")
    assert (writes["CurrentTransactionStartOffset"], writes["LatestCoordinatorEpoch"]) == ("None", "0")
