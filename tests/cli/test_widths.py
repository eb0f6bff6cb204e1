"""What a person sees in a terminal of 40, 80 or 200 columns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ottla.cli.verbs import VERBS
from ottla.records.record import Record, encode_batch
from ottla.testing import InProcessBroker
from tests.cli.conftest import SECONDS_MAX, Command, environment
from tests.searches import some

WIDTHS = [40, 80, 200]


def seen(columns: int, *words: str, **env: str) -> tuple[int, str]:
    """Exit code, and all that was drawn, by a command whose outputs are a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    surroundings = environment(TERM="xterm", **env)
    surroundings.pop("COLUMNS", None)
    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=surroundings,
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says the end of a terminal so
            break
        if not piece:
            break
        drawn += piece
    os.close(ours)
    return child.wait(SECONDS_MAX), drawn.decode()


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("verb", ["produce", "consume", "up", "log dump", "group reset", "topic create"])
def test_help_is_as_wide_as_the_terminal(columns: int, verb: str) -> None:
    code, drawn = seen(columns, *verb.split(), "--help")
    assert code == 0
    prose = [line for line in drawn.splitlines() if not line.startswith("ottla ")]
    # Names of options and usage lines cannot be broken; everything that is made of words is.
    long = [line for line in prose if len(line) > columns and not re.match(r"\s*(usage:|-|\[|\()|.*:$", line)]
    assert long == []
    if columns == 200:
        assert max(map(len, prose)) > 100


@pytest.mark.parametrize("verb", [verb for verb, _, _ in VERBS])
def test_an_options_value_stands_behind_its_names_once(
    verb: str, in_process: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = in_process(*verb.split(), "--help")
    assert ran.code == 0
    assert "usage:" in ran.out
    for line in ran.lines:
        names = re.match(r"\s+(-\S+ (?:[A-Z{\[]\S*)), -", line)
        assert names is None, line


def test_the_list_of_verbs_fits_in_80_columns() -> None:
    code, drawn = seen(80, "--help")
    assert code == 0
    assert max(map(len, drawn.splitlines())) <= 80


@pytest.mark.parametrize("columns", WIDTHS)
def test_an_error_is_one_line_that_the_terminal_breaks(columns: int) -> None:
    code, drawn = seen(columns, "topic", "list", "-b", "127.0.0.1:1")
    assert code == 4
    assert drawn.count("\n") == 1
    assert "Connection refused" in drawn


@pytest.mark.parametrize("columns", WIDTHS)
def test_tables_line_up(ottla_broker: InProcessBroker, topic: str, columns: int) -> None:
    for words in (("topic", "describe", topic), ("log-dirs", topic, "-H"), ("topic", "list")):
        code, drawn = seen(columns, *words, OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap)
        assert code == 0
        lines = drawn.replace("\r", "").splitlines()
        head = next(line for line in lines if line.startswith(("PARTITION", "BROKER", "TOPIC")))
        for name in head.split():
            # Something stands below each heading, at its left or at its right end.
            left, right = head.index(name), head.index(name) + len(name) - 1
            row = lines[lines.index(head) + 1].ljust(right + 1)
            assert row[left] != " " or row[right] != " ", (head, row)


def test_a_terminal_that_can_do_nothing_gets_text_alone(ottla_broker: InProcessBroker) -> None:
    """As in an editor's: what would clear another one's screen stands there as rubbish."""
    looks = ("cluster", "health", "--watch", "--interval", "0.01", "-b", ottla_broker.bootstrap)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *looks], stdout=theirs, stderr=theirs, env=environment(TERM="dumb")
    )
    os.close(theirs)
    drawn = b""
    try:
        while drawn.count(b"healthy: ") < 3:
            drawn += os.read(ours, 65536)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    assert b"\x1b" not in drawn
    assert drawn.startswith(b"healthy: yes\r\n")


@pytest.mark.parametrize("columns", some(WIDTHS, WIDTHS[0]))
def test_a_bar_stays_on_its_line(tmp_path: Path, columns: int) -> None:
    batch = encode_batch([Record(n, 1_700_000_000_000, None, b"x") for n in range(2000)])
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(batch)
    code, drawn = seen(columns, "log", "dump", "--quiet", *[str(file)] * 1500)
    assert code == 0
    bars = [piece for piece in re.split(r"[\r\n]", drawn) if "reading:" in piece]
    assert bars
    assert max(map(len, bars)) <= columns
    assert "\n" not in drawn


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_terminal_is_told_where_records_went(ottla_broker: InProcessBroker, topic: str, columns: int) -> None:
    command = f'echo hello | "{sys.executable}" -m ottla produce {topic}'
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    surroundings = environment(OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap)
    child = subprocess.Popen(["/bin/sh", "-c", command], stdout=theirs, stderr=theirs, env=surroundings)
    os.close(theirs)
    assert child.wait(SECONDS_MAX) == 0
    drawn = os.read(ours, 65536).decode()
    os.close(ours)
    assert re.fullmatch(r"Produced to partition 0 at offset 0 with timestamp \d+\.\r\n", drawn), drawn
