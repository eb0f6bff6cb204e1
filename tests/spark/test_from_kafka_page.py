"""docs/spark-from-kafka.md, option by option: what it calls the same is taken, what it calls refused is refused."""

from __future__ import annotations

import re

import pytest
from tests.conftest import REPOSITORY

from ottla.spark.options import OptionError
from ottla.spark.sink.target import checked_target
from ottla.spark.source.settings import source_settings

PAGE = (REPOSITORY / "docs" / "spark-from-kafka.md").read_text()
KAFKA = {"kafka.bootstrap.servers": "localhost:9092"}
#: A value for each, as Spark's own page has it.
VALUES = {
    "assign": '{"orders": [0, 1]}',
    "subscribe": "orders,clicks",
    "subscribePattern": "orders.*",
    "startingOffsets": '{"orders": {"0": 23, "1": -2}}',
    "startingTimestamp": "1000",
    "startingOffsetsByTimestamp": '{"orders": {"0": 1000, "1": 2000}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "endingOffsets": '{"orders": {"0": 50, "1": -1}}',
    "endingTimestamp": "1000",
    "endingOffsetsByTimestamp": '{"orders": {"0": 1000, "1": 2000}}',
    "failOnDataLoss": "false",
    "maxOffsetsPerTrigger": "1000",
    "minOffsetsPerTrigger": "10",
    "maxTriggerDelay": "15m",
    "minPartitions": "10",
    "maxRecordsPerPartition": "1000",
    "includeHeaders": "true",
    "groupIdPrefix": "spark-kafka-source",
    "kafka.group.id": "reports",
    "kafkaConsumer.pollTimeoutMs": "120000",
    "fetchOffset.numRetries": "3",
    "fetchOffset.retryIntervalMs": "10",
    "kafka.isolation.level": "read_committed",
    "kafka.bootstrap.servers": "localhost:9092,localhost:9093",
}
#: Of Kafka's clients, and of the groups of options that a star stands for.
REFUSED = {
    "kafka.auto.offset.reset": "earliest",
    "kafka.enable.auto.commit": "true",
    "kafka.key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    "kafka.value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    "kafka.interceptor.classes": "com.example.Audit",
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.location": "/etc/truststore.jks",
    "kafka.sasl.jaas.config": "x",
    "maxOffsetPerTrigger": "1",
}
SINK_REFUSED = ("kafka.key.serializer", "kafka.value.serializer")


def source(name: str, value: str, *, stream: bool) -> None:
    which = {} if name in {"assign", "subscribe", "subscribePattern"} else {"subscribe": "orders"}
    source_settings({**KAFKA, **which, name: value}, stream=stream)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_what_is_the_same_is_taken(name: str) -> None:
    assert f"`{name}`" in PAGE
    source(name, VALUES[name], stream=False)
    if not name.startswith("ending"):
        source(name, VALUES[name], stream=True)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_is_refused_by_its_name(name: str) -> None:
    near = re.sub(r"^(kafka\.(?:ssl|sasl))\..*", r"\1.*", name)
    assert f"`{near}`" in PAGE or name == "maxOffsetPerTrigger"
    with pytest.raises(OptionError) as caught:
        source(name, REFUSED[name], stream=True)
    assert name.removeprefix("kafka.").lower() in str(caught.value).lower()


@pytest.mark.parametrize("name", SINK_REFUSED)
def test_the_sink_refuses_serializers(name: str) -> None:
    assert f"`{name}`" in PAGE
    with pytest.raises(OptionError, match=name.removeprefix("kafka.")):
        checked_target({**KAFKA, "topic": "orders", name: "x"}, streaming=False)


def test_every_option_of_its_table_is_tried_here() -> None:
    table = PAGE.partition("## Options of the source")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}
    tried = {*VALUES, *REFUSED, "kafka.ssl.*", "kafka.sasl.*", "kafka.*"}
    assert named - tried == set()
