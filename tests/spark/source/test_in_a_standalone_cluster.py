"""Spark's own cluster of two worker processes reads a stream, on tasks that run twice, and an executor dies."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all
from tests.spark.source.conftest import Fill
from tests.spark.source.test_driver_killed import driver
from tests.spark.standalone import SPECULATION, standalone

from ottla.testing import InProcessBroker

pytestmark = [needs_java, pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1800)]

ROWS = 1200
BATCHES = 3


def test_every_record_once_though_an_executor_dies(
    broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path
) -> None:
    fill(broker.bootstrap, topic, ROWS)
    with standalone(tmp_path, workers=2) as (master, machines):
        config = json.dumps({**SPECULATION, "spark.eventLog.enabled": "false"})
        running = driver(broker.bootstrap, topic, tmp_path, "all", master, config)
        try:
            assert running.stdout is not None
            batches = 0
            for line in running.stdout:
                batches += line.startswith("batch")
                if batches == BATCHES:
                    for executor in descendants(machines[0])[:1]:
                        os.kill(executor, signal.SIGKILL)
            assert running.wait() == 0
        finally:
            end_all(running.pid)
    assert batches > BATCHES
    found = [int(line) for file in tmp_path.glob("*.numbers") for line in file.read_text().splitlines()]
    assert sorted(found) == list(range(ROWS))
