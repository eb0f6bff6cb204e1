"""The producer of the librdkafka row: what it prints is what the table shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, environment

from ottla.testing import broker as broker_in_process

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("records", [20_000, 300_000])
def test_it_prints_the_time_and_what_a_request_takes(records: int) -> None:
    with broker_in_process() as broker:
        broker.create_topic("t")
        done = subprocess.run(
            [sys.executable, "-m", "bench.librdkafka_client", str(broker.port), "t", str(records)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=ROOT,
            env=environment(PYTHONPATH=f"{SOURCES}:{ROOT}"),
            check=True,
        )
    seconds, p50, p99 = map(float, done.stdout.split())
    assert 0 < p50 <= p99 < 1e6 * (seconds + 1), done.stdout
