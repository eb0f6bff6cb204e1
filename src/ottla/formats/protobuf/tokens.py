"""The words of a .proto file, each with its line."""

from __future__ import annotations

import re
import sys
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
#: Of a text: a byte's octal or hexadecimal number, units of UTF-16 or a character by their numbers, one letter.
_ESCAPE: Final = re.compile(
    rb"\\([0-7]{1,3})|\\[xX]([0-9a-fA-F]{1,2})|((?:\\u[0-9a-fA-F]{4})+)|\\U([0-9a-fA-F]{8})|\\(.)", re.DOTALL
)
#: Of what is no word.
_SHOWN_MAX: Final = 20
_LETTERS: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
#: What some editors write before a file's first word.
_BYTE_ORDER_MARK: Final = "\ufeff"


class Token(NamedTuple):
    #: name, number, text or sign; "end" behind the last.
    kind: str
    text: str
    line: int


def tokens(source: str) -> Iterator[Token]:
    """Raises BadSpec at what is no word."""
    pos, line = len(_BYTE_ORDER_MARK) if source.startswith(_BYTE_ORDER_MARK) else 0, 1
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


def bytes_of(token: Token) -> bytes:
    """What a text says, without its quotes and escapes. These may be of bytes that are no UTF-8."""

    def unescaped(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, units, character, letter = match.groups()
        if octal:
            return bytes([int(octal, 8) & 0xFF])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        if units:
            text = bytes.fromhex(units.replace(b"\\u", b"").decode()).decode("utf-16-be", "surrogatepass")
            return text.encode(errors="surrogatepass")
        if not character:
            return _LETTERS.get(letter, letter)
        number = int(character, 16)
        if number > sys.maxunicode:
            raise BadSpec(f"line {token.line} of the Protobuf schema: there is no character {match[0].decode()}")
        return chr(number).encode(errors="surrogatepass")

    return _ESCAPE.sub(unescaped, token.text[1:-1].encode())


def escaped(raw: bytes) -> str:
    """The way back, for bytes of which a descriptor makes a text."""
    return "".join(chr(one) if 0x20 <= one < 0x7F and one not in b"\"'\\" else f"\\{one:03o}" for one in raw)
