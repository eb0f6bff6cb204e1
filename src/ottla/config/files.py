"""Java's property files, by the rules of `java.util.Properties`, since that is what a `server.properties` is.

A logical line is a name, a separator (`=`, `:` or white space) and a value. A line that ends in an odd number of
backslashes goes on in the next one, whose leading white space is dropped. `#` or `!` as the first character makes a
comment, which never goes on. `\\t`, `\\n`, `\\r`, `\\f` and `\\uXXXX` are what they are in Java; a backslash before
anything else is dropped. Where a name comes twice, the last one holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.config.errors import ConfigError

#: Real files have a few kilobytes: more is not a property file.
FILE_BYTES_MAX: Final = 4 << 20

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertyFileError(ConfigError):
    """A file that is not a property file: says in which line."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}", None, why)
        self.args = (f"line {line}: {why}",)


def parse_properties(data: bytes | str) -> dict[str, str]:
    """The properties of a file's content, in its order; raises PropertyFileError, and nothing else, on any bytes."""
    if len(data) > FILE_BYTES_MAX:
        raise PropertyFileError(1, f"the file is longer than {FILE_BYTES_MAX} bytes")
    properties: dict[str, str] = {}
    for number, line in _logical_lines(_decoded(data)):
        name, value = _split(line)
        name = _unescaped(name, number)
        properties.pop(name, None)
        properties[name] = _unescaped(value, number)
    return properties


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # what Java takes every file for


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each logical line without its leading white space, with the number of its first line in the file."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    index = 0
    while index < len(lines):
        first = index
        line = lines[index].lstrip(_BLANKS)
        index += 1
        if not line or line[0] in "#!":
            continue
        parts = []
        while _goes_on(line):
            parts.append(line[:-1])
            line = lines[index].lstrip(_BLANKS) if index < len(lines) else ""
            index += 1
        parts.append(line)
        yield first + 1, "".join(parts)


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Name and value, both still escaped: at the first separator that has no backslash before it."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    name, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return name, rest


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
            continue
        escape = text[position : position + 1]
        position += 1
        if escape != "u":
            out.append(_ESCAPES.get(escape, escape))
            continue
        digits = text[position : position + 4]
        position += 4
        if len(digits) < 4 or not set(digits) <= set("0123456789abcdefABCDEF"):
            raise PropertyFileError(line, "a \\u is followed by four hexadecimal digits")
        out.append(chr(int(digits, 16)))
    # Java writes characters beyond the first plane as two surrogates: join them, and replace a lone one.
    return "".join(out).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
