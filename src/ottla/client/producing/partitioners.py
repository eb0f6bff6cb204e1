"""Which partition a record goes to. All clients of a topic must agree, or the records of one key lose their order.

A partitioner is a callable `(topic, key, partition_count) -> partition`, where -1 leaves the choice to the producer,
which then fills one batch for one partition after the other ("sticky": full batches, evenly spread). Named ones:

- `murmur2`      what Java's producer does: keys by their hash, records without a key sticky. The default.
- `sticky`       keys count for nothing.
- `round_robin`  one after the other, whatever the key. Small batches: `sticky` spreads as evenly and costs less.
- `integer_key`  a key that is a whole number in text goes to that number modulo the partition count, any other to its
                 Java string hash; what a partitioner of Kafka's first years did, and many topics are laid out by it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from ottla.client.arguments import shown
from ottla.client.errors import SettingsError
from ottla.records.keyhash import murmur2

Partitioner = Callable[[str, bytes | None, int], int]

#: "Any partition will do."
ANY: Final = -1

_MASK: Final = 0xFFFF_FFFF
_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
#: Of an int in Java. Python refuses to read thousands.
_INT_DIGITS_MAX: Final = 10


def murmur2_partitioner(_topic: str, key: bytes | None, partition_count: int) -> int:
    return ANY if key is None else (murmur2(key) & 0x7FFF_FFFF) % partition_count


def sticky_partitioner(_topic: str, _key: bytes | None, _partition_count: int) -> int:
    return ANY


class RoundRobinPartitioner:
    """Counts by itself for each topic."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(self, topic: str, key: bytes | None, partition_count: int) -> int:
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        return turn % partition_count


def java_string_hash(text: str) -> int:
    """Java's String.hashCode, over UTF-16 code units."""
    raw = text.encode("utf-16-be", "surrogatepass")
    h = 0
    for unit in struct.unpack(f">{len(raw) // 2}H", raw):
        h = (31 * h + unit) & _MASK
    return h - (1 << 32) if h > _INT32_MAX else h


def integer_key_partitioner(_topic: str, key: bytes | None, partition_count: int) -> int:
    """abs(n % count) as Java counts it: the remainder has the number's sign, so it is abs(n) % count."""
    if key is None:
        return ANY
    text = key.decode("utf-8", "replace")
    number = _java_int(text)
    return abs(java_string_hash(text) if number is None else number) % partition_count


def _java_int(text: str) -> int | None:
    """What Integer.parseInt gives, or None where it throws: no blanks, no underscores, 32 bits."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits.isdecimal():
        return None
    if len(digits) > _INT_DIGITS_MAX:  # zeros may stand before it, as many as one likes, in any script
        significant = "".join(str(int(digit)) for digit in digits).lstrip("0")
        if len(significant) > _INT_DIGITS_MAX:
            return None
        text = text[: len(text) - len(digits)] + (significant or "0")
    number = int(text)
    return number if _INT32_MIN <= number <= _INT32_MAX else None


_NAMED: Final[dict[str, Callable[[], Partitioner]]] = {
    "murmur2": lambda: murmur2_partitioner,
    "sticky": lambda: sticky_partitioner,
    "round_robin": RoundRobinPartitioner,
    "integer_key": lambda: integer_key_partitioner,
}


def partitioner_for(wanted: Any) -> Partitioner:
    """A partitioner by its name, or the callable itself."""
    if callable(wanted):
        made: Partitioner = wanted
        return made
    name = wanted if isinstance(wanted, str) else ""
    make = _NAMED.get(name.replace("-", "_").lower())
    if make is None:
        from ottla.client.other_names import PARTITIONERS

        ours = PARTITIONERS.get(name.rpartition(".")[2].lower())
        hint = f": that is {ours} here" if ours is not None else ""
        raise SettingsError(f"partitioner must be one of {', '.join(_NAMED)} or a callable, not {shown(wanted)}{hint}")
    return make()
