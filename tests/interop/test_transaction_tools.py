"""Apache Kafka's transactional producer and its tools, against one broker of ours and what it has stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools

from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.conftest import create_topic, new_broker
from tests.interop.group_wire import Peer
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.xdist_group("kafka-tools")]

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
    assert dict(zip(header.split(), row.split(), strict=False))["TransactionalId"] == ID
    assert "CompleteCommit" in row


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
