"""`./test` itself: it has a virtual environment of its own and leaves the user's alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import environment
from tests.conftest import heed_interrupts
from tests.shell import without_settings

REPOSITORY = Path(__file__).resolve().parents[1]

#: Stands in for every program that `./test` runs: it makes "environments" of itself, and notes what it was asked.
STAND_IN = """#!/bin/sh
echo "$0 $*" >>"$NOTES"
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin"
    for name in python ruff mypy lint-imports; do cp "$0" "$3/bin/$name"; done
fi
if [ "$1" = "-V" ] || [ "$1" = "--version" ]; then echo "Python $VERSION"; fi
if [ "$1 $2" = "-m pytest" ]; then echo "1 passed"; fi
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as the script looks at, and the user's environment in it."""
    for name in ("test", "pyproject.toml", "setup.py"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    native = tmp_path / "src" / "ottla" / "native"
    native.mkdir(parents=True)
    (native / "lane.c").write_text("")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "ottla").write_text("the user's")
    stand_in = tmp_path / "python-of-the-test"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    return tmp_path


def run(checkout: Path, version: str = "3.11.0") -> list[str]:
    """What was asked of the stand-in."""
    notes = checkout / "notes"
    notes.write_text("")
    bare = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR"}}
    done = subprocess.run(
        ["bash", str(checkout / "test")],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**bare, "PYTHON": str(checkout / "python-of-the-test"), "NOTES": str(notes), "VERSION": version},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("1 passed")
    return notes.read_text().splitlines()


def made(asked: list[str]) -> list[str]:
    return [line for line in asked if " -m venv " in line]


def test_the_users_environment_stays(checkout: Path) -> None:
    asked = run(checkout)
    assert (checkout / ".venv" / "bin" / "ottla").read_text() == "the user's"
    assert sorted(path.name for path in (checkout / ".venv").rglob("*")) == ["bin", "ottla"]
    assert len(made(asked)) == 1
    assert not [line for line in asked if "/.venv/" in line or line.endswith("/.venv")]


def test_its_own_is_kept_and_made_anew_when_it_must_be(checkout: Path) -> None:
    assert made(run(checkout))
    assert not made(run(checkout))
    assert made(run(checkout, version="3.12.0"))  # by another Python
    assert not made(run(checkout, version="3.12.0"))
    (checkout / "pyproject.toml").write_text("changed")
    assert made(run(checkout, version="3.12.0"))


def test_git_and_the_tools_pass_over_its_environment() -> None:
    assert ".venv-test/" in (REPOSITORY / ".gitignore").read_text().splitlines()
    assert "\nvenv=.venv-test\n" in (REPOSITORY / "test").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_tests_start_may_be_interrupted_where_they_run_in_the_background(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        heed_interrupts()
        ended = subprocess.run(["sh", "-c", f"kill -{number:d} $$; echo ignored"], capture_output=True, check=False)
    finally:
        signal.signal(number, before)
    assert ended.returncode == -number


def test_what_tests_start_uses_nothing_compiled_where_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PURE", "1")
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", "elsewhere:9092")
    for made in (without_settings("OTTLA_"), environment()):
        assert made["OTTLA_PURE"] == "1"
        assert "OTTLA_BOOTSTRAP_SERVER" not in made
