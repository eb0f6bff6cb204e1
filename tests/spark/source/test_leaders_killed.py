"""A topic of three brokers is read while its leaders are killed, or others lead: every row once, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import ottla.testing
from ottla.client.sync import Producer
from ottla.model import TopicPartition
from ottla.spark.source.links import close_links
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import source_settings
from ottla.spark.source.tasks import read_split
from ottla.testing import Cluster

Leave = Callable[[Cluster, str, int], int]
TOPIC = "rows"
ROWS = 3000


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TOPIC, partitions=3, replication_factor=3)
        yield made
        close_links()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("leave", [Cluster.kill_leader, Cluster.move_leader])
def test_every_row_once_while_others_come_to_lead(cluster: Cluster, leave: Leave) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=500) as producer:
        for number in range(ROWS):
            producer.send(TOPIC, b"%d" % number, partition=number % 3)
    given = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": TOPIC, "columns": "value"}
    settings = source_settings({**given, "kafka.max.partition.fetch.bytes": "100"}, stream=False)
    for split in batch_splits(settings):
        numbers: list[int] = []
        for batch in read_split(settings, split):
            if not numbers:
                assert batch.num_rows < 100, "most is still to come"
                leave(cluster, TOPIC, split.tp.partition)  # who was killed comes back by itself
            numbers += [int(value) for value in batch.column(0).to_pylist()]
        assert split.tp == TopicPartition(TOPIC, split.tp.partition)
        assert numbers == list(range(split.tp.partition, ROWS, 3))
