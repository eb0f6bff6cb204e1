"""The shared Spark session, a broker, and runs of small pipelines."""

from __future__ import annotations

import asyncio
import itertools
import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.client.reading import read_all
from tests.spark.conftest import spark  # noqa: F401 - a fixture

import ottla.testing
from ottla.client.records import ConsumerRecord
from ottla.client.sync import Producer
from ottla.pipeline.dead_letters import PREFIX
from ottla.pipeline.loading import load
from ottla.pipeline.places import Places
from ottla.pipeline.running import PipelineRun
from ottla.pipeline.tables.reading import read_table
from ottla.spark.sink.clients import close_kept_clients
from ottla.spark.source.links import close_links
from ottla.testing import Cluster, InProcessBroker

_numbers = itertools.count()
#: What runs of pipelines set in the session, which other tests use too.
_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.numRecentProgressUpdates",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.variant.writeShredding.enabled",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[InProcessBroker]:
    with ottla.testing.broker(properties={"log.retention.ms": "-1"}) as running:
        yield running
        close_links()
        close_kept_clients()


class Pipeline:
    """One file, its folder, and its topic."""

    def __init__(self, session: Any, broker: InProcessBroker | Cluster, folder: Path) -> None:
        self.spark = session
        self.broker = broker
        self.folder = folder
        self.path = folder / "shop.py"
        self.places = Places(str(folder / "data"))
        self.kafka = {"kafka.bootstrap.servers": broker.bootstrap}
        self.topic = f"orders-{next(_numbers)}"
        broker.create_topic(self.topic, partitions=2)

    def define(self, text: str) -> None:
        """TOPIC in the text is the pipeline's own."""
        imports = "from pyspark.sql import functions as F\nfrom ottla.pipeline import *\n"
        self.path.write_text(imports + textwrap.dedent(text).replace("TOPIC", self.topic))

    def run(self) -> PipelineRun:
        return PipelineRun(self.spark, load(str(self.path)), self.places, self.kafka, lambda flows: None)

    def catch_up(self) -> PipelineRun:
        run = self.run()
        run.catch_up()
        return run

    def send(
        self,
        *values: Any,
        timestamp: int | None = None,
        key: str | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Objects as JSON, bytes as they are."""
        with Producer(bootstrap_servers=self.broker.bootstrap) as producer:
            for value in values:
                data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
                its_key = None if key is None else key.encode()
                producer.send(self.topic, data, key=its_key, timestamp=timestamp, headers=headers)

    def rows(self, table: str, *columns: str) -> list[Any]:
        frame = read_table(self.spark, self.places.table(table))
        return sorted((tuple(row) for row in frame.selectExpr(*columns).collect()), key=repr)

    def records(self, topic: str) -> list[ConsumerRecord]:
        return asyncio.run(read_all(self.broker.bootstrap, topic))


@pytest.fixture
def pipeline(spark: Any, kept_settings: None, broker: InProcessBroker, tmp_path: Path) -> Pipeline:  # noqa: F811
    return Pipeline(spark, broker, tmp_path)


@pytest.fixture
def kept_settings(spark: Any) -> Iterator[None]:  # noqa: F811
    """What a run sets is set back for those who use the session next."""
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    yield
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def headers(record: ConsumerRecord) -> dict[str, str]:
    """Those that say why it is a dead letter."""
    return {key: (value or b"").decode() for key, value in record.headers if key.startswith(PREFIX)}
