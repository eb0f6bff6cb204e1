"""Formats as text: what stands between percent signs, and what braces behind a letter say about it.

    %k %v{base64}\\n        a key, a blank, a value in base64, a line break
    %h{%k=%v{hex};}        a format of its own for each header
    %d{strftime[%F %T]}    brackets, braces or hashes around what has percent signs of its own
    %{ and %}              braces, where one would otherwise begin or end that

The letters and the words in braces are rpk's, and kcat's where the two differ.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cli.faults import UsageFault

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


class FormatToken(NamedTuple):
    letter: str
    #: What stood in braces behind it; None without braces.
    modifier: str | None


def escaped(text: str) -> bytes:
    """The bytes that a text with backslashes stands for."""
    out = b""
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out += character.encode("utf-8", "surrogateescape")
            continue
        kind = text[position : position + 1]
        position += 1
        if kind == "x":
            digits = text[position : position + 2]
            position += 2
            if len(digits) < 2 or not set(digits) <= set("0123456789abcdefABCDEF"):
                raise UsageFault(f"'{text}': \\x is followed by two hexadecimal digits")
            out += bytes([int(digits, 16)])
        elif kind in _ESCAPES:
            out += _ESCAPES[kind]
        else:
            raise UsageFault(f"'{text}': there is no \\{kind}; known are \\n \\t \\r \\0 \\\\ and \\xHH")
    return out


def tokens(text: str) -> list[bytes | FormatToken]:
    """Literals and tokens in turn."""
    found: list[bytes | FormatToken] = []
    rest = text
    while rest:
        literal, percent, rest = rest.partition("%")
        if literal:
            found.append(escaped(literal))
        if not percent:
            break
        letter, rest = rest[:1], rest[1:]
        if letter and letter in "%{}":
            found.append(letter.encode())
            continue
        modifier = None
        if rest.startswith("{"):
            modifier, rest = _braced(rest[1:], text)
        found.append(FormatToken(letter, modifier))
    return _joined(found)


def _braced(text: str, whole: str) -> tuple[str, str]:
    """What stands before the brace that closes, and what behind it."""
    depth, position = 1, 0
    while position < len(text):
        character = text[position]
        if character == "%" and text[position + 1 : position + 2] in {"{", "}", "%"}:
            position += 2
            continue
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[:position], text[position + 1 :]
        position += 1
    raise UsageFault(f"'{whole}': a brace is not closed (%{{ stands for a brace itself)")


def _joined(found: list[bytes | FormatToken]) -> list[bytes | FormatToken]:
    """Literals that follow each other are one."""
    joined: list[bytes | FormatToken] = []
    for one in found:
        if isinstance(one, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += one
        else:
            joined.append(one)
    return joined


def wrapped(modifier: str, name: str) -> str | None:
    """The text in `name[text]`, `name{{text}}` or `name###text###`; None if the modifier is not made so."""
    rest = modifier.removeprefix(name)
    if rest == modifier or not rest or rest[0] not in "[{#":
        return None
    opening = rest[0]
    count = len(rest) - len(rest.lstrip(opening))
    closing = {"[": "]", "{": "}", "#": "#"}[opening] * count
    inner = rest[count:]
    if opening == "#" and not inner:  # all of it hashes
        count = len(rest) // 2
        inner, closing = rest[count:], "#" * (len(rest) - count)
    if not inner.endswith(closing):
        raise UsageFault(f"'{modifier}' is not closed by {closing}")
    return inner[: len(inner) - len(closing)]
