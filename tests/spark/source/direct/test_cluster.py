"""Direct reading in a cluster of three: a follower's files serve too, and those of a replica that is stale do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.source.direct.conftest import copied_from, expected, rewrite, rows, rows_of, sealed, sealed_until

import ottla.testing
from ottla.client.sync import Producer
from ottla.records.batch import LEADER_EPOCH_AT
from ottla.spark.source.links import close_links
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.tasks import read_split
from ottla.testing import Cluster

TOPIC = "rows"
ROWS = 300


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # Who was dead stays a follower.
    properties = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}
    with ottla.testing.cluster(3, properties=properties) as made:
        made.create_topic(TOPIC, partitions=1, replication_factor=3, configs={"internal.segment.bytes": "1000"})
        yield made
        close_links()


def fill(cluster: Cluster, first: int, count: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=100, linger_ms=100) as producer:
        for number in range(first, first + count):
            producer.send(TOPIC, b"%d" % number, key=b"k%d" % number)


def copy_of(cluster: Cluster, broker: int, to: Path) -> Path:
    """Of one broker's directory, giving itself away."""
    (found,) = [
        one for one in Path(cluster.data).rglob("meta.properties") if f"broker.id={broker}\n" in one.read_text()
    ]
    return copied_from(found.parent, TOPIC, to)


def settings_for(cluster: Cluster, *directories: Path) -> SourceSettings:
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap,
        "subscribe": TOPIC,
        "columns": "key,value,offset",
        "ottla.direct": True,
        "ottla.direct.dirs": ",".join(map(str, directories)),
    }
    return source_settings(given, stream=False)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_followers_files_and_a_stale_replicas(cluster: Cluster, tmp_path: Path) -> None:
    fill(cluster, 0, ROWS)
    dead = cluster.kill_leader(TOPIC)
    cluster.until(lambda: cluster.leader(TOPIC) not in {-1, dead})
    fill(cluster, ROWS, ROWS)
    cluster.until_in_sync(TOPIC)  # the dead one came back
    fill(cluster, 2 * ROWS, ROWS)

    # The one that was dead is a follower now.
    follower = copy_of(cluster, dead, tmp_path / "follower")
    until = sealed_until(follower, TOPIC)
    assert 2 * ROWS < until < 3 * ROWS
    assert rows(settings_for(cluster, follower)) == expected(until, until=3 * ROWS)

    # As if it had led on, alone, in the epoch in which it died: what it has there another leader wrote otherwise.
    def older(data: bytearray, pos: int, _: int) -> None:
        data[pos + LEADER_EPOCH_AT + 3] = 0

    for file in sealed(follower, TOPIC):
        rewrite(file, older)
    assert rows(settings_for(cluster, follower)) == expected(0, until=3 * ROWS)

    # The leader's files win where a task sees both; killed in the middle, it leaves no row out and gives none twice.
    own = copy_of(cluster, cluster.leader(TOPIC), tmp_path / "own")
    settings = settings_for(cluster, follower, own)
    (split,) = batch_splits(settings)
    found = []
    for batch in read_split(settings, split):
        if not found:
            cluster.kill_leader(TOPIC)
        found += rows_of(batch)
    assert found == expected(sealed_until(own, TOPIC), until=3 * ROWS)
