"""A record as expressions see it: text and JSON are made of its bytes when they are first asked for, and once."""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.client.records import ConsumerRecord

_UNREAD: Final[Any] = object()


class RecordView:
    __slots__ = ("_headers", "_json", "record")

    def __init__(self, record: ConsumerRecord) -> None:
        self.record = record
        #: What `key` and `value` hold as JSON, as far as it was looked at.
        self._json: dict[str, Any] = {}
        self._headers: Any = _UNREAD

    def key(self) -> Any:
        return text_of(self.record.key)

    def value(self) -> Any:
        return text_of(self.record.value)

    def key_json(self) -> Any:
        return self._parsed("key", self.record.key)

    def value_json(self) -> Any:
        return self._parsed("value", self.record.value)

    def headers(self) -> dict[str, Any]:
        """By name; of several with one name the last, as Kafka's clients have it."""
        if self._headers is _UNREAD:
            self._headers = {
                name: text_of(None if content is None else bytes(content)) for name, content in self.record.headers
            }
        found: dict[str, Any] = self._headers
        return found

    def _parsed(self, name: str, content: bytes | None) -> Any:
        found = self._json.get(name, _UNREAD)
        if found is _UNREAD:
            found = self._json[name] = _json_of(content)
        return found


def text_of(content: bytes | None) -> str | bytes | None:
    """Text where it is UTF-8; other bytes stay bytes, which equal no text."""
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


def _json_of(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):  # no JSON, not even text, or a thousand brackets
        return None
