"""Randomness, so that a simulation can choose it."""

from __future__ import annotations

from typing import Protocol


class Entropy(Protocol):
    def token(self, size: int) -> bytes:
        """`size` unpredictable bytes: for ids and nonces."""
        ...

    def below(self, bound: int) -> int:
        """An integer in [0, bound): for jitter and random starts."""
        ...
