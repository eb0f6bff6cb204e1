"""Drivers are killed at random moments: what their queries have read is the topic, every record once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.conftest import REPOSITORY
from tests.spark.source.conftest import Fill

from ottla.client.sync import Admin
from ottla.testing import InProcessBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROUNDS = int(os.environ.get("OTTLA_SPARK_KILL_ROUNDS", "20"))
ROWS_A_ROUND = 200
SECONDS_MAX = 1800


def driver(bootstrap: str, topic: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.spark.source.killed_driver", bootstrap, topic, str(folder), *more]
    with (folder / "driver.txt").open("ab") as errors:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=REPOSITORY, start_new_session=True
        )


def numbers(folder: Path) -> list[int]:
    """What the batches of a driver had."""
    return [int(line) for file in folder.glob("*.numbers") for line in file.read_text().splitlines()]


@pytest.mark.timeout(SECONDS_MAX)
def test_every_record_once_when_drivers_are_killed(
    broker: InProcessBroker, topic: str, fill: Fill, tmp_path: Path
) -> None:
    seed = Random().randrange(2**32)
    chance = Random(seed)
    written = 0
    for _ in range(ROUNDS):
        fill(broker.bootstrap, topic, ROWS_A_ROUND, first=written)
        written += ROWS_A_ROUND
        running = driver(broker.bootstrap, topic, tmp_path)
        assert running.stdout is not None
        left = chance.randrange(1, 4)  # batches, and then in the middle of the next
        for line in running.stdout:
            left -= line.startswith("batch")
            if not left:
                break
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    last = driver(broker.bootstrap, topic, tmp_path, "all")
    out, _ = last.communicate()
    assert last.returncode == 0, out
    assert sorted(numbers(tmp_path)) == list(range(written)), f"seed {seed}"
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        committed = admin.list_group_offsets(f"group-of-{topic}")
    assert sum(one.offset for one in committed.values()) <= written
