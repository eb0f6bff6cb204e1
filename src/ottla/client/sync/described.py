"""The synchronous methods are described where the awaited ones are: one text for both."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import TypeVar

Class = TypeVar("Class")


def described_by(awaited: type) -> Callable[[type[Class]], type[Class]]:
    """Gives each method without a text of its own that of the awaited method with its name."""

    def describe(plain: type[Class]) -> type[Class]:
        for name, method in vars(plain).items():
            if isfunction(method) and method.__doc__ is None:
                method.__doc__ = getattr(getattr(awaited, name, None), "__doc__", None)
        return plain

    return describe
