"""Java's `String.hashCode`: by it Kafka decides which partition of the offsets topic holds a group, and which of a
broker's fetchers has a partition.

h = h * 31 + unit over the UTF-16 code units, in 32 bits with sign.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

_MASK: Final = 0xFFFF_FFFF
_SIGN: Final = 0x8000_0000
#: Longer names are hashed each time.
_REMEMBERED_LENGTH_MAX: Final = 256


def java_hash(text: str) -> int:
    """A signed 32-bit integer."""
    raw = text.encode("utf-16-le", "surrogatepass")
    units = struct.unpack(f"<{len(raw) // 2}H", raw)
    value = 0
    for unit in units:
        value = (value * 31 + unit) & _MASK
    return value - (_MASK + 1) if value & _SIGN else value


def partition_of(group_id: str, count: int) -> int:
    """The partition of the offsets topic, of `count` partitions, that keeps this group."""
    value = _remembered(group_id) if len(group_id) <= _REMEMBERED_LENGTH_MAX else java_hash(group_id)
    # Java has no positive counterpart of -2**31; Kafka takes 0 instead.
    return 0 if value == -_SIGN else abs(value) % count


# A microsecond for every twenty characters is saved with each request, for at most some megabytes.
_remembered = lru_cache(maxsize=16_384)(java_hash)
