"""A record as a JSON object on one line: what `consume -J` prints and `produce -J` reads.

The names are those of kcat's envelope: topic, partition, offset, tstype, ts, headers, key, payload. Headers are names
and values in turn. Bytes that are no UTF-8 text stand as {"base64": "..."}, so that any record comes back as it was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final, NamedTuple

Bytes = bytes | None
#: What a record has that was sent without a time.
NO_TIMESTAMP: Final = -1
#: A whole number of more is no field of an envelope; Python would refuse it at 4,300.
_DIGITS_MAX: Final = 100


def text_or_base64(value: Bytes) -> Any:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode("ascii")}


def envelope(
    *,
    topic: str,
    partition: int,
    offset: int,
    is_append_time: bool,
    timestamp: int,
    headers: list[tuple[str, Bytes]],
    key: Bytes,
    value: Bytes,
) -> str:
    flat: list[Any] = []
    for name, content in headers:
        flat += [name, text_or_base64(content)]
    return json.dumps(
        {
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "tstype": "logappend" if is_append_time else "create",
            "ts": timestamp,
            "headers": flat,
            "key": text_or_base64(key),
            "payload": text_or_base64(value),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


class EnvelopeFault(ValueError):
    """A line that is no envelope: says why."""


#: What an envelope may hold. Where a record lay and which broker gave it out (kcat says that) is for people to read.
_FIELDS = ("topic", "partition", "offset", "tstype", "ts", "broker", "headers", "key", "payload")


class RecordEnvelope:
    """What of an envelope makes a record. A field too many is a mistake: what it means would be lost without a word."""

    __slots__ = ("headers", "key", "partition", "timestamp", "topic", "value")

    def __init__(self, line: bytes | str) -> None:
        try:
            found = json.loads(
                line, object_pairs_hook=_without_repetition, parse_int=_whole_number, parse_float=_Digits
            )
        except EnvelopeFault:
            raise
        except (ValueError, RecursionError) as error:
            raise EnvelopeFault(f"it is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise EnvelopeFault("it is not a JSON object")
        _refuse_unknown(found)
        self.topic: str | None = _of_type(found, "topic", str)
        self.partition: int | None = _of_type(found, "partition", int)
        if self.partition is not None and not 0 <= self.partition < 2**31:
            raise EnvelopeFault(f"there is no partition {self.partition}")
        timestamp: int | None = _of_type(found, "ts", int)
        self.timestamp = None if timestamp == NO_TIMESTAMP else timestamp
        self.key = _content("key", found.get("key"))
        self.value = _content("payload", found["payload"])
        self.headers = _headers(found.get("headers"))


class _Digits(NamedTuple):
    """A number as the line has it: as a float it would lose digits, and be another number where it is the content."""

    text: str


def _whole_number(text: str) -> int | _Digits:
    return _Digits(text) if text == "-0" or len(text) > _DIGITS_MAX else int(text)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise EnvelopeFault(f"it has {next(name for name in names if names.count(name) > 1)} twice")
    return found


def _refuse_unknown(found: dict[str, Any]) -> None:
    for name in found:
        if name not in _FIELDS:
            hint = _NAMED_ELSEWHERE.get(name.lower(), "")
            meant = f"did you mean {hint}? " if hint else ""
            raise EnvelopeFault(
                f"it has a field {name[:60]}, which envelopes do not have; {meant}they have {', '.join(_FIELDS)}"
            )
    if "payload" not in found:
        raise EnvelopeFault('it has no payload; for a null one say "payload": null')


#: What others call the same.
_NAMED_ELSEWHERE = {
    "value": "payload",
    "timestamp": "ts",
    "header": "headers",
    **{name: name for name in _FIELDS},
}


def _of_type(found: dict[str, Any], name: str, kind: type) -> Any:
    value = found.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise EnvelopeFault(f"{name} is not {'a number' if kind is int else 'text'}")
    return value


def _content(name: str, value: Any) -> Bytes:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return b64decode(value["base64"], validate=True)
        except ValueError as error:
            raise EnvelopeFault(f"{name} is not base64: {error}") from error
    # Any other JSON is itself the content: what most pipelines mean by it.
    try:
        return _json_of(value).encode("utf-8", "surrogatepass")
    except RecursionError as error:
        raise EnvelopeFault(f"{name}: its values lie too deep within each other") from error


def _json_of(value: Any) -> str:
    """As `json.dumps`, with numbers as they were."""
    if isinstance(value, _Digits):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json_of(name)}:{_json_of(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_of, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _headers(found: Any) -> list[tuple[str, Bytes]]:
    if found is None:
        return []
    if not isinstance(found, list) or len(found) % 2 or not all(isinstance(name, str) for name in found[::2]):
        raise EnvelopeFault("headers is not a list of names and values in turn")
    return [(name, _content(f"header {name}", value)) for name, value in zip(found[::2], found[1::2], strict=True)]
