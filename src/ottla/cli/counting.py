"""Numbers of things in sentences: `1 record`, `2 records`, `no records`."""

from __future__ import annotations


def counted(number: int, one: str, several: str | None = None) -> str:
    """With the noun in the number that it has; `several` where that is not `one` with an s."""
    return f"{number or 'no'} {one if number == 1 else several or f'{one}s'}"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def were(number: int) -> str:
    return "was" if number == 1 else "were"
