"""A log file gone through piece by piece in compiled code, to make its indexes anew: none of it under the interpreter's
lock, which the loop would wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.native import compiled_indexed
from ottla.ports import File
from ottla.storage.log.batch_walk import CHUNK_BYTES
from ottla.storage.log.indexes.offset_index import OffsetIndex
from ottla.storage.log.indexes.time_index import TimeIndex

#: Read at once where batches are small; where they are large, some kilobytes with the header of each.
PIECE_BYTES: Final = 256 * 1024


class IndexState(NamedTuple):
    """What is known where the next batch begins."""

    position: int
    next_offset: int
    #: Bytes since the batch of the last entry, that one included.
    since_index: int
    #: The largest timestamp (-1: none), and the last offset of the batch that has it.
    max_timestamp: int
    max_timestamp_offset: int


#: `walk` of `native/indexed.c`.
Walk = Callable[
    [bytes, int, int, int, int, tuple[int, ...]], tuple[tuple[int, int, int, int, int], bytes, bytes, bytes, bytes]
]
_COMPILED: Final = compiled_indexed()
COMPILED_WALK: Final[Walk | None] = None if _COMPILED is None else _COMPILED.walk


def gone_through(
    file: File, end: int, base_offset: int, interval: int, offsets: OffsetIndex, times: TimeIndex
) -> IndexState:
    """Adds the entries of a file of `end` bytes to empty indexes, up to the first batch that is not sound, or to the
    end; the beginning, where nothing is compiled."""
    state = IndexState(0, base_offset, 0, -1, -1)
    walk, piece_bytes = COMPILED_WALK, CHUNK_BYTES
    while walk is not None and state.position < end:
        piece = file.read(min(piece_bytes, end - state.position), state.position)
        last_time = times.timestamps[-1] if times.timestamps else -1
        following, relatives, positions, timestamps, time_relatives = walk(
            piece, end, base_offset, interval, last_time, state
        )
        if following[0] == state.position:
            break
        offsets.positions.frombytes(positions)
        offsets.offsets.frombytes(relatives)
        times.timestamps.frombytes(timestamps)
        times.offsets.frombytes(time_relatives)
        is_dense = following[0] - state.position <= len(piece) + CHUNK_BYTES
        piece_bytes = PIECE_BYTES if is_dense else CHUNK_BYTES
        state = IndexState._make(following)
    return state
