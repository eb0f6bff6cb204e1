from collections.abc import Callable
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# Batches in a row from `start` on that are sound, no markers, of this leader epoch, and in line: offsets from `due` on
# that end before `end`. `position` is that of `start` in the file. Their records are looked into if `unfold` is given,
# which is called with a codec and a block, and gives the bytes in it, or None where it is damaged. How many bytes the
# batches have; the offset that is due behind them; position, first offset, span and what was due of the last few; and
# lines, if these are wanted. There may be more of these batches behind some megabytes of lines.
def walk(
    data: Buffer,
    start: int,
    position: int,
    due: int,
    end: int,
    leader_epoch: int,
    unfold: Callable[[int, bytes], bytes | None] | None,
    lines: bool,
    /,
) -> tuple[int, int, list[tuple[int, int, int, int]], str]: ...
