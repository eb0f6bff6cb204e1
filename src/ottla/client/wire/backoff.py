"""How long to wait before trying again: doubling from a first to a longest pause, give or take a fifth.

Without the random fifth, all clients that lost the same broker would come back in the same millisecond.
"""

from __future__ import annotations

from typing import Final

from ottla.ports.entropy import Entropy

_JITTER_PARTS: Final = 1_000
_JITTER: Final = 0.2
#: Beyond it doubling adds nothing but large numbers.
_DOUBLINGS_MAX: Final = 30


class Backoff:
    __slots__ = ("_entropy", "_first_ms", "_longest_ms")

    def __init__(self, first_ms: int, longest_ms: int, entropy: Entropy) -> None:
        self._first_ms = first_ms
        self._longest_ms = max(first_ms, longest_ms)
        self._entropy = entropy

    def pause_ms(self, failures: int) -> int:
        """The pause after so many failures in a row; the first counts as 1."""
        if failures <= 0:
            return 0
        pause = min(self._first_ms << min(failures - 1, _DOUBLINGS_MAX), self._longest_ms)
        jitter = (self._entropy.below(2 * _JITTER_PARTS + 1) - _JITTER_PARTS) / _JITTER_PARTS * _JITTER
        return max(0, round(pause * (1 + jitter)))
