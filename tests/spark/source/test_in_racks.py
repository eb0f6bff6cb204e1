"""`kafka.client.rack`: tasks read from the replica in their rack that the leader names, and else from the leader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ottla.testing
from ottla.client.sync import Producer
from ottla.protocol.generated.fetch import PartitionData
from ottla.spark.source.fetching import PartitionFetches
from ottla.spark.source.links import close_links, link
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.tasks import read_split
from ottla.testing import Cluster

TOPIC = "rows"
ROWS = 300
RACKS = {1: "a", 2: "b"}
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(2, properties={"replica.selector.class": SELECTOR}, racks=RACKS) as made:
        made.create_topic(TOPIC, partitions=1, replication_factor=2)
        yield made
        close_links()


def numbers(settings: SourceSettings) -> list[int]:
    return [
        int(value)
        for split in batch_splits(settings)
        for batch in read_split(settings, split)
        for value in batch.column(0).to_pylist()
    ]


@pytest.mark.timeout(300)
def test_rows_come_from_the_replica_in_the_rack_and_without_it_from_the_leader(cluster: Cluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=500) as producer:
        for number in range(ROWS):
            producer.send(TOPIC, b"%d" % number)
    leader = cluster.until_led(TOPIC)
    follower = 3 - leader
    given: dict[str, Any] = {"subscribe": TOPIC, "columns": "value", "kafkaConsumer.pollTimeoutMs": 20_000}
    given |= {"kafka.max.partition.fetch.bytes": 100}
    given |= {"kafka.bootstrap.servers": cluster.bootstrap, "kafka.client.rack": RACKS[follower]}
    settings = source_settings(given, stream=False)
    assert numbers(settings) == list(range(ROWS))

    (split,) = batch_splits(settings)
    way = link(settings.client)
    fetches = PartitionFetches(way.settings, split)

    def answer() -> PartitionData:
        return way.run(lambda of: fetches.answer(of, 0))

    cluster.until(lambda: answer().preferred_read_replica == follower)
    assert fetches.replica == follower
    assert len(answer().records or b"")
    assert fetches.replica == follower
    fetches.replica = 99  # which has left the cluster
    for _ in range(2):
        assert len(answer().records or b"")
        assert fetches.replica is None
