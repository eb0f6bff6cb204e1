"""Files of Apache Kafka: the same rows as over its wire, transactions and compaction included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.interop.broker import Broker
from tests.interop.clients import SECONDS_MAX
from tests.spark.source.direct.conftest import copied_from, rows, sealed, sealed_until

from ottla.client.sync import Admin
from ottla.spark.source.direct.reading import direct_reading
from ottla.spark.source.links import close_links, link
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import SourceSettings, source_settings

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]

PLAIN, TRANSACTIONS = "plain-files", "transactions-in-files"


def write(bootstrap: str) -> None:
    """300 records, and in the other topic 100 that were committed between 100 that were aborted, ten at a time."""
    plain = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 3})
    for number in range(300):
        plain.produce(PLAIN, b"%d" % number, b"k%d" % number, partition=0)
    assert plain.flush(SECONDS_MAX) == 0
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "files", "compression.type": "zstd"})
    writer.init_transactions(SECONDS_MAX)
    for number in range(20):
        writer.begin_transaction()
        for more in range(10):
            writer.produce(TRANSACTIONS, b"%d" % (10 * number + more), b"k", partition=0)
        assert writer.flush(SECONDS_MAX) == 0
        (writer.abort_transaction if number % 2 else writer.commit_transaction)(SECONDS_MAX)


def settings_for(bootstrap: str, topic: str, **options: Any) -> SourceSettings:
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "columns": "key,value,offset"}
    return source_settings({**given, **options}, stream=False)


def test_kafkas_files_are_read_like_its_wire(apache_kafka: Broker, tmp_path: Path, said: list[str]) -> None:
    bootstrap = apache_kafka.bootstrap
    direct = {"ottla.direct": True}
    with Admin(bootstrap_servers=bootstrap) as admin:
        for topic in (PLAIN, TRANSACTIONS):
            admin.create_topic(topic, configs={"internal.segment.bytes": "1000"})
        write(bootstrap)
        for topic in (PLAIN, TRANSACTIONS):
            settings = settings_for(bootstrap, topic, **direct)
            (split,) = batch_splits(settings)
            reading = direct_reading(link(settings.client), split, ())
            assert reading is not None
            assert reading.read(0) is not None
            reading.close()
            assert rows(settings) == rows(settings_for(bootstrap, topic))
        assert said == []

        committed = {"kafka.isolation.level": "read_committed"}
        found = rows(settings_for(bootstrap, TRANSACTIONS, **direct, **committed))
        assert found == rows(settings_for(bootstrap, TRANSACTIONS, **committed))
        assert len(found) == 100
        assert "has records of transactions, and isolation.level is read_committed" in said[0]

        # And these are the files that are read.
        (meta,) = apache_kafka.data.rglob("meta.properties")
        copy = copied_from(meta.parent, PLAIN, tmp_path / "copy")
        until = sealed_until(copy, PLAIN)
        assert len(sealed(copy, PLAIN)) > 5
        found = rows(settings_for(bootstrap, PLAIN, **direct, **{"ottla.direct.dirs": str(copy)}))
        assert found == [("F" if number < until else "k", number, number) for number in range(300)]
        close_links()
