"""The source against Apache Kafka: transactions and markers at either isolation level, a group, a topic made again."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX
from tests.interop.conftest import create_topic

from ottla.client.sync import Admin
from ottla.model import TopicPartition
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.errors import DataLost
from ottla.spark.source.links import close_links
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import source_settings
from ottla.spark.source.stream import stream_reader
from ottla.spark.source.tasks import read_split

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

TOPIC = "transactions-in-rows"


def write(bootstrap: str) -> None:
    """0-9 of no transaction, 10-19 committed, 20-29 aborted; markers lie behind, the last at the very end."""
    plain = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        plain.produce(TOPIC, b"%d" % number, partition=0)
    assert plain.flush(SECONDS_MAX) == 0
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "w", "compression.type": "zstd"})
    writer.init_transactions(SECONDS_MAX)
    for numbers, end in ((range(10, 20), writer.commit_transaction), (range(20, 30), writer.abort_transaction)):
        writer.begin_transaction()
        for number in numbers:
            writer.produce(TOPIC, b"%d" % number, partition=0)
        assert writer.flush(SECONDS_MAX) == 0
        end(SECONDS_MAX)


def read(bootstrap: str, **options: str) -> list[int]:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "columns": "value", **options}
    settings = source_settings(given, stream=False)
    return [
        int(value)
        for split in batch_splits(settings)
        for batch in read_split(settings, split)
        for value in batch.column(0).to_pylist()
    ]


def test_kafka_is_read_like_ottla(apache_kafka: Broker) -> None:
    bootstrap = apache_kafka.bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin:
        create_topic(AdminClient({"bootstrap.servers": bootstrap}), TOPIC)
        write(bootstrap)
        committed = {"kafka.isolation.level": "read_committed"}
        assert read(bootstrap, **committed) == list(range(20))
        assert read(bootstrap, minPartitions="7", **committed) == list(range(20))
        assert read(bootstrap, **{"kafka.max.partition.fetch.bytes": "100"}) == list(range(30))
        assert read(bootstrap, startingTimestamp="1", endingTimestamp=str(2**41)) == list(range(30))

        reader = stream_reader(
            spark_schema(("value",)),
            {
                "kafka.bootstrap.servers": bootstrap,
                "subscribe": TOPIC,
                "startingOffsets": "earliest",
                "kafka.group.id": "lag",
                "maxBytesPerTrigger": "50",
                **committed,
            },
        )
        start = reader.initialOffset()
        assert reader.latestOffset(start, reader.getDefaultReadLimit()) != start
        end = reader.latestOffset(start, ReadAllAvailable())
        rows = sum(batch.num_rows for split in reader.partitions(start, end) for batch in reader.read(split))
        assert rows == 20
        reader.commit(end)
        assert admin.list_group_offsets("lag")[TopicPartition(TOPIC, 0)].offset == 32

        admin.delete_topic(TOPIC)
        admin.create_topic(TOPIC, 1, 1)
        write(bootstrap)
        with pytest.raises(DataLost, match=f"topic {TOPIC} was deleted and made again"):
            reader.latestOffset(end, ReadAllAvailable())
        close_links()
