"""A mapping that goes on changing while somebody else reads what it held before.

A snapshot of a hundred thousand producers takes a worker a second, and copying them would stall the loop. So the dict
stays as it is, for the worker to read, and changes stand in a second one in front of it until the worker is done.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Final, TypeVar, overload

V = TypeVar("V")
D = TypeVar("D")


class _Missing:
    """Neither changed nor gone."""


_MISSING: Final = _Missing()


class Overlay(MutableMapping[int, V]):
    """Looked up at half the speed of a dict, and only while there is something to wait for."""

    __slots__ = ("_changes", "_size", "base")

    def __init__(self, base: dict[int, V]) -> None:
        #: As it was: nobody changes it before `merged`.
        self.base = base
        #: None for what is gone.
        self._changes: dict[int, V | None] = {}
        self._size = len(base)

    def merged(self) -> dict[int, V]:
        """The dict with all changes in it. Nobody reads the former state any more."""
        base = self.base
        for key, value in self._changes.items():
            if value is None:
                base.pop(key, None)
            else:
                base[key] = value
        return base

    @overload
    def get(self, key: int, default: None = None) -> V | None: ...
    @overload
    def get(self, key: int, default: D) -> V | D: ...
    def get(self, key: int, default: D | None = None) -> V | D | None:
        found = self._changes.get(key, _MISSING)
        if isinstance(found, _Missing):
            return self.base.get(key, default)
        return default if found is None else found

    def __getitem__(self, key: int) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: int, value: V) -> None:
        self._size += self.get(key) is None
        self._changes[key] = value

    def __delitem__(self, key: int) -> None:
        if self.get(key) is None:
            raise KeyError(key)
        self._size -= 1
        self._changes[key] = None

    def __iter__(self) -> Iterator[int]:
        for key in self.base:
            if self._changes.get(key, _MISSING) is not None:
                yield key
        for key, value in self._changes.items():
            if value is not None and key not in self.base:
                yield key

    def __len__(self) -> int:
        return self._size
