"""The words of a .proto file, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.formats.errors import BadSpec

_WORD: Final = re.compile(
    r"""
    (?P<blank>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<name>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<number>(?:0[xX][0-9a-fA-F]+ | [0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)?)[fF]?)
  | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
  | (?P<sign>[{}()\[\];=,<>:+/.-])
    """,
    re.VERBOSE | re.DOTALL,
)
#: Of an escape in a text: one letter, an octal or hexadecimal number, a character of Unicode.
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
#: Of what is no word.
_SHOWN_MAX: Final = 20
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Token(NamedTuple):
    #: name, number, text or sign; "end" behind the last.
    kind: str
    text: str
    line: int


def tokens(source: str) -> Iterator[Token]:
    """Raises BadSpec at what is no word."""
    pos, line = 0, 1
    while pos < len(source):
        match = _WORD.match(source, pos)
        if match is None:
            raise BadSpec(f"line {line} of the Protobuf schema: {source[pos : pos + _SHOWN_MAX]!r} is no word")
        kind = match.lastgroup
        assert kind is not None
        if kind != "blank":
            yield Token(kind, match[0], line)
        line += match[0].count("\n")
        pos = match.end()
    yield Token("end", "the end", line)


def text_of(token: Token) -> str:
    """What a text says, without its quotes and escapes."""

    def unescaped(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 8))
        if match[2] or match[3]:
            return chr(int(match[2] or match[3], 16))
        return _LETTERS.get(match[4], match[4])

    return _ESCAPE.sub(unescaped, token.text[1:-1])
