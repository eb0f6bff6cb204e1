"""`NAME=VALUE` as it is given on command lines, with Kafka's brackets for values that hold commas."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cli.faults import UsageFault
from ottla.cli.parser import is_text

#: Its values are what stands between records' parts: any bytes, blanks and brackets among them.
_ANY_BYTES = "--property"


def assignments(option: str, texts: Iterable[str]) -> dict[str, str]:
    """One assignment a text; a later one of the same name holds."""
    return dict(_assignment(option, text) for text in texts)


def assignment_lists(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`a=1,b=[x,y]` in each text, as Kafka's --add-config has it."""
    return dict(_assignment(option, part) for text in texts for part in _parts(text))


def names(texts: Iterable[str]) -> list[str]:
    """`a,b` in each text."""
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _assignment(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageFault(f"{option}: '{text}' is not NAME=VALUE")
    if option != _ANY_BYTES and not is_text(text):
        raise UsageFault(f"{option}: '{text}' is no UTF-8 text")
    if option == _ANY_BYTES:
        return name.strip(), value
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        value = value[1:-1]
    return name.strip(), value


def _parts(text: str) -> list[str]:
    """Cut at commas that are not between brackets; a part without `=` belongs to the value before it."""
    parts: list[str] = []
    depth = 0
    current = ""
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part for part in (*parts, current) if part.strip()]
