"""The README's commands and its program, in its order, but for the download and the port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tools.server_process import free_port

from tests.shell import REPOSITORY, without_settings, write_program

TEXT = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder in which `.venv/bin/ottla` is the program of this environment."""
    write_program(tmp_path / ".venv" / "bin")
    return tmp_path


def test_its_blocks_are_those_that_are_run_here() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sh", "sh", "python", "sh"]
    install, _, start = BLOCKS[0][1].strip().rpartition(" && ")
    assert install == "python3 -m venv .venv && .venv/bin/pip install --quiet ."
    assert start == ".venv/bin/ottla up"
    assert BLOCKS[3][1].strip() == "./test"
    assert os.access(REPOSITORY / "test", os.X_OK)


def test_a_first_hour(checkout: Path) -> None:
    port = free_port()
    environment = {
        **without_settings("KAFKA_", "OTTLA_", "CLUSTER_"),
        "PYTHONPATH": str(REPOSITORY / "src"),
        "XDG_STATE_HOME": str(checkout / "state"),
        "OTTLA_BOOTSTRAP_SERVER": f"127.0.0.1:{port}",
    }
    start = BLOCKS[0][1].strip().rpartition(" && ")[2]
    broker = subprocess.Popen(
        ["bash", "-c", f"exec {start} --port {port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=checkout,
        env=environment,
    )
    try:
        assert broker.stdout is not None
        assert broker.stdout.readline() == f"Ottla is listening on 127.0.0.1:{port}\n"
        assert (checkout / "state" / "ottla" / "data" / "meta.properties").exists()
        ran = subprocess.run(
            ["bash", "-e", "-c", BLOCKS[1][1]],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=checkout,
            env=environment,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.splitlines()[-1] == "hello"
        program = BLOCKS[2][1].replace("127.0.0.1:9092", f"127.0.0.1:{port}")
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env=environment)
        broker.send_signal(signal.SIGINT)  # Ctrl-C
        assert broker.wait(60) == 0
    finally:
        broker.kill()
        broker.communicate()


def test_every_page_that_it_names_is_there() -> None:
    for name in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (REPOSITORY / name).exists(), name


def test_what_it_says_is_missing_is_what_is_not_served() -> None:
    """What has come since must not stand there still."""
    (listed,) = re.findall(r"Ottla is young: (.*?) are not in this version yet", TEXT)
    page = (REPOSITORY / "docs" / "compatibility.md").read_text()
    not_served = page.partition("## Not served yet\n")[2].partition("\n## ")[0]
    for missing in re.split(r", | and ", listed):
        assert re.search(rf"\b{missing}\b", not_served), missing
