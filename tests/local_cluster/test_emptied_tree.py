"""A cluster whose tree comes back empty: what the brokers are is nowhere else any more, and they go on being it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ottla.testing
from ottla.client.sync import Consumer, Producer

TOPIC = "rows"
BEFORE, BEHIND = 20, 50


@pytest.mark.slow
def test_brokers_serve_on_beside_a_tree_that_has_been_emptied(tmp_path: Path) -> None:
    with ottla.testing.cluster(3, data=tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        cluster.until_in_sync(TOPIC)
        leader = cluster.until_led(TOPIC)
        # Who produces has its id: another one may come from the tree alone.
        with Producer(bootstrap_servers=cluster.bootstrap, acks="all", delivery_timeout_ms=120_000) as producer:
            produce(producer, 0, BEFORE)
            shutil.rmtree(tmp_path / "data.coordination")
            cluster.kill_tree()
            cluster.until(lambda: any("the client has seen transaction" in line for line in cluster.log))
            produce(producer, BEFORE, BEFORE + BEHIND)
        assert cluster.until_led(TOPIC) == leader
        with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            found: list[int] = []
            while len(found) < BEFORE + BEHIND:
                found += [int(record.value or b"") for record in consumer.poll(timeout_ms=60_000)]
        assert found == list(range(BEFORE + BEHIND))


def produce(producer: Producer, first: int, end: int) -> None:
    for delivery in [producer.send(TOPIC, b"%d" % number) for number in range(first, end)]:
        delivery.result(120)
