from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# Whole batches at the begin of `records` that are sound, of this leader epoch and of no transaction, as far as they
# fit: offsets from `next_offset` on and up to `roll_offset`, `room` bytes together, timestamps up to `roll_timestamp`.
# How many bytes they have; size, first and last offset and largest timestamp of each; and of those of idempotent
# producers the index, the producer's id and epoch, and the base sequence.
def walk(
    records: Buffer, next_offset: int, leader_epoch: int, room: int, roll_offset: int, roll_timestamp: int, /
) -> tuple[int, list[tuple[int, int, int, int]], list[tuple[int, int, int, int]]]: ...
