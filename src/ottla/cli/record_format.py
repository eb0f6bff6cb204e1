"""How `consume` prints a record: a format of its own, Kafka's console formatter, or a JSON envelope.

%t topic   %p partition   %o offset   %T timestamp (ms)   %k key   %K its length   %v or %s value   %V or %S its length
%h headers, name=value with commas between   %% a percent sign   \\n \\t \\r \\0 \\\\ \\xHH
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.cli.faults import UsageFault
from ottla.client.records import ConsumerRecord

Format = Callable[[ConsumerRecord], bytes]

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def escaped(text: str) -> bytes:
    """The bytes that a text with backslashes stands for."""
    out = b""
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out += character.encode("utf-8", "surrogateescape")
            continue
        kind = text[position : position + 1]
        position += 1
        if kind == "x":
            digits = text[position : position + 2]
            position += 2
            if len(digits) < 2 or not set(digits) <= set("0123456789abcdefABCDEF"):
                raise UsageFault(f"'{text}': \\x is followed by two hexadecimal digits")
            out += bytes([int(digits, 16)])
        elif kind in _ESCAPES:
            out += _ESCAPES[kind]
        else:
            raise UsageFault(f"'{text}': there is no \\{kind}; known are \\n \\t \\r \\0 \\\\ and \\xHH")
    return out


def parse_format(text: str, null: bytes) -> Format:
    """Raises UsageFault on a token that does not exist."""
    pieces: list[bytes | Format] = []
    rest = text
    while rest:
        literal, percent, rest = rest.partition("%")
        if literal:
            pieces.append(escaped(literal))
        if percent:
            pieces.append(_token(rest[:1], null))
            rest = rest[1:]

    def formatted(record: ConsumerRecord) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])

    return formatted


def _token(letter: str, null: bytes) -> bytes | Format:
    tokens: dict[str, bytes | Format] = {
        "%": b"%",
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp,
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: b"%d" % _length(record.key),
        "v": lambda record: null if record.value is None else record.value,
        "V": lambda record: b"%d" % _length(record.value),
        "h": lambda record: _headers(record, b"=", null),
    }
    tokens["s"], tokens["S"] = tokens["v"], tokens["V"]
    if letter not in tokens:
        raise UsageFault(f"-f: there is no %{letter}; known are %{' %'.join(sorted(tokens))}")
    return tokens[letter]


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _headers(record: ConsumerRecord, between: bytes, null: bytes) -> bytes:
    pairs = [name.encode() + between + (null if value is None else bytes(value)) for name, value in record.headers]
    return b",".join(pairs)


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
    shown: list[Format] = []
    if chosen["print.timestamp"] == "true":
        shown.append(_console_time)
    if chosen["print.partition"] == "true":
        shown.append(lambda record: b"Partition:%d" % record.partition)
    if chosen["print.offset"] == "true":
        shown.append(lambda record: b"Offset:%d" % record.offset)
    if chosen["print.headers"] == "true":
        shown.append(lambda record: _console_headers(record, between, null))
    if chosen["print.key"] == "true":
        shown.append(lambda record: null if record.key is None else record.key)
    if chosen["print.value"] == "true":
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
