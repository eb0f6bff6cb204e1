from array import array
from collections.abc import Iterable
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# The keys of the `count` records that fill `data` from `at` to `end`, or None where they are not sound.
def read(data: Buffer, at: int, end: int, count: int, /) -> list[bytes | None] | None: ...

# Notes the offsets of keys in a map of so many slots; how many of the keys are new. `first` is one below the offset
# that distances count from.
def put(cells: array[int], slots: int, first: int, keys: list[bytes | None], offsets: Iterable[int], /) -> int: ...

# 1 for each record that no later one of its key supersedes, else 0, as for a null key.
def are_newest(
    cells: array[int], slots: int, first: int, keys: list[bytes | None], offsets: Iterable[int], /
) -> bytearray: ...
