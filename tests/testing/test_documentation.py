"""The examples of docs/testing.md and docs/deploying.md run as they stand; what the pages name is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ottla.testing
from ottla.testing import pytest_plugin
from ottla.testing.in_process import InProcessBroker

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = {name: (REPOSITORY / "docs" / name).read_text() for name in ("testing.md", "deploying.md")}
EXAMPLES = [
    (name, number, code)
    for name, text in PAGES.items()
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize(("page", "number", "code"), EXAMPLES, ids=[f"{page}-{n}" for page, n, _ in EXAMPLES])
def test_an_example(page: str, number: int, code: str, tmp_path: Path) -> None:
    if "pyspark" in code:  # `tests/interop/test_spark_connector_page.py` runs it, where Spark is
        compile(code, page, "exec")
        return
    # On this machine nothing listens on all interfaces.
    code = code.replace('container_host="host.docker.internal"', 'container_host="there", container_bind="127.0.0.2"')
    file = tmp_path / "test_example.py"
    file.write_text(code)
    plugin = ["-m", "pytest", "-q", "-pno:cacheprovider", "--strict-markers", f"--rootdir={tmp_path}"]
    words = [*plugin, str(file)] if "def test_" in code else ["-W", "error", str(file)]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=300,  # some start clusters
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout if "def test_" in code else done.stdout


def test_the_pages_have_examples() -> None:
    assert [page for page, _, _ in EXAMPLES].count("testing.md") >= 5
    assert [page for page, _, _ in EXAMPLES].count("deploying.md") >= 2


def test_what_the_tables_name_is_there() -> None:
    table = "\n".join(line for line in PAGES["testing.md"].splitlines() if line.startswith("| `"))
    for name in re.findall(r"`(\w+)\(", table):
        assert hasattr(InProcessBroker, name) or hasattr(ottla.testing, name), name
    for name in ("bootstrap", "port", "data", "is_running", "container_bootstrap", "listening_on", "metrics_address"):
        assert f"`{name}`" in table
        assert hasattr(InProcessBroker, name), name
    fixtures = {name for name in vars(pytest_plugin) if name.startswith("ottla_") or name == "topic"}
    assert {name for name in fixtures if f"| `{name}` |" not in table} == set()
