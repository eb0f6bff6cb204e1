"""What marker files of a log directory have inside: a small JSON object of version 0."""

from __future__ import annotations

import json
from typing import Any, Final

from ottla.storage.formats.errors import FormatError

#: More than any marker has: JSON parsing of hostile depth or digits is not even tried.
_BYTES_MAX: Final = 1024


def encode(field: str, number: int) -> bytes:
    return json.dumps({"version": 0, field: number}, separators=(",", ":")).encode("ascii")


def decode(data: bytes, marker: str) -> dict[str, Any]:
    """The object; `marker` is the file's name in what is said of it."""
    if len(data) > _BYTES_MAX:
        raise FormatError(f"the {marker} has {len(data)} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the {marker} is not JSON") from error
    if not isinstance(content, dict) or content.get("version") != 0:
        raise FormatError(f"the {marker} does not have version 0")
    return content
