"""Completion as a shell asks for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, environment

#: How argcomplete separates what it offers.
SEPARATOR = "\v"


def offered(typed: str, tmp_path: Path, bootstrap: str = "127.0.0.1:1") -> set[str]:
    answer = tmp_path / "completions"
    env = environment(
        _ARGCOMPLETE="1",
        _ARGCOMPLETE_STDOUT_FILENAME=str(answer),
        _ARGCOMPLETE_IFS=SEPARATOR,
        COMP_LINE=typed,
        COMP_POINT=str(len(typed)),
        OTTLA_BOOTSTRAP_SERVER=bootstrap,
    )
    subprocess.run([sys.executable, "-m", "ottla"], env=env, timeout=60, check=True)
    return {word.strip() for word in answer.read_text().split(SEPARATOR)}


def test_verbs(tmp_path: Path) -> None:
    assert {"up", "topic", "consume", "log"} <= offered("ottla ", tmp_path)
    assert offered("ottla con", tmp_path) == {"config", "consume"}
    assert offered("ottla topic de", tmp_path) == {"delete", "describe"}


def test_options_and_their_values(tmp_path: Path) -> None:
    assert offered("ottla topic create --part", tmp_path) == {"--partitions"}
    assert offered("ottla topic list -o ", tmp_path) == {"table", "json", "yaml"}
    assert offered("ottla completion ", tmp_path) >= {"bash", "zsh", "fish"}


def test_names_of_topics_come_from_the_broker(tmp_path: Path, ottla_broker: InProcessBroker) -> None:
    for name in ("live-one", "live-two", "other"):
        ottla_broker.create_topic(name)
    for typed in ("ottla consume live-", "ottla topic describe --topic live-", "ottla config describe --topic live-"):
        assert offered(typed, tmp_path, ottla_broker.bootstrap) == {"live-one", "live-two"}
    asked = f"ottla topic delete --bootstrap-server {ottla_broker.bootstrap} other live-"
    assert offered(asked, tmp_path) == {"live-one", "live-two"}
    for name in ("live-one", "live-two", "other"):
        ottla_broker.delete_topic(name)


def test_without_a_broker_there_are_no_names_and_no_noise(tmp_path: Path) -> None:
    assert not {word for word in offered("ottla topic describe x", tmp_path) if word}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_code(in_process: Command, shell: str) -> None:
    ran = in_process("completion", shell)
    assert ran.code == 0
    assert "ottla" in ran.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=ran.out, text=True, timeout=60, check=True)
