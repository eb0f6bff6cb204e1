"""Bars for long work as a person at a terminal sees them: the commands have a pseudo-terminal for standard error."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.records.record import Record, encode_batch
from ottla.testing import InProcessBroker
from tests.cli.conftest import SECONDS_MAX, environment

KEPT = pytest.mark.ottla_topic(configs={"retention.ms": "-1"})


class Watched:
    """A command, and what it has drawn so far."""

    def __init__(self, child: subprocess.Popen[bytes], terminal: int) -> None:
        self.child = child
        self._terminal = terminal
        # A read may end in the middle of a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.drawn = ""

    def draws(self, pattern: str, meanwhile: Callable[[], object] = lambda: None) -> re.Match[str]:
        """Looks until it has drawn that, and calls `meanwhile` again and again."""
        deadline = time.monotonic() + SECONDS_MAX
        while (found := re.search(pattern, self.drawn)) is None:
            assert time.monotonic() < deadline, self.drawn
            meanwhile()
            assert self._read(0.1), (pattern, self.drawn)
        return found

    def ends(self) -> int:
        while self._read(SECONDS_MAX):
            pass
        return self.child.wait(SECONDS_MAX)

    def _read(self, seconds: float) -> bool:
        """False at the end."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # Linux says the end of a terminal so
            return False
        self.drawn += self._decoder.decode(piece)
        return bool(piece)


@contextmanager
def watched(*words: str, output: int = subprocess.DEVNULL) -> Iterator[Watched]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=theirs,
        env=environment(TERM="xterm"),
    )
    os.close(theirs)
    try:
        yield Watched(child, ours)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


@KEPT
@pytest.mark.parametrize(
    "words",
    [("consume", "--from-beginning", "--max-messages", "400"), ("perf", "consume", "--messages", "400")],
    ids=["consume", "perf consume"],
)
def test_reading_so_many_records_has_a_bar(ottla_broker: InProcessBroker, topic: str, words: tuple[str, ...]) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    made = 0

    def feed() -> None:
        nonlocal made
        made += 1
        producer.produce(topic, b"x")
        assert producer.flush(30) == 0

    with watched(*words, "--topic", topic, "--bootstrap-server", ottla_broker.bootstrap) as command:
        bar = command.draws(r"consuming: +(\d+)%\|.*?\| (\d+)(?:\.\d+)?/400 ", feed)
        assert 0 < int(bar[2]) <= made < 400
        while made < 400:
            feed()
        assert command.ends() == 0
    # It leaves nothing behind: the line is blank again.
    assert re.search(r"\r +\r$", command.drawn), command.drawn[-200:]


def test_measuring_how_fast_records_are_taken_has_a_bar(ottla_broker: InProcessBroker, topic: str) -> None:
    how = ("--num-records", "4000", "--throughput", "2000", "--record-size", "10")
    with watched("perf", "produce", topic, *how, "--bootstrap-server", ottla_broker.bootstrap) as command:
        assert int(command.draws(r"producing: +(\d+)%\|.*?/4\.00k ")[1]) >= 1024 * 100 // 4000
        assert command.ends() == 0
    assert "records sent" not in command.drawn
    assert re.search(r"\d+(\.\d+)?k? records/s", command.drawn), command.drawn


def test_checking_files_has_a_bar_and_findings_stand_above_it(tmp_path: Path) -> None:
    batch = encode_batch([Record(n, 1_700_000_000_000, None, b"x") for n in range(1000)])
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(batch)
    damaged = tmp_path / "00000000000000000001.log"
    damaged.write_bytes(batch[:-1])
    # Each is read as often as it is named; the first of them are over before there is a bar.
    with watched("log", "dump", "--quiet", *[str(file)] * 400, str(damaged)) as command:
        assert int(command.draws(r"reading: +(\d+)%\|")[1]) < 100
        assert command.ends() == 1
    assert re.search(rf"\r +\rdamage: {damaged} at byte 0: .*\r\n", command.drawn), command.drawn[-500:]


def test_a_terminal_that_shows_what_is_printed_has_no_bar(ottla_broker: InProcessBroker, topic: str) -> None:
    """Standard output is a terminal too: records themselves show that there are some."""
    ours, theirs = pty.openpty()
    words = ("consume", "--from-beginning", "--max-messages", "30", "--topic", topic)
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    with watched(*words, "--bootstrap-server", ottla_broker.bootstrap, output=theirs) as command:
        os.close(theirs)
        printed = b""
        for number in range(30):
            producer.produce(topic, b"%d" % number)
            assert producer.flush(30) == 0
            while b"%d\r\n" % number not in printed:
                printed += os.read(ours, 65536)
            due = time.monotonic() + 0.03  # a bar would come half a second after the first
            while number < 29 and (left := due - time.monotonic()) > 0:
                assert not select.select([ours], [], [], left)[0]
        assert command.ends() == 0
    os.close(ours)
    assert command.drawn == ""
