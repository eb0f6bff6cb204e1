"""Options: names, defaults and precedence of Spark's Kafka source; what is wrong is said with the option's name."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ottla.arrow.schema import DEFAULT_COLUMNS
from ottla.model import TopicPartition
from ottla.spark import OptionError
from ottla.spark.options import client_settings
from ottla.spark.source.columns import columns_in
from ottla.spark.source.offsets import EARLIEST_OFFSET, LATEST_OFFSET
from ottla.spark.source.settings import columns_of, source_settings

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
ORDERS = {**SERVERS, "subscribe": "orders"}


def test_defaults_of_a_batch_and_of_a_stream() -> None:
    batch, stream = source_settings(ORDERS, stream=False), source_settings(ORDERS, stream=True)
    assert batch.starting.everywhere == EARLIEST_OFFSET
    assert stream.starting.everywhere == LATEST_OFFSET
    assert batch.ending.everywhere == LATEST_OFFSET
    assert batch.fail_on_data_loss
    assert batch.columns == DEFAULT_COLUMNS
    assert batch.group is None


def test_names_in_any_case_and_values_as_python_has_them() -> None:
    found = source_settings(
        {"KAFKA.Bootstrap.Servers": "a:1", "SUBSCRIBE": "x, y", "failondataloss": False, "minPartitions": 4},
        stream=False,
    )
    assert found.subscription.topics == ("x", "y")
    assert not found.fail_on_data_loss
    assert found.min_partitions == 4
    assert found.client == {"bootstrap.servers": "a:1"}


def test_a_timestamp_comes_before_offsets_by_timestamp_and_those_before_offsets() -> None:
    every = {
        **ORDERS,
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"orders": {"0": 7}}',
        "startingOffsets": "earliest",
    }
    assert source_settings(every, stream=False).starting.time_ms == 5
    del every["startingTimestamp"]
    assert source_settings(every, stream=False).starting.times_ms == {TopicPartition("orders", 0): 7}


def test_settings_go_to_workers() -> None:
    found = source_settings({**ORDERS, "startingOffsets": '{"orders": {"0": 7}}'}, stream=False)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_group_by_prefix_keeps_its_name_over_restarts() -> None:
    names = {source_settings({**ORDERS, "groupIdPrefix": "etl"}, stream=True).group for _ in range(2)}
    other = source_settings({**SERVERS, "subscribe": "clicks", "groupIdPrefix": "etl"}, stream=True).group
    assert len(names) == 1
    assert all(name is not None and name.startswith("etl-") for name in names)
    assert other not in names


def test_a_duration_has_a_unit_or_is_milliseconds() -> None:
    for text, milliseconds in (("15m", 900_000), ("2min", 120_000), ("30s", 30_000), ("250", 250), ("1h", 3_600_000)):
        assert source_settings({**ORDERS, "maxTriggerDelay": text}, stream=True).max_delay_ms == milliseconds


def test_columns() -> None:
    assert columns_of({"columns": "value, offset"}) == ("value", "offset")
    assert columns_of({"includeHeaders": "true"}) == (*DEFAULT_COLUMNS, "headers")


def test_a_schema_that_is_given() -> None:
    value = StructField("value", BinaryType())
    assert columns_in(StructType([StructField("offset", LongType()), value]), {}) == ("offset", "value")
    with pytest.raises(OptionError, match="column value cannot be NOT NULL"):
        columns_in(StructType([StructField("value", BinaryType(), nullable=False)]), {})
    with pytest.raises(OptionError, match="the schema has a column twice: value, value"):
        columns_in(StructType([value, value]), {})


BAD: list[tuple[dict[str, Any], str]] = [
    ({"subscribe": "orders"}, "kafka.bootstrap.servers is missing"),
    (SERVERS, "give one of them"),
    ({**ORDERS, "assign": '{"orders": [0]}'}, "only one of them, not assign and subscribe"),
    ({**SERVERS, "subscribe": " , "}, "subscribe names no topic"),
    ({**SERVERS, "subscribePattern": "("}, "no regular expression"),
    ({**SERVERS, "assign": '{"orders": 3}'}, "orders has no list"),
    ({**SERVERS, "assign": '{"orders": [-1]}'}, "-1 is no partition of orders"),
    ({**SERVERS, "assign": "{}"}, "assign names no partition"),
    ({**ORDERS, "maxOffsetPerTrigger": "5"}, "did you mean maxOffsetsPerTrigger?"),
    ({**ORDERS, "startingOffsets": "latest"}, "startingOffsets: a batch that begins at latest"),
    ({**ORDERS, "startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets: a batch cannot begin at latest"),
    ({**ORDERS, "startingOffsets": '{"orders": {"0": -3}}'}, "-3 is no offset of orders-0"),
    ({**ORDERS, "startingOffsets": '{"orders": {"0": true}}'}, "must be a whole number"),
    ({**ORDERS, "startingOffsets": "newest"}, "startingOffsets must be JSON like"),
    ({**ORDERS, "startingOffsets": "[1]"}, "startingOffsets must be JSON like"),
    ({**ORDERS, "startingOffsets": '{"orders": 1}'}, "orders has no partitions"),
    ({**ORDERS, "startingOffsets": '{"#topicIds": {"orders": "x"}}'}, "'x' is no id of topic orders"),
    ({**ORDERS, "startingOffsets": "group"}, "needs kafka.group.id"),
    ({**ORDERS, "endingOffsets": "earliest"}, "endingOffsets: a batch cannot end at earliest"),
    ({**ORDERS, "endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets: a batch cannot end at earliest"),
    ({**ORDERS, "startingTimestamp": "yesterday"}, "startingTimestamp must be a whole number"),
    ({**ORDERS, "startingOffsetsByTimestamp": '{"orders": {"0": -5}}'}, "-5 is no time of orders-0"),
    ({**ORDERS, "startingOffsetsByTimestampStrategy": "none"}, "must be error or latest"),
    ({**ORDERS, "minPartitions": "0"}, "minPartitions must be from 1"),
    ({**ORDERS, "failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
    ({**ORDERS, "maxTriggerDelay": "soon"}, "maxTriggerDelay"),
    ({**ORDERS, "maxTriggerDelay": "15 minutes"}, "maxTriggerDelay: '15 minutes' is no duration"),
    ({**ORDERS, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "must not be over maxOffsetsPerTrigger"),
    ({**ORDERS, "maxBytesPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "exclude each other"),
    ({**ORDERS, "columns": "value,size"}, "columns: there is no column 'size'"),
    ({**ORDERS, "kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset cannot be set: set startingOffsets"),
    ({**ORDERS, "kafka.enable.auto.commit": "true"}, "ottla.spark.track"),
    ({**ORDERS, "kafka.value.deserializer": "x"}, "kafka.value.deserializer cannot be set"),
    ({**ORDERS, "kafka.security.protocol": "SASL_SSL"}, "security.protocol SASL_SSL is not there yet"),
    ({**ORDERS, "kafka.ssl.truststore.location": "/x"}, "ssl.truststore.location cannot be set"),
    ({**ORDERS, "kafka.sasl.jaas.config": "x"}, "sasl.jaas.config cannot be set"),
    ({**ORDERS, "kafka.fetch.max.byte": "1"}, "did you mean fetch.max.bytes?"),
    ({**ORDERS, "kafka.bootstrap.servers": "localhost"}, "'localhost' is no host:port"),
    (
        {**ORDERS, "value_as": "avro:registry", "schema.registry.url": "http://127.0.0.1:9"},
        "value_as: the schema registry is not reached: http://127.0.0.1:9",
    ),
]


@pytest.mark.parametrize(("given", "said"), BAD)
def test_what_is_wrong_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as refused:
        source_settings(given, stream=False)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is for batches"):
        source_settings({**ORDERS, name: "latest"}, stream=True)


def test_the_client_gets_what_begins_with_kafka() -> None:
    given = {**SERVERS, "kafka.fetch.max.bytes": 5, "topic": "x"}
    assert client_settings(given) == {"bootstrap.servers": "localhost:9092", "fetch.max.bytes": "5"}


def test_directories_are_for_direct_reading() -> None:
    found = source_settings({**ORDERS, "ottla.direct": "true", "ottla.direct.dirs": "/a, /b,/a"}, stream=True)
    assert (found.direct, found.direct_dirs) == (True, ("/a", "/b"))
    assert not source_settings(ORDERS, stream=False).direct
    for given, said in (
        ({"ottla.direct.dirs": "/a"}, "set ottla.direct=true with it"),
        ({"ottla.direct": "true", "ottla.direct.dirs": "a"}, "ottla.direct.dirs: a must begin at the root"),
        ({"ottla.direct": "true", "ottla.direct.dirs": " , "}, "ottla.direct.dirs names no directory"),
    ):
        with pytest.raises(OptionError, match=said):
            source_settings({**ORDERS, **given}, stream=False)
