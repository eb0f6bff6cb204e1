"""Row for row what Spark's own Kafka source reads, with its options."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest
from tests.conftest import REPOSITORY, found_jars
from tools.kafka_jars import SPARK_CONNECTOR

from ottla.client.sync import Producer
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 600


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_every_option_gives_the_same_rows(broker: InProcessBroker, topic: str) -> None:
    found_jars(SPARK_CONNECTOR)
    chance = Random(1)
    with Producer(bootstrap_servers=broker.bootstrap, compression_type="zstd") as producer:
        for number in range(300):
            producer.send(
                topic,
                None if number % 11 == 0 else b"v%d" % number,
                key=None if number % 5 == 0 else b"k%d" % number,
                partition=number % 3,
                timestamp=1_700_000_000_000 + chance.randrange(300),
                headers=[("trace", b"\x00\xff"), ("kind", None)] if number % 2 else None,
            )
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.source.connector_rows", broker.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    compared = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(compared) >= 10
    assert [one for one in compared if not one["same"]] == []
    assert all(one["rows"][0] for one in compared if one["options"] != "after the last")
