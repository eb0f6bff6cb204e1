"""A record as a JSON object on one line: what `consume -J` prints and `produce -J` reads.

The names are those of kcat's envelope: topic, partition, offset, tstype, ts, headers, key, payload. Headers are names
and values in turn. Bytes that are no UTF-8 text stand as {"base64": "..."}, so that any record comes back as it was.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

Bytes = bytes | None


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


class RecordEnvelope:
    """What of an envelope makes a record; where it lay and when is left to the caller, who sends it on."""

    __slots__ = ("headers", "key", "partition", "timestamp", "topic", "value")

    def __init__(self, line: bytes | str) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EnvelopeFault(f"it is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise EnvelopeFault("it is not a JSON object")
        self.topic: str | None = _of_type(found, "topic", str)
        self.partition: int | None = _of_type(found, "partition", int)
        self.timestamp: int | None = _of_type(found, "ts", int)
        self.key = _content("key", found.get("key"))
        self.value = _content("payload", found.get("payload"))
        self.headers = _headers(found.get("headers"))


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
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _headers(found: Any) -> list[tuple[str, Bytes]]:
    if found is None:
        return []
    if not isinstance(found, list) or len(found) % 2 or not all(isinstance(name, str) for name in found[::2]):
        raise EnvelopeFault("headers is not a list of names and values in turn")
    return [(name, _content(f"header {name}", value)) for name, value in zip(found[::2], found[1::2], strict=True)]
