"""Logs: one line an event, for a person's eye or, when asked, a JSON object a line.

    log = logger("storage")
    log.info("segment rolled", topic="orders", partition=3, offset=5210)

    2026-11-21T10:00:00.123Z INFO  storage  segment rolled topic=orders partition=3 offset=5210

An event is a fixed sentence and the facts as fields, so that a line can be searched by its sentence and read by a
machine. Not the standard library's `logging`: importing that costs a tenth of the time in which a broker should be
up. A line never raises and never spans two: a value's line breaks and control characters are escaped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

LEVELS: Final = {"DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "OFF": 100}
#: A value longer than this is cut: what a client sends may stand in a line.
VALUE_CHARACTERS_MAX: Final = 1_000
#: Different warnings that are remembered in order not to repeat them; beyond it the oldest is forgotten.
REMEMBERED_MAX: Final = 1_000

Sink = Callable[[str], object]
Clock = Callable[[], float]


def _to_stderr(line: str) -> None:
    sys.stderr.write(line)


class LogOutput:
    """Where lines go, and from which level on. One a process; tests make their own."""

    __slots__ = ("clock", "configured", "json", "level", "lost", "sink")

    def __init__(
        self, *, level: str = "INFO", json: bool = False, sink: Sink = _to_stderr, clock: Clock = time.time
    ) -> None:
        self.level = LEVELS[level]
        self.json = json
        self.sink = sink
        self.clock = clock
        #: How often it was: what loggers remember of an earlier clock and sink is of no use with another.
        self.configured = 0
        #: Lines that could not be written (a closed pipe, a full disk): said with the next that can be.
        self.lost = 0

    def write(self, level: str, part: str, event: str, fields: dict[str, object]) -> None:
        if LEVELS[level] < self.level:
            return
        try:
            if self.lost:
                fields = {**fields, "lines_lost": self.lost}
            line = (_json_line if self.json else _human_line)(self.clock(), level, part, event, fields)
            self.sink(line)
            self.lost = 0
        except Exception:  # Whatever is wrong with a log line, the broker's work goes on.
            self.lost += 1


_OUTPUT: Final = LogOutput()


class LogSettings(NamedTuple):
    json: bool
    level: int
    sink: Sink
    clock: Clock


def configure(
    *, json: bool = False, level: str = "INFO", sink: Sink | None = None, clock: Clock | None = None
) -> LogSettings:
    """Sets this process's output, for loggers that exist already too. The composition root calls it once.

    Gives what was set before. A caller that sets it for a while gives it back by `restore`: another may have set it for
    longer.
    """
    before = LogSettings(_OUTPUT.json, _OUTPUT.level, _OUTPUT.sink, _OUTPUT.clock)
    restore(LogSettings(json, LEVELS[level], sink or _to_stderr, clock or time.time))
    return before


def restore(settings: LogSettings) -> None:
    _OUTPUT.json, _OUTPUT.level, _OUTPUT.sink, _OUTPUT.clock = settings
    _OUTPUT.configured += 1


class Logger:
    """Writes the events of one part of the system. Fields given to `bind` stand in each of its lines."""

    __slots__ = ("_bound", "_configured", "_output", "_remembered", "part")

    def __init__(self, part: str, output: LogOutput | None = None, bound: dict[str, object] | None = None) -> None:
        self.part = part
        self._output = output or _OUTPUT
        self._bound = bound or {}
        #: When each repeating warning was last written (in the output's clock), and how often it was held back since.
        self._remembered: dict[str, tuple[float, int]] = {}
        self._configured = self._output.configured

    def bind(self, **fields: object) -> Logger:
        return Logger(self.part, self._output, {**self._bound, **fields})

    def debug(self, event: str, **fields: object) -> None:
        if self._output.level <= 10:
            self._write("DEBUG", event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write("INFO", event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write("WARN", event, fields)

    def error(self, event: str, **fields: object) -> None:
        self._write("ERROR", event, fields)

    def warning_once(self, event: str, key: str = "", **fields: object) -> None:
        """Writes an event once for each key, as long as it is remembered."""
        self.warning_limited(event, key, interval_s=float("inf"), **fields)

    def warning_limited(self, event: str, key: str = "", *, interval_s: float = 10.0, **fields: object) -> None:
        """Writes an event at most once an interval for each key, and then says how often it came in between."""
        self._write_limited("WARN", event, key, interval_s, fields)

    def error_limited(self, event: str, key: str = "", *, interval_s: float = 10.0, **fields: object) -> None:
        self._write_limited("ERROR", event, key, interval_s, fields)

    def _write_limited(self, level: str, event: str, key: str, interval_s: float, fields: dict[str, object]) -> None:
        now = self._output.clock()
        if self._configured != self._output.configured:
            self._configured = self._output.configured
            self._remembered.clear()
        remembered = f"{event}\0{key}"
        last, held_back = self._remembered.pop(remembered, (float("-inf"), 0))
        # A clock that was set back starts a new interval: silence until it catches up could last for hours.
        if last <= now < last + interval_s:
            self._remembered[remembered] = (last, held_back + 1)
            return
        while len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[remembered] = (now, 0)
        self._write(level, event, {**fields, "repeated": held_back} if held_back else fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        self._output.write(level, self.part, event, {**self._bound, **fields} if self._bound else fields)


def logger(part: str) -> Logger:
    """The logger of a part ("storage", "server", ...), which writes to this process's output."""
    return Logger(part)


def _timestamp(now: float) -> str:
    whole_ms = int(now * 1000)
    seconds, ms = divmod(whole_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z"


def _human_line(now: float, level: str, part: str, event: str, fields: dict[str, object]) -> str:
    text = f"{_timestamp(now)} {level:<5} {part}  {_escape(event)}"
    for name, value in fields.items():
        text += f" {name}={_human_value(value)}"
    return text + "\n"


def _human_value(value: object) -> str:
    text = _text(value)
    plain = text and text.isprintable() and not set(' "=\\') & set(text)
    return text if plain else '"' + _escape(text).replace('"', '\\"') + '"'


def _json_line(now: float, level: str, part: str, event: str, fields: dict[str, object]) -> str:
    from json import dumps

    line: dict[str, object] = {"time": _timestamp(now), "level": level, "part": part, "event": event}
    for name, value in fields.items():
        # A field may not pass itself off as the time or the level.
        key = f"{name}_" if name in line else name
        finite = isinstance(value, float) and value - value == 0
        line[key] = value if value is None or isinstance(value, bool | int) or finite else _text(value)
    return dumps(line, ensure_ascii=True) + "\n"


def _text(value: object) -> str:
    if isinstance(value, str):
        text = value
    elif isinstance(value, BaseException):
        text = f"{type(value).__name__}: {value}"
    else:
        text = str(value)
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[:VALUE_CHARACTERS_MAX]}..."


def _escape(text: str) -> str:
    if text.isprintable():
        return text.replace("\\", "\\\\")
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
