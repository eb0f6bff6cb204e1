"""The example of docs/mirror.md, typed in as it stands but for ports and folders; and its table of properties."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.server_process import free_port

from ottla.mirror.properties import DEFAULTS, WITHOUT_EFFECT
from tests.shell import REPOSITORY, SECONDS_MAX, fresh_shell, typed

TEXT = (REPOSITORY / "docs" / "mirror.md").read_text()
(PROPERTIES,) = re.findall(r"^```properties\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
LINES = re.findall(r"^    ((?:seq|ottla) .*)$", TEXT, re.MULTILINE)
STARTS = [line for line in LINES if line.startswith("ottla up")]
COMMANDS = [line for line in LINES if line not in STARTS]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    return fresh_shell(tmp_path)


@pytest.fixture
def here(tmp_path: Path, shell: dict[str, str]) -> Iterator[dict[str, str]]:
    """What the page says, and what it is in this test; with its two brokers."""
    changed = {"localhost:9092": "", "localhost:9192": "", "/tmp/": f"{tmp_path}/"}
    running = []
    try:
        for line, port in zip(STARTS, ("9092", "9192"), strict=True):
            free = str(free_port())
            changed[f"localhost:{port}"] = f"localhost:{free}"
            command = line.replace(port, free).replace("/tmp/", f"{tmp_path}/")
            words = ["bash", "-c", f"exec {command}"]
            broker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=shell)
            running.append(broker)
            assert broker.stdout is not None
            assert broker.stdout.readline() == f"Ottla is listening on 127.0.0.1:{free}\n"
        yield changed
    finally:
        for broker in running:
            broker.terminate()
            broker.wait(SECONDS_MAX)
            assert broker.stdout is not None
            broker.stdout.close()


def test_the_example_runs(here: dict[str, str], shell: dict[str, str], tmp_path: Path) -> None:
    def of_this_test(text: str) -> str:
        for said, meant in here.items():
            text = text.replace(said, meant)
        return text

    (tmp_path / "mm2.properties").write_text(of_this_test(PROPERTIES))
    printed = []
    for line in COMMANDS:
        done = typed(of_this_test(line), shell, tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        printed.append(done.stdout)
    assert (len(STARTS), len(COMMANDS)) == (2, 4)
    _, mirrored, consumed, described = printed
    assert mirrored == "Ottla is mirroring east->west\n"
    assert sorted(consumed.split(), key=int) == [str(number) for number in range(1, 101)]
    assert "orders" in described


def test_every_property_is_in_the_table() -> None:
    table = TEXT.partition("## Coming from MirrorMaker 2")[2]
    named = set(re.findall(r"`([^`]+)`", table))
    stars = tuple(name.removesuffix("*") for name in named if name.endswith("*"))
    for name in DEFAULTS:
        assert name in named or f"A->B.{name}" in named, name
    # Those of Connect's stand there in words.
    connects = ("offset.", "config.", "status.", "key.", "value.", "header.", "task.", "worker.", "rest.", "plugin.")
    others = ("metric", "errors", "transforms", "predicates", "transaction", "listeners", "admin.", "scheduled.")
    of_ours = ("name", "add.source", "dedicated.mode", "use.incremental", "exactly.once")
    for name in WITHOUT_EFFECT:
        assert name in named or name.startswith((*stars, *connects, *others, *of_ours)), name
