"""Direct reading in a real Spark session: the workers find the directory, and the rows are the wire's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.source.direct.conftest import RECORDS, sealed_until

import ottla.spark
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]  # a JVM starts, on a machine with other work


def test_both_entries_read_files(spark: Any, broker: InProcessBroker, topic: str, copy: Path) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "minPartitions": 3}
    direct = {**options, "ottla.direct": True, "ottla.direct.dirs": str(copy)}
    until = sealed_until(copy, topic)
    for frame in (spark.read.format("ottla").options(**direct).load(), ottla.spark.read(spark, direct)):
        rows = sorted((row.offset, row.key[:1], int(row.value)) for row in frame.collect())
        assert rows == [(number, b"F" if number < until else b"k", number) for number in range(RECORDS)]
    found = ottla.spark.read(spark, options, **{"ottla.direct": True}).drop("timestamp").collect()
    assert sorted(found) == sorted(ottla.spark.read(spark, options).drop("timestamp").collect())
