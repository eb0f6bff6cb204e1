r"""Java's property files, by the rules of `java.util.Properties`: `server.properties`, `meta.properties` and others.

A logical line is a name, a separator (`=`, `:` or white space) and a value. A line that ends in an odd number of
backslashes goes on in the next one, whose leading white space is dropped. `#` or `!` as the first character makes a
comment, which never goes on. `\t`, `\n`, `\r`, `\f` and `\uXXXX` are what they are in Java; a backslash before
anything else is dropped. So all that can be wrong is a `\u` without four hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", **{c: "\\" + c for c in "\\=:#!"}}
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


class BadEscape(Exception):
    """A `\\u` that is none, and in which line."""

    why: Final = "a \\u is followed by four hexadecimal digits"

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}: {self.why}")
        self.line = line


def decode(text: str) -> dict[str, str]:
    """Names and values, each name where it stands last, with the value that it has there. Raises BadEscape.

    A character that Java writes as two halves is one; half a character stays as it is.
    """
    pairs: dict[str, str] = {}
    for number, line in _logical_lines(text):
        name, value = _split(line)
        name = _unescaped(name, number)
        pairs.pop(name, None)
        pairs[name] = _unescaped(value, number)
    return pairs


def encode(pairs: Mapping[str, str]) -> bytes:
    lines = [f"{_escape(key, blanks=True)}={_escape(value, blanks=False)}\n" for key, value in pairs.items()]
    return "".join(lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each logical line without its leading white space, with the number of its first line."""
    lines = _LINE_END.split(text)
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
        if len(digits) < 4 or not _HEX_DIGITS.issuperset(digits):
            raise BadEscape(line)
        out.append(chr(int(digits, 16)))
    return _join_surrogates("".join(out))


def _join_surrogates(text: str) -> str:
    """Java's characters are UTF-16 units; a pair of them is one of ours. A lone one stays as it is."""
    if text.isascii():
        return text
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass") if _paired(text) else text


def _paired(text: str) -> bool:
    return re.search("[\ud800-\udbff][\udc00-\udfff]", text) is not None


def _escape(text: str, *, blanks: bool) -> str:
    out: list[str] = []
    for position, char in enumerate(text):
        if char == " ":
            # A value loses its leading blanks, a key ends at any.
            out.append("\\ " if blanks or position == 0 else char)
        elif " " < char <= "~":
            out.append(_UNESCAPES.get(char, char))
        elif char in _UNESCAPES:
            out.append(_UNESCAPES[char])
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out.extend(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))
    return "".join(out)
