from typing import Any, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# An array of Arrow: offset, length, and its buffers (validity, ends, data).
Array: TypeAlias = tuple[int, int, Any, Any, Any]

# (0, the turn that comes next, [(partition, records, first time, latest time, batch)]); or what is wrong (1 an array,
# 2 a partition, 3 a time, 4 a header's name, 5 a size), with which row, and the number that it is about. The arrays are
# keys, values, partitions, times, headers, their names and their values; only values must be there.
def encode(
    arrays: tuple[Array | None, ...],
    partitions: int,
    turns: Any,
    turn: int,
    time_divisor: int,
    now: int,
    batch_bytes: int,
    record_bytes_max: int,
    /,
) -> tuple[int, int, Any]: ...
def murmur2(data: Buffer, /) -> int: ...
