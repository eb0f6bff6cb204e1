"""A file of properties, as `server.properties` and a client's settings are: by the rules of `java.util.Properties`."""

from __future__ import annotations

from typing import Final

from ottla import java_properties
from ottla.config.errors import ConfigError

#: Real files have a few kilobytes: more is not a property file.
FILE_BYTES_MAX: Final = 4 << 20


class PropertyFileError(ConfigError):
    """A file that is not a property file: says in which line."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}", None, why)
        self.args = (f"line {line}: {why}",)


def parse_properties(data: bytes | str) -> dict[str, str]:
    """The properties of a file's content, in its order; raises PropertyFileError, and nothing else, on any bytes.

    Where a name comes twice, the last one holds.
    """
    if len(data) > FILE_BYTES_MAX:
        raise PropertyFileError(1, f"the file is longer than {FILE_BYTES_MAX} bytes")
    try:
        pairs = java_properties.decode(_decoded(data))
    except java_properties.BadEscape as fault:
        raise PropertyFileError(fault.line, fault.why) from None
    return {_sound(name): _sound(value) for name, value in pairs.items()}


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # what Java takes every file for


def _sound(text: str) -> str:
    """Half a character, which no message could print, becomes the sign for what cannot be read."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace") if not text.isascii() else text
