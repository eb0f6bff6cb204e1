"""The lag of a query's group, as Kafka's own ConsumerGroupCommand shows it: while the query runs, and afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_groups_beside_kafka import rows_of
from tests.spark.source.conftest import Fill
from tests.spark.source.test_in_spark import committed, options_for, wait_for
from tools.kafka_tools import KafkaTools

import ottla.spark
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

COLUMNS = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
SECONDS_MAX = 900.0


def test_during_a_query_and_behind_it(
    spark: Any, broker: InProcessBroker, topic: str, fill: Fill, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    group = f"group-of-{topic}"
    asked = ("--bootstrap-server", broker.bootstrap, "--describe", "--group", group)
    shown: dict[int, list[list[str]]] = {}

    def lag() -> list[list[str]]:
        return rows_of(kafka_tools.run("consumer.group.ConsumerGroupCommand", *asked).checked(), *COLUMNS)

    def look(frame: Any, batch: int) -> None:
        """In the middle of a micro-batch; those before it are committed."""
        assert frame.count() == (6 if batch == 2 else 12)
        wait_for(lambda: committed(broker, group, topic) == 12 * batch)
        shown[batch] = lag() if batch else []

    options = options_for(
        broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger=12, **{"kafka.group.id": group}
    )
    fill(broker.bootstrap, topic, 30)
    tracked = ottla.spark.track(spark)
    try:
        stream = spark.readStream.format("ottla").options(**options).load().writeStream.foreachBatch(look)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        assert stream.start().awaitTermination(SECONDS_MAX)
        wait_for(lambda: committed(broker, group, topic) == 30)
    finally:
        tracked.stop()
    assert shown[1] == [[partition, "4", "10", "6"] for partition in "012"]
    assert shown[2] == [[partition, "8", "10", "2"] for partition in "012"]
    assert lag() == [[partition, "10", "10", "0"] for partition in "012"]
    fill(broker.bootstrap, topic, 5, first=30)
    assert lag() == [["0", "10", "12", "2"], ["1", "10", "12", "2"], ["2", "10", "11", "1"]]
