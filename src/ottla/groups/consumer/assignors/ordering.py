"""Sorting in steps: ten thousand members take ten milliseconds in one piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import merge
from typing import Final, TypeVar

from ottla.steps import Steps, pieces

T = TypeVar("T")

#: Sorted in one piece: about a hundred microseconds.
_RUN: Final = 256


def in_order(items: Iterable[T], key: Callable[[T], bytes | str | int]) -> Steps[list[T]]:
    """As `sorted`: what is equal stays in the order in which it came."""
    runs: list[list[T]] = []
    for piece in pieces(items, _RUN):
        runs.append(sorted(piece, key=key))
        if len(piece) == _RUN:
            yield
    if len(runs) < 2:
        return runs[0] if runs else []
    ordered: list[T] = []
    for piece in pieces(merge(*runs, key=key)):
        ordered += piece
        yield
    return ordered
