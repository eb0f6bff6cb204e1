from typing import Any, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

#: Position, size, codec and number of records of a batch.
Place: TypeAlias = tuple[int, int, int, int]

# Why it stopped (0 at the end, 1 enough, 2 in doubt, 3 behind `until`), the batches with something to be read, where
# it stopped, their records, the offset behind the last batch that was looked at and its leader epoch (-1 for none), and
# the type of the batches' times.
def survey(
    source: Buffer,
    pos: int,
    end: int,
    first: int,
    until: int,
    rows_max: int,
    bytes_max: int,
    check_crcs: bool,
    /,
) -> tuple[int, list[Place], int, int, int, int, int]: ...

# (verdict: 0 sound, 1 a doubt, 2 no room; batches done; rows), (bytes and nulls of keys), (of values), (number of
# headers, bytes of names, bytes and nulls of contents). `payloads` has None for what is not compressed; `memory` is 14
# writable buffers or None.
def fill(
    source: Buffer,
    places: tuple[Place, ...],
    payloads: tuple[bytes | None, ...],
    memory: tuple[Any, ...],
    rows: int,
    first: int,
    until: int,
    check_crcs: bool,
    /,
) -> tuple[tuple[int, int, int], tuple[int, int], tuple[int, int], tuple[int, int, int, int]]: ...
def crc32c(data: Buffer, /) -> int: ...
