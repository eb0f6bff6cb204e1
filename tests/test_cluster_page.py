"""The commands of docs/cluster.md, typed in as they stand but for folder and port, and its program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.server_process import free_port

from tests.shell import REPOSITORY, SECONDS_MAX, fresh_shell, typed

TEXT = (REPOSITORY / "docs" / "cluster.md").read_text()
START, START_SOMEWHERE, *LINES = re.findall(r"^    (ottla .*?)(?: +#.*)?$", TEXT, re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    return fresh_shell(tmp_path)


@pytest.fixture
def port(tmp_path: Path, shell: dict[str, str]) -> Iterator[int]:
    """Of the cluster that the page's second line starts; the first line's is the same in another place."""
    assert START_SOMEWHERE.startswith(f"{START} ")
    port, data = free_port(), tmp_path / "srv"
    line = START_SOMEWHERE.replace("--port 9092", f"--port {port}").replace("/srv/o", str(data))
    child = subprocess.Popen(
        ["bash", "-c", f"exec {line}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=shell,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == f"Ottla is listening on 127.0.0.1:{port}\n"
        for name in ("data", "data-2", "data-3", "data.coordination", "data.cluster/broker-2.properties"):
            assert (data / name).exists()
        yield port
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=SECONDS_MAX)
        assert (child.returncode, out) == (0, "")
        # Nobody set a property, so that nobody is warned of one.
        assert "without effect" not in err
    finally:
        child.kill()
        child.communicate()


def test_its_lines(shell: dict[str, str], port: int, tmp_path: Path) -> None:
    shell = {**shell, "OTTLA_BOOTSTRAP_SERVER": f"127.0.0.1:{port}"}
    # What the page moves and looks at is there, with one copy.
    lines = ["ottla topic create orders -r 1 -p 2", *LINES]
    assert len(lines) > 5
    for line in lines:
        done = typed(line, shell, tmp_path)
        # Copies that are still being made are no fault of the line.
        may_be = (0, 10) if "health" in line or "why" in line else (0,)
        assert done.returncode in may_be, (line, done.stdout, done.stderr)
        assert done.stderr == ""
    assert "orders-0: broker" in done.stdout
    assert '"replicas": [' in (tmp_path / "moves.json").read_text()


def test_its_program() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
