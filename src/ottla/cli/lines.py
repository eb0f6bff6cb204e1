"""What a line of input is to `produce`: a value, key and value, all with headers, or a JSON envelope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.cli.envelope import EnvelopeFault, RecordEnvelope
from ottla.cli.faults import UsageFault


class ParsedRecord(NamedTuple):
    """What a line says of a record; None where it leaves that to the command line."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int | None = None
    topic: str | None = None
    partition: int | None = None


Parse = Callable[[bytes], ParsedRecord]


class LineFault(ValueError):
    """A line is not what it was said to be."""


#: What Kafka's line reader knows, with its defaults. Without a null.marker nothing is null; an empty one is one, too.
READER_DEFAULTS: Mapping[str, bytes] = {
    "parse.key": b"false",
    "parse.headers": b"false",
    "key.separator": b"\t",
    "headers.delimiter": b"\t",
    "headers.separator": b",",
    "headers.key.separator": b":",
    "ignore.error": b"false",
}
_NULL_MARKER = "null.marker"


def kafka_lines(properties: Mapping[str, bytes]) -> Parse:
    """`headers<delimiter>key<separator>value`, as far as the properties ask for them."""
    known = (*READER_DEFAULTS, _NULL_MARKER)
    for name in properties:
        if name not in known:
            raise UsageFault(f"--property: there is no {name}; known are {', '.join(known)}")
    chosen = {**READER_DEFAULTS, **properties}
    has_key, has_headers = _is_true(chosen["parse.key"]), _is_true(chosen["parse.headers"])
    separator, delimiter = chosen["key.separator"], chosen["headers.delimiter"]
    null, lenient = properties.get(_NULL_MARKER), _is_true(chosen["ignore.error"])
    if has_key and not separator:
        raise UsageFault("the separator of key and value is empty")

    def parse(line: bytes) -> ParsedRecord:
        headers: list[tuple[str, bytes | None]] = []
        rest = line
        if has_headers:
            before, found, after = rest.partition(delimiter)
            if found:
                headers, rest = _headers(before, chosen, null), after
            elif not lenient:
                raise LineFault(f"there is no {_shown(delimiter)} behind its headers")
        key: bytes | None = None
        if has_key:
            before, found, after = rest.partition(separator)
            if found:
                key, rest = before, after
            elif not lenient:
                raise LineFault(f"there is no {_shown(separator)} between key and value")
        return ParsedRecord(_unless_null(key, null), _unless_null(rest, null), headers)

    return parse


def _is_true(text: bytes) -> bool:
    """As Kafka reads it."""
    return text.strip().lower() == b"true"


def _headers(text: bytes, chosen: Mapping[str, bytes], null: bytes | None) -> list[tuple[str, bytes | None]]:
    if text == null:
        return []
    pairs = text.split(chosen["headers.separator"])
    while text and pairs and not pairs[-1]:  # as Java splits
        pairs.pop()
    headers = []
    for pair in pairs:
        name, found, value = pair.partition(chosen["headers.key.separator"])
        if not found:
            raise LineFault(f"the header {_shown(pair)} has no {_shown(chosen['headers.key.separator'])}")
        headers.append((name.decode("utf-8", "replace"), _unless_null(value, null)))
    return headers


def _unless_null(content: bytes | None, null: bytes | None) -> bytes | None:
    return None if content == null else content


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


def envelopes() -> Parse:
    def parse(line: bytes) -> ParsedRecord:
        try:
            opened = RecordEnvelope(line)
        except EnvelopeFault as fault:
            raise LineFault(str(fault)) from fault
        return ParsedRecord(opened.key, opened.value, opened.headers, opened.timestamp, opened.topic, opened.partition)

    return parse
