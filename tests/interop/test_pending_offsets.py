"""Offsets that producers have committed in transactions, as Kafka's tool reads them in our offsets topic."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.kafka_tools import KafkaTools

from tests.conftest import WatchServer
from tests.interop.clients import SECONDS_MAX
from tests.interop.conftest import create_topic, new_broker
from tests.interop.transaction_answers import PROPERTIES

pytestmark = [pytest.mark.xdist_group("kafka-tools")]


def test_kafkas_tool_reads_pending_offsets_and_their_markers(
    tmp_path: Path, watch_server: WatchServer, kafka_tools: KafkaTools
) -> None:
    broker = new_broker(tmp_path, {**PROPERTIES, "offsets.topic.num.partitions": "1"})
    with watch_server(broker.server), broker.server:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), "read", partitions=1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "committing"})
        producer.init_transactions(SECONDS_MAX)
        for commits in (True, False):
            consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"ended-{commits}"})
            producer.begin_transaction()
            offsets = [TopicPartition("read", 0, 41 + commits)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS_MAX)
            if commits:
                producer.commit_transaction(SECONDS_MAX)
            else:
                producer.abort_transaction(SECONDS_MAX)
            consumer.close()
        # The next transaction begins when all markers of the one before are written.
        producer.begin_transaction()
        producer.produce("read", b"x")
        producer.commit_transaction(SECONDS_MAX)
    (segment,) = broker.partition_folder("__consumer_offsets", 0).glob("*.log")
    dumped = kafka_tools.run(
        "DumpLogSegments", "--offsets-decoder", "--print-data-log", "--files", str(segment)
    ).checked()
    assert "Could not" not in dumped
    told = [line for line in dumped.splitlines() if "isTransactional: true" in line]
    assert ["isControl: true" in line for line in told] == [False, True, False, True], dumped
    assert '"group":"ended-True"' in dumped
    assert '"offset":42' in dumped
    assert "endTxnMarker: COMMIT" in dumped
    assert "endTxnMarker: ABORT" in dumped
