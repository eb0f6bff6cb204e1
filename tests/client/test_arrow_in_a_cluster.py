"""Tables into a topic of three brokers and out again, while leaders are killed: no row lost, none twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import ottla.testing
from ottla.client.sync import Consumer, Producer
from ottla.testing import Cluster

TOPIC = "rows"
TABLES = 20
ROWS = 500


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with ottla.testing.cluster(3, properties={"min.insync.replicas": "2"}) as made:
        made.create_topic(TOPIC, partitions=3, replication_factor=3)
        yield made


def write(bootstrap: str, first: int, tables: int) -> None:
    with Producer(bootstrap_servers=bootstrap, batch_size=4000) as producer:
        for number in range(first, first + tables):
            rows = [b"%d" % n for n in range(number * ROWS, (number + 1) * ROWS)]
            producer.send_arrow(pa.table({"value": rows, "key": rows}), TOPIC)


@pytest.mark.timeout(300)
def test_leaders_are_killed_while_tables_are_written_and_read(cluster: Cluster) -> None:
    bootstrap = cluster.bootstrap
    write(bootstrap, 0, 1)
    found: list[int] = []
    with (
        ThreadPoolExecutor(1) as pool,
        Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer,
    ):
        consumer.assign([(TOPIC, partition) for partition in range(3)])
        writing = pool.submit(write, bootstrap, 1, TABLES - 1)
        killed = False
        while len(found) < TABLES * ROWS:
            batch = consumer.poll_arrow(columns=["value"], max_rows=200)
            found += [int(value) for value in batch.column(0).to_pylist()]
            if not killed and len(found) > ROWS:
                killed = True
                cluster.kill_leader(TOPIC)  # it comes back by itself
        writing.result()
        assert consumer.poll_arrow(timeout_ms=200) is None
    assert sorted(found) == list(range(TABLES * ROWS))
