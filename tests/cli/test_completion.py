"""Completion as a shell asks for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, environment
from tests.shell import write_program

#: How argcomplete separates what it offers.
SEPARATOR = "\v"
TRIES = 20


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


def offers_in_the_end(typed: str, expected: set[str], tmp_path: Path, bootstrap: str = "127.0.0.1:1") -> bool:
    """Nobody who types waits long for a broker: on a machine that has too much to do it may take a second key."""
    return any(offered(typed, tmp_path, bootstrap) == expected for _ in range(TRIES))


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
    expected = {"live-one", "live-two"}
    for typed in ("ottla consume live-", "ottla topic describe --topic live-", "ottla config describe --topic live-"):
        assert offers_in_the_end(typed, expected, tmp_path, ottla_broker.bootstrap)
    asked = f"ottla topic delete --bootstrap-server {ottla_broker.bootstrap} other live-"
    assert offers_in_the_end(asked, expected, tmp_path)
    for name in ("live-one", "live-two", "other"):
        ottla_broker.delete_topic(name)


def test_without_a_broker_there_are_no_names_and_no_noise(tmp_path: Path) -> None:
    assert not {word for word in offered("ottla topic describe x", tmp_path) if word}


#: What a shell does with its code when somebody presses the tab key; `code` is the file's name.
TYPED = "ottla topic de"
PRESSES_TAB = {
    "bash": """
        source "$code"
        COMP_LINE=$typed COMP_POINT=${#typed} COMP_TYPE=9
        complete -p ottla | grep -q _python_argcomplete || exit 1
        _python_argcomplete ottla
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    # Without a terminal there is no completion system: what the code calls of it is put in its place.
    "zsh": """
        compdef() { registered=("$@") }
        _describe() { print -l -- "${(@)completions}" }
        source $code
        [[ "$registered" == "_python_argcomplete ottla" ]] || exit 1
        BUFFER=$typed CURSOR=${#typed} words=(${=typed})
        _python_argcomplete
    """,
    "fish": """
        source $code
        complete --do-complete $typed
    """,
}


@pytest.mark.parametrize("shell", PRESSES_TAB)
def test_the_shells_code(in_process: Command, tmp_path: Path, shell: str) -> None:
    ran = in_process("completion", shell)
    assert ran.code == 0
    assert "ottla" in ran.out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed, so its code was not run")
    code = tmp_path / "code"
    code.write_text(ran.out)
    subprocess.run([shell, "-n", str(code)], timeout=60, check=True)
    write_program(tmp_path / "bin")
    surroundings = environment(
        code=str(code), typed=TYPED, PATH=f"{tmp_path}/bin:{os.environ['PATH']}", HOME=str(tmp_path), TERM="dumb"
    )
    words = [shell, *{"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell], "-c", PRESSES_TAB[shell]]
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    # zsh and fish show what a verb does, beside it or behind a colon.
    offers = {re.split(r"[:\t ]", line, maxsplit=1)[0] for line in done.stdout.splitlines()}
    assert offers == {"delete", "describe"}, done
