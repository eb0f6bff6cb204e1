"""The broker's own log: one line an event, whatever is in it."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import logs
from ottla.logs import REMEMBERED_MAX, Logger, LogOutput

#: 2026-11-21T10:00:00.123Z
NOW = 1_795_255_200.123


class Lines:
    """An output that keeps its lines, with a clock that stands still until it is told to go on."""

    def __init__(self, *, json: bool = False, level: str = "INFO") -> None:
        self.now = NOW
        self.lines: list[str] = []
        self.output = LogOutput(json=json, level=level, sink=self.lines.append, clock=lambda: self.now)
        self.log = Logger("storage", self.output)


def test_a_line_for_the_eye() -> None:
    lines = Lines()
    lines.log.info("segment rolled", topic="x", offset=5)
    lines.log.warning("odd", size=1.5, ok=True, nothing=None)
    assert lines.lines == [
        "2026-11-21T10:00:00.123Z INFO  storage  segment rolled topic=x offset=5\n",
        "2026-11-21T10:00:00.123Z WARN  storage  odd size=1.5 ok=True nothing=None\n",
    ]


def test_a_line_of_json() -> None:
    lines = Lines(json=True)
    lines.log.error("it\nbroke", topic="é", offset=5, share=0.5, ok=False, nothing=None, error=ValueError("no"), b=b"x")
    assert lines.lines[0].isascii()
    assert json.loads(lines.lines[0]) == {
        "time": "2026-11-21T10:00:00.123Z",
        "level": "ERROR",
        "part": "storage",
        "event": "it\nbroke",
        "topic": "é",
        "offset": 5,
        "share": 0.5,
        "ok": False,
        "nothing": None,
        "error": "ValueError: no",
        "b": "b'x'",
    }


def test_json_has_no_numbers_that_json_does_not_know_and_no_forged_fields() -> None:
    lines = Lines(json=True)
    lines.log.info("e", far=float("inf"), nan=float("nan"), level="x", time=3)
    line = json.loads(lines.lines[0], parse_constant=lambda _: pytest.fail("not JSON"))
    assert (line["far"], line["nan"], line["level"], line["level_"], line["time_"]) == ("inf", "nan", "INFO", "x", 3)


@given(st.text(), st.text(), st.booleans())
def test_any_text_stays_on_one_line(event: str, value: str, as_json: bool) -> None:
    lines = Lines(json=as_json)
    lines.log.info(event, value=value)
    (line,) = lines.lines
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert line[:-1].isprintable()


def test_values_that_would_read_as_more_are_quoted() -> None:
    lines = Lines()
    lines.log.info("e", a="two words", b="", c='say "x"', d="k=v", e="a\nb\t\x1b[31m", f="back\\slash")
    assert lines.lines[0].endswith(
        'e a="two words" b="" c="say \\"x\\"" d="k=v" e="a\\nb\\t\\x1b[31m" f="back\\\\slash"\n'
    )


def test_long_values_are_cut() -> None:
    lines = Lines()
    lines.log.info("e", data="x" * 100_000)
    assert len(lines.lines[0]) < 1_200


def test_levels() -> None:
    lines = Lines(level="WARN")
    lines.log.debug("a")
    lines.log.info("b")
    lines.log.warning("c")
    lines.log.error("d")
    assert [line.split()[1] for line in lines.lines] == ["WARN", "ERROR"]
    silent = Lines(level="OFF")
    silent.log.error("x")
    assert silent.lines == []
    chatty = Lines(level="DEBUG")
    chatty.log.debug("x")
    assert len(chatty.lines) == 1


def test_bound_fields_stand_in_every_line() -> None:
    lines = Lines()
    lines.log.bind(broker=1).bind(topic="t").info("e", offset=2)
    assert lines.lines[0].endswith(" e broker=1 topic=t offset=2\n")


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_logging_never_raises_and_says_what_was_lost() -> None:
    lines = Lines()
    lines.log.info("e", value=Broken())
    assert lines.lines == []

    def full(line: str) -> None:
        raise OSError(28, "No space left on device")

    lines.output.sink = full
    lines.log.info("e")
    lines.output.sink = lines.lines.append
    lines.log.info("back")
    assert lines.lines[0].endswith("back lines_lost=2\n")
    lines.log.info("again")
    assert lines.lines[1].endswith("again\n")


def test_warning_once_is_once_for_each_key() -> None:
    lines = Lines()
    for key in ("a", "b", "a", "a"):
        lines.log.warning_once("unknown property", key, name=key)
        lines.now += 10_000
    assert [line.split()[-1] for line in lines.lines] == ["name=a", "name=b"]


def test_limited_warnings_say_how_often_they_came() -> None:
    lines = Lines()
    for _ in range(5):
        lines.log.warning_limited("slow disk", "d1", interval_s=10, dir="d1")
        lines.now += 3
    assert [line.split("slow disk ")[1] for line in lines.lines] == ["dir=d1\n", "dir=d1 repeated=3\n"]


def test_a_clock_set_back_does_not_silence() -> None:
    lines = Lines()
    lines.log.warning_limited("slow disk", interval_s=10)
    lines.now -= 86_400
    lines.log.warning_limited("slow disk", interval_s=10)
    assert len(lines.lines) == 2


def test_what_is_remembered_is_bounded() -> None:
    lines = Lines(level="OFF")
    for number in range(3 * REMEMBERED_MAX):
        lines.log.warning_limited("event", str(number))
    assert len(lines.log._remembered) == REMEMBERED_MAX


def test_configure_reaches_loggers_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.logger("early")
    written: list[str] = []
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    before = logs.configure(json=True, level="ERROR", sink=written.append, clock=lambda: 0.0)
    try:
        log.info("no")
        log.error("yes")
        assert logs.configure().sink == written.append
        log.info("now to stderr")
    finally:
        logs.restore(before)
    assert json.loads(written[0]) == {
        "time": "1970-01-01T00:00:00.000Z",
        "level": "ERROR",
        "part": "early",
        "event": "yes",
    }
    assert stderr.getvalue().endswith("INFO  early  now to stderr\n")
