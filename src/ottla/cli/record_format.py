"""How `consume` prints a record: a format of its own, Kafka's console formatter, or a JSON envelope.

%t topic   %p partition   %o offset   %e leader epoch   %d or %T timestamp (ms)   %i how many this one makes
%k key   %K its length   %v or %s value   %V or %S its length   %R the same as four bytes   %h headers   %H how many
%% %{ %} a percent sign and braces   \\n \\t \\r \\0 \\\\ \\xHH

Braces say how: texts %v{hex} %v{base64} %v{base64raw}; numbers %o{hex64} %o{big64} ...; times %d{strftime[%F]} and
%d{go[2006-01-02]}; headers %h{%k=%v;} with a format for each.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from ottla.cli import number_forms
from ottla.cli.faults import UsageFault
from ottla.cli.format_tokens import FormatToken, escaped, tokens, wrapped
from ottla.client.records import ConsumerRecord

Format = Callable[[ConsumerRecord], bytes]
Content = Callable[[bytes], bytes]

_NUMBERS: dict[str, Callable[[ConsumerRecord], int]] = {
    "p": lambda record: record.partition,
    "o": lambda record: record.offset,
    "e": lambda record: record.leader_epoch,
    "K": lambda record: _length(record.key),
    "V": lambda record: _length(record.value),
    "S": lambda record: _length(record.value),
    "H": lambda record: len(record.headers),
}
_TEXTS: dict[str, Callable[[ConsumerRecord], bytes | None]] = {
    "t": lambda record: record.topic.encode(),
    "k": lambda record: record.key,
    "v": lambda record: record.value,
    "s": lambda record: record.value,
}
_KNOWN = sorted({*_NUMBERS, *_TEXTS, *"dThiR%{}"})


def parse_format(text: str, null: bytes) -> Format:
    """Raises UsageFault on a token that does not exist."""
    pieces = [token if isinstance(token, bytes) else _piece(token, null) for token in tokens(text)]

    def formatted(record: ConsumerRecord) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])

    return formatted


def _piece(token: FormatToken, null: bytes) -> Format:
    letter, modifier = token
    if letter in _TEXTS:
        return _text(_TEXTS[letter], _content(modifier), null)
    if letter in _NUMBERS:
        return _number(_NUMBERS[letter], number_forms.written(modifier))
    if letter in {"d", "T"}:
        return _time(modifier)
    if letter == "h":
        return _headers(modifier, null)
    if letter == "R":  # kcat's
        return _number(_NUMBERS["V"], number_forms.written(modifier or "big32"))
    if letter == "i":
        return _counter(number_forms.written(modifier))
    raise UsageFault(f"-f: there is no %{letter}; known are %{' %'.join(_KNOWN)}")


def _text(get: Callable[[ConsumerRecord], bytes | None], shown: Content | None, null: bytes) -> Format:
    def formatted(record: ConsumerRecord) -> bytes:
        content = get(record)
        return null if content is None else content if shown is None else shown(content)

    return formatted


def _number(get: Callable[[ConsumerRecord], int], written: Callable[[int], bytes]) -> Format:
    return lambda record: written(get(record))


def _counter(written: Callable[[int], bytes]) -> Format:
    numbers = count(1)
    return lambda _: written(next(numbers))


def _content(modifier: str | None) -> Content | None:
    if modifier is None:
        return None
    contents: dict[str, Content] = {
        "hex": lambda content: content.hex().encode(),
        "base64": b64encode,
        "base64raw": lambda content: b64encode(content).rstrip(b"="),
    }
    if modifier not in contents:
        raise UsageFault(f"there is no form {{{modifier[:40]}}} of a text; known are {', '.join(contents)}")
    return contents[modifier]


def _headers(modifier: str | None, null: bytes) -> Format:
    if modifier is None:
        return lambda record: b",".join(
            [name.encode() + b"=" + (null if value is None else bytes(value)) for name, value in record.headers]
        )
    for token in tokens(modifier):
        if isinstance(token, FormatToken) and token.letter not in "kKvV":
            raise UsageFault(f"%h{{{modifier}}}: a header has %k and %v, and their lengths %K and %V")
    each = parse_format(modifier, null)

    def formatted(record: ConsumerRecord) -> bytes:
        return b"".join(
            [
                each(record._replace(key=name.encode(), value=None if value is None else bytes(value)))
                for name, value in record.headers
            ]
        )

    return formatted


def _time(modifier: str | None) -> Format:
    if modifier is not None:
        layout = wrapped(modifier, "strftime")
        if layout is None:
            by_go = wrapped(modifier, "go")
            layout = None if by_go is None else _of_go(by_go)
        if layout is not None:
            return lambda record: _written_time(record.timestamp, layout)
    return _number(lambda record: record.timestamp, number_forms.written(modifier))


def _written_time(timestamp_ms: int, layout: str) -> bytes:
    """In UTC. A time that no calendar has is shown as its number."""
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
        return moment.strftime(layout.replace("\0", f"{timestamp_ms % 1000:03}")).encode()
    except (OverflowError, ValueError):
        return b"%d" % timestamp_ms


#: The time that Go writes its layouts with, piece by piece, and strftime's letters for each.
_GO = {
    "2006": "%Y",
    "January": "%B",
    "Jan": "%b",
    "Monday": "%A",
    "Mon": "%a",
    "MST": "UTC",
    "Z07:00": "Z",
    "-07:00": "+00:00",
    "-0700": "+0000",
    ".000": ".\0",
    "01": "%m",
    "02": "%d",
    "03": "%I",
    "04": "%M",
    "05": "%S",
    "06": "%y",
    "15": "%H",
    "PM": "%p",
}
_GO_PIECE = re.compile("|".join(map(re.escape, sorted(_GO, key=len, reverse=True))) + "|%")


def _of_go(layout: str) -> str:
    return _GO_PIECE.sub(lambda found: _GO.get(found[0], "%%"), layout)


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)


#: What Kafka's console formatter knows, with its defaults.
CONSOLE_DEFAULTS = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\\t",
    "line.separator": "\\n",
    "headers.separator": ",",
    "null.literal": "null",
}


def console_format(properties: Mapping[str, str]) -> Format:
    """Kafka's console formatter: the value alone, unless properties ask for more."""
    for name in properties:
        if name not in CONSOLE_DEFAULTS:
            raise UsageFault(f"--property: there is no {name}; known are {', '.join(CONSOLE_DEFAULTS)}")
    chosen = {**CONSOLE_DEFAULTS, **properties}
    null, between = escaped(chosen["null.literal"]), escaped(chosen["headers.separator"])

    def is_shown(name: str) -> bool:
        return chosen[name].strip().lower() == "true"  # as Kafka reads it

    shown: list[Format] = []
    if is_shown("print.timestamp"):
        shown.append(_console_time)
    if is_shown("print.partition"):
        shown.append(lambda record: b"Partition:%d" % record.partition)
    if is_shown("print.offset"):
        shown.append(lambda record: b"Offset:%d" % record.offset)
    if is_shown("print.headers"):
        shown.append(lambda record: _console_headers(record, between, null))
    if is_shown("print.key"):
        shown.append(lambda record: null if record.key is None else record.key)
    if is_shown("print.value"):
        shown.append(lambda record: null if record.value is None else record.value)
    separator, end = escaped(chosen["key.separator"]), escaped(chosen["line.separator"])
    return lambda record: separator.join([each(record) for each in shown]) + end


def _console_time(record: ConsumerRecord) -> bytes:
    return b"%s:%d" % (b"LogAppendTime" if record.timestamp_type else b"CreateTime", record.timestamp)


def _console_headers(record: ConsumerRecord, between: bytes, null: bytes) -> bytes:
    pairs = [name.encode() + b":" + (null if value is None else bytes(value)) for name, value in record.headers]
    return between.join(pairs) or b"NO_HEADERS"


def json_format(record: ConsumerRecord) -> bytes:
    from ottla.cli.envelope import envelope

    headers: list[tuple[str, Any]] = [(name, None if value is None else bytes(value)) for name, value in record.headers]
    line = envelope(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        is_append_time=record.timestamp_type == 1,
        timestamp=record.timestamp,
        headers=headers,
        key=record.key,
        value=record.value,
    )
    return line.encode() + b"\n"
