"""Row for row what Spark's own Kafka source reads, with its options."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from tests.client.reading import read_all
from tests.conftest import REPOSITORY, found_jars
from tools.kafka_jars import SPARK_CONNECTOR

import ottla.testing
from ottla.client.sync import Producer
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 600


PARTITIONS = 3
#: The connector, of 4.0.0, passes over maxRecordsPerPartition, and makes tasks of partitions with nothing to read.
OTHER_TASKS = {"records a split", "compacted, splits", "after the last", "times", "times by partition"}


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    """What can be compacted is, at once; and nothing goes for being of years ago."""
    with ottla.testing.broker(properties={"log.retention.ms": "-1", "log.cleaner.backoff.ms": "50"}) as running:
        yield running


def write(bootstrap: str, topic: str) -> None:
    chance = Random(1)
    with Producer(bootstrap_servers=bootstrap, compression_type="zstd") as producer:
        for number in range(300):
            producer.send(
                topic,
                None if number % 11 == 0 else b"v%d" % number,
                key=None if number % 5 == 0 else b"k%d" % number,
                partition=number % PARTITIONS,
                timestamp=1_700_000_000_000 + chance.randrange(300),
                headers=[("trace", b"\x00\xff"), ("kind", None)] if number % 2 else None,
            )


@contextmanager
def transactions(bootstrap: str, topic: str) -> Iterator[None]:
    """By all codecs: of none, aborted, committed, and one that stays open, with a committed one behind it."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        settings = {"bootstrap_servers": bootstrap, "compression_type": codec}
        with Producer(**settings) as plain, Producer(**settings, transactional_id=f"{topic}-{codec}") as writer:
            writer.init_transactions()
            for ends in (writer.abort, writer.commit, writer.abort):
                writer.begin()
                for number in range(20):
                    producer = plain if number % 4 == 0 else writer
                    producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
                plain.flush()
                writer.flush()
                ends()
    with Producer(
        bootstrap_servers=bootstrap, transactional_id=f"{topic}-open", transaction_timeout_ms=900_000
    ) as opened:
        opened.init_transactions()
        opened.begin()
        opened.send_and_wait(topic, b"open", partition=1)
        with Producer(bootstrap_servers=bootstrap) as plain:
            for partition in range(PARTITIONS):
                plain.send(topic, b"behind it", partition=partition)
        yield
        opened.abort()


def compact(broker: InProcessBroker, topic: str) -> None:
    """Until little is left of it but gaps."""
    settled = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "20000"}
    broker.create_topic(topic, PARTITIONS, settled)
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=1_000) as producer:
        for number in range(6_000):
            producer.send(topic, b"%d" % number, key=b"k%d" % (number % 40), partition=number % PARTITIONS)
    while len(asyncio.run(read_all(broker.bootstrap, topic))) > 3_000:
        time.sleep(0.1)


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_every_option_gives_the_same_rows(broker: InProcessBroker, topic: str) -> None:
    found_jars(SPARK_CONNECTOR)
    write(broker.bootstrap, topic)
    in_transactions, compacted = f"{topic}-in-transactions", f"{topic}-compacted"
    broker.create_topic(in_transactions, PARTITIONS)
    compact(broker, compacted)
    words = [broker.bootstrap, topic, in_transactions, compacted]
    with transactions(broker.bootstrap, in_transactions):
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.source.connector_rows", *words],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
            cwd=REPOSITORY,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    compared = {
        one["options"]: one for one in (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    }
    assert len(compared) >= 14
    assert [one for one in compared.values() if not one["same"]] == []
    assert {name for name, one in compared.items() if len(set(one["tasks"])) > 1} <= OTHER_TASKS
    assert all(one["rows"][0] for name, one in compared.items() if name != "after the last")
    everything, committed = (compared[f"transactions, {name}"]["rows"][0] for name in ("all", "committed"))
    # Of five codecs: of sixty records three quarters in transactions, and two thirds of these aborted. And nothing from
    # the open one on.
    assert everything - committed == 5 * 30 + 2
    assert compared["compacted"]["rows"][0] <= 3_000
