"""xxHash of 32 bits for a few bytes, as the header of an lz4 frame is summed: the library does not give it away."""

from __future__ import annotations

import struct
from typing import Final

#: Longer data goes through four lanes first, which nobody needs here: a header has fourteen bytes at most.
SHORT_BYTES_MAX: Final = 15

_PRIMES: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_MASK: Final = 0xFFFFFFFF


def xxhash32_short(data: bytes) -> int:
    """With the seed 0."""
    assert len(data) <= SHORT_BYTES_MAX
    _, second, third, fourth, fifth = _PRIMES
    total = (fifth + len(data)) & _MASK
    words = len(data) // 4
    for word in struct.unpack_from(f"<{words}I", data):
        total = _rotated((total + word * third) & _MASK, 17) * fourth & _MASK
    for byte in data[4 * words :]:
        total = _rotated((total + byte * fifth) & _MASK, 11) * _PRIMES[0] & _MASK
    total = (total ^ total >> 15) * second & _MASK
    total = (total ^ total >> 13) * third & _MASK
    return total ^ total >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
