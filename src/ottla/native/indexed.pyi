from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# Position, next offset, bytes since the last entry, largest timestamp, and the last offset of its batch.
State: TypeAlias = tuple[int, int, int, int, int]

# The sound batches that begin in `piece`, which stands at the state's position of a file that ends at `end`; the state
# behind them, and their entries in the machine's byte order: offsets and positions (32 bits), timestamps (64 bits) and
# their offsets. Offsets are relative to the base. `last_time` is the timestamp of the last entry, -1: there is none.
def walk(
    piece: Buffer, end: int, base_offset: int, interval: int, last_time: int, state: State, /
) -> tuple[State, bytes, bytes, bytes, bytes]: ...
