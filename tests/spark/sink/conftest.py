"""What the sink's tests have in common: what a topic holds, and no clients left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from tests.client.reading import read_all

from ottla.client.records import ConsumerRecord
from ottla.spark.sink.clients import close_kept_clients
from ottla.testing.in_process import InProcessBroker

#: Every record of a topic.
Read = Callable[[str], list[ConsumerRecord]]


_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
#: Spark reads its own words for types in Java alone.
_TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
    "headers": ArrayType(_HEADER),
    "strings": ArrayType(StructType([StructField("key", StringType()), StructField("value", StringType())])),
}


def frame(columns: str) -> StructType:
    """A frame's schema: `value binary, key string`."""
    return StructType([StructField(name, _TYPES[kind]) for name, kind in (one.split() for one in columns.split(","))])


@pytest.fixture
def read(ottla_broker: InProcessBroker) -> Read:
    return lambda topic: asyncio.run(read_all(ottla_broker.bootstrap, topic))


@pytest.fixture(autouse=True)
def _no_clients_stay() -> Iterator[None]:
    """Tests call writers in their own process, where Spark would have one of its own."""
    yield
    close_kept_clients()
