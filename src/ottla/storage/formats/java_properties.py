r"""The syntax of Java's Properties files, as far as such a file can go.

A line is `key=value`, `key: value` or `key value`; `#` and `!` begin a comment; a backslash at the end of a line joins
the next one, and elsewhere takes the next character as it is, except `\t \n \r \f` and `\uXXXX`. Bytes are ISO-8859-1,
so no bytes are undecodable: what can be wrong is only a `\u` without four hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ottla.storage.formats.errors import FormatError

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", **{c: "\\" + c for c in "\\=:#!"}}
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def decode(data: bytes) -> dict[str, str]:
    """Keys and values; a key that stands twice has its last value, as in Java."""
    pairs: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        key, position = _word(line, 0, _BLANKS + "=:")
        while position < len(line) and line[position] in _BLANKS:
            position += 1
        if position < len(line) and line[position] in "=:":
            position += 1
            while position < len(line) and line[position] in _BLANKS:
                position += 1
        pairs[key], _ = _word(line, position, "")
    return pairs


def encode(pairs: Mapping[str, str]) -> bytes:
    lines = [f"{_escape(key, blanks=True)}={_escape(value, blanks=False)}\n" for key, value in pairs.items()]
    return "".join(lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[str]:
    pending: list[str] = []
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending.append(line[:-1])
            continue
        yield "".join([*pending, line])
        pending.clear()
    if pending:
        yield "".join(pending)


def _word(line: str, start: int, stops: str) -> tuple[str, int]:
    """Unescapes from `start` up to an unescaped character of `stops`; returns the text and where that was."""
    out: list[str] = []
    position = start
    while position < len(line) and line[position] not in stops:
        char = line[position]
        position += 1
        if char != "\\" or position == len(line):
            out.append(char)
            continue
        char = line[position]
        position += 1
        if char == "u":
            digits = line[position : position + 4]
            if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise FormatError("a \\u in the properties is not followed by four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(char, char))
    return _join_surrogates("".join(out)), position


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
