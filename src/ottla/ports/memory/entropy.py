"""Randomness from a seed."""

from __future__ import annotations

from random import Random


class SeededEntropy:
    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def token(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, bound: int) -> int:
        assert bound > 0
        return self._random.randrange(bound)
