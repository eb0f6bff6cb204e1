"""The commands of docs/pipelines.md run as they stand, in their order; the example is what `init` writes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY
from tests.pipeline.conftest import Pipeline
from tests.spark.conftest import needs_java

import ottla.testing
from ottla.cli import faults
from ottla.cli.main import main
from ottla.pipeline import __all__ as names
from ottla.pipeline.example import TEXT
from ottla.pipeline.tables.log import Commit, TableState

PAGE = (REPOSITORY / "docs" / "pipelines.md").read_text()
FORMAT = (REPOSITORY / "docs" / "formats" / "pipeline-tables.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FASTER = re.search(r"^```sh\n(ottla pipeline prepare)\n```", PAGE, re.MULTILINE)
COMMANDS = re.findall(r"^    ((?:ottla|echo) .*)$", PAGE, re.MULTILINE)


def test_the_example_is_what_init_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert EXAMPLES[0] == TEXT
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "init", "orders.py"]) == faults.OK
    assert (tmp_path / "orders.py").read_text() == TEXT
    assert main(["pipeline", "init", "orders.py"]) == faults.EXISTS
    assert "is there already: name another file" in capsys.readouterr().err


def test_an_example_that_cannot_be_written_whole_leaves_its_name_free(tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    command = shlex.join([sys.executable, "-m", "ottla", "pipeline", "init", str(file)])
    ran = subprocess.run(["sh", "-c", f"ulimit -f 0; exec {command}"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (faults.FAILED, f"ottla: cannot write {file}: File too large\n")
    assert not file.exists()


def test_every_name_is_on_the_page() -> None:
    assert {name for name in names if name not in PAGE} == {"PipelineError"}


def test_every_field_is_on_the_page_of_the_format() -> None:
    known = {*Commit.__dataclass_fields__, *TableState.__dataclass_fields__}
    assert {name for name in known if f"`{name}`" not in FORMAT} == set()


@pytest.mark.timeout(1200)
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_commands(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(pipeline.folder)
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", pipeline.broker.bootstrap)
    shim = pipeline.folder / "bin" / "ottla"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/bash\nexec "{sys.executable}" -m ottla "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    for line in COMMANDS:
        if line.startswith("ottla pipeline"):  # in this process, which has a session
            assert main(shlex.split(line)[1:]) == faults.OK, capsys.readouterr().err
        else:
            subprocess.run(["bash", "-c", line], env=environment, check=True, timeout=300)
    shown = capsys.readouterr().out
    assert re.search(r"^orders +table +done +0 +2 +1 +1 +1 +0 +0 +positive amount: 1 +-$", shown, re.MULTILINE), shown
    assert "orders: 1 dead letter sent (positive amount: 1)" in shown
    space: dict[str, Any] = {"spark": pipeline.spark}
    exec(EXAMPLES[1], space)
    assert [(row["customer"], row["amount"]) for row in space["frame"].collect()] == [("ann", 12.5)]
    assert [one.key for one in pipeline.records("order-totals")] == [b"ann"]


@pytest.mark.timeout(900)
@pytest.mark.slow
@needs_java
def test_a_faster_start(tmp_path: Path) -> None:
    """The run notes where its classes come from; those of lambdas Java makes anew."""
    (tmp_path / "orders.py").write_text(TEXT)
    loaded = tmp_path / "loaded.txt"
    run = "ottla pipeline run orders.py --mode catch-up --conf"
    assert FASTER is not None
    with ottla.testing.broker() as broker:
        for topic in ("orders", "order-totals"):
            broker.create_topic(topic)
        environment = {
            **os.environ,
            "OTTLA_BOOTSTRAP_SERVER": broker.bootstrap,
            "XDG_CACHE_HOME": str(tmp_path),
        }
        option = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={loaded}"
        for words in (shlex.split(FASTER[1]), [*run.split(), option]):
            subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, env=environment, timeout=400, check=True)
    sources = [
        line.rpartition("source: ")[2]
        for line in loaded.read_text().splitlines()
        if " org.apache.spark." in line and "$$Lambda" not in line
    ]
    assert sources.count("shared objects file") > 0.9 * len(sources) > 0
