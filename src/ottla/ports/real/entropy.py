"""Randomness from the kernel. `secrets` says the same with 10 ms of imports."""

from __future__ import annotations

import os


class RealEntropy:
    __slots__ = ()

    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def below(self, bound: int) -> int:
        assert bound > 0
        # 64 bits more than needed: the bias of the remainder is then below 2**-64.
        return int.from_bytes(os.urandom(bound.bit_length() // 8 + 9), "little") % bound
