"""The newest offset of each key, in slots of fixed size and so in memory that is known beforehand.

A key is known by 128 bits: two SipHash values, of the key and of the key behind a fixed prefix, under this process's
secret seed. Nobody can choose keys that meet, and that two meet by chance is as likely as with Kafka's MD5, which costs
four times as much here. A slot is three 64-bit numbers, one behind the other so that a look-up touches one cache line:
both hashes, and the offset's distance from the first dirty one, plus one.

Slots are a prime number, so that each probing distance visits them all (Knuth, open addressing with double hashing):
at a load of 0.9 a known key is found in two or three steps. Compiled code works on the same slots with the same hashes.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final

from ottla.native import compiled_keys

_compiled: Final = compiled_keys()
_FIELDS: Final = 3
SLOT_BYTES: Final = 8 * _FIELDS
_PREFIX: Final = b"\x9e"
_SLOTS_MIN: Final = 7

assert sys.hash_info.width == 64, "key hashes need 64 bits each"


class KeyMap:
    """used <= capacity < slots"""

    __slots__ = ("_cells", "_slots", "capacity", "first_offset", "used")

    def __init__(self, memory_bytes: int, load_factor: float, keys_max: int, first_offset: int) -> None:
        """As many slots as `memory_bytes` holds, or fewer where there cannot be more than `keys_max` keys."""
        wanted = min(memory_bytes // SLOT_BYTES, int(keys_max / load_factor) + _SLOTS_MIN)
        self._slots = _prime_at_most(max(wanted, _SLOTS_MIN))
        self._cells = array("q", [0]) * (self._slots * _FIELDS)
        self.capacity = min(max(int(self._slots * load_factor), 1), self._slots - 1)
        self.first_offset = first_offset
        #: Keys.
        self.used = 0

    def __repr__(self) -> str:
        return f"<KeyMap {self.used} keys in {self._slots} slots>"

    @property
    def memory_bytes(self) -> int:
        return self._slots * SLOT_BYTES

    @property
    def room(self) -> int:
        return self.capacity - self.used

    @property
    def fullness(self) -> float:
        return self.used / self._slots

    def put(self, keys: list[bytes | None], offsets: Iterable[int]) -> None:
        """Notes the offsets, which rise, of keys. There is room for as many; a null key is passed over."""
        cells, slots, first = self._cells, self._slots, self.first_offset - 1
        if _compiled is not None:
            self.used += _compiled.put(cells, slots, first, keys, offsets)
            assert self.used <= self.capacity
            return
        end = slots * _FIELDS
        added = 0
        for key, offset in zip(keys, offsets, strict=True):
            if key is None:
                continue
            primary = hash(key) or 1
            secondary = hash(_PREFIX + key)
            at = primary % slots * _FIELDS
            while found := cells[at]:
                if found == primary and cells[at + 1] == secondary:
                    break
                at += (secondary % (slots - 1) + 1) * _FIELDS
                if at >= end:
                    at -= end
            else:
                cells[at] = primary
                cells[at + 1] = secondary
                added += 1
            cells[at + 2] = offset - first
        self.used += added
        assert self.used <= self.capacity

    def are_newest(self, keys: list[bytes | None], offsets: Iterable[int]) -> bytearray:
        """1 for each record that no later one of its key supersedes, else 0, as for a null key."""
        cells, slots, first = self._cells, self._slots, self.first_offset - 1
        if _compiled is not None:
            verdicts: bytearray = _compiled.are_newest(cells, slots, first, keys, offsets)
            return verdicts
        end = slots * _FIELDS
        newest = bytearray(b"\1") * len(keys)
        for number, (key, offset) in enumerate(zip(keys, offsets, strict=True)):
            if key is None:
                newest[number] = 0
                continue
            primary = hash(key) or 1
            at = primary % slots * _FIELDS
            if not cells[at]:
                continue
            secondary = hash(_PREFIX + key)
            while found := cells[at]:
                if found == primary and cells[at + 1] == secondary:
                    if cells[at + 2] > offset - first:
                        newest[number] = 0
                    break
                at += (secondary % (slots - 1) + 1) * _FIELDS
                if at >= end:
                    at -= end
        return newest

    def distances(self) -> Iterable[int]:
        """Of each key's newest offset from `first_offset`, in no order."""
        step = 65536 * _FIELDS
        for start in range(0, len(self._cells), step):
            for distance in filter(None, self._cells[start + 2 : start + step : _FIELDS]):
                yield distance - 1


def _prime_at_most(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
