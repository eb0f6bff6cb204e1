"""The examples in docs/client.md run as they stand, but for the address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.client.settings import AdminSettings, ConsumerSettings, ProducerSettings
from tests.client.group.conftest import bootstrap

__all__ = ["bootstrap"]  # of a broker on which a new group does not wait for more members

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TEXT = (REPOSITORY / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example(bootstrap: str, number: int) -> None:
    program = EXAMPLES[number].replace("localhost:9092", bootstrap)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_every_setting_is_named() -> None:
    names = {
        name.replace("_", ".")
        for kind in (AdminSettings, ProducerSettings, ConsumerSettings)
        for name in kind.__dataclass_fields__
    }
    assert {name for name in names if f"`{name}`" not in TEXT} == set()


def test_importing_the_package_loads_next_to_nothing() -> None:
    program = "import sys, ottla.client; print(sorted(n for n in sys.modules if n.startswith(('ottla', 'asyncio'))))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.stdout.strip() == "['ottla', 'ottla.client']"
