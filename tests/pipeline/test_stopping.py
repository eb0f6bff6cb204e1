"""A pipeline as a process: it runs until a signal, ends in order, and says what it has done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from tests.conftest import REPOSITORY
from tests.pipeline.conftest import Pipeline
from tests.spark.conftest import needs_java
from tests.spark.processes import descendants, end_all, listening
from tools.server_process import free_port

from ottla.cli import faults
from ottla.pipeline.status import read_statuses
from ottla.pipeline.tables.log import TableLog

pytestmark = [needs_java, pytest.mark.xdist_group("spark"), pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS_MAX = 900.0


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        text: str = page.read().decode()
    return text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, faults.OK), (signal.SIGTERM, faults.TERMINATED)])
def test_a_signal(pipeline: Pipeline, number: signal.Signals, code: int) -> None:
    pipeline.define("@table\ndef raw():\n    return read_topic('TOPIC')\n")
    pipeline.send({"id": 1}, {"id": 2})
    port = free_port()
    words = ["pipeline", "run", str(pipeline.path), "--folder", pipeline.places.folder, "-b", pipeline.broker.bootstrap]
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, "--master", "local[2]", "--metrics-port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        cwd=pipeline.folder,
    )
    try:
        log, give_up = TableLog(pipeline.places.table("raw")), time.monotonic() + SECONDS_MAX
        while sum(file.rows for file in log.state().files.values()) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.1)
        # Nobody else's machine can connect to it.
        addresses = listening([process.pid, *descendants(process.pid)])
        assert {one.split()[0] for one in addresses} <= {"127.0.0.1", "::1"}, addresses
        # The page has what the run has seen of its own flows, some moments later.
        while 'ottla_pipeline_rows_out_total{pipeline="shop",flow="raw"} 2' not in scraped(port):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.1)
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS_MAX)
    finally:
        end_all(process.pid)
    assert process.returncode == code, err
    assert b"raw   table  stopped" in out
    assert b"this should not have happened" not in err, err
    (status,) = read_statuses(pipeline.places)
    assert (status.state, status.rows_in, status.error) == ("stopped", 2, None)
