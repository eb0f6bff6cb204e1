"""The outline of zstd data (RFC 8878): its frames and their blocks, without decompressing anything.

The library's streaming readers end quietly where the data is cut, and its one-shot reader trusts the size that a frame
claims. Walking the chain of block headers, three bytes for each 128 KiB, finds both out beforehand.
"""

from __future__ import annotations

from typing import Final

from ottla.records.batch import Readable
from ottla.records.errors import CorruptBlock

#: What Java's reader accepts too: the largest window of the ordinary levels (1 to 22).
WINDOW_BYTES_MAX: Final = 1 << 27
BLOCK_BYTES_MAX: Final = 128 * 1024

_FRAME_MAGIC: Final = 0xFD2FB528
_SKIPPABLE_MAGIC: Final = 0x184D2A50
_SKIPPABLE_MASK: Final = 0xFFFFFFF0
_RAW: Final = 0
_RLE: Final = 1
_RESERVED: Final = 3
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)


def size_bound(data: Readable) -> int:
    """The most that `data` can unfold to, judged by its blocks; raises CorruptBlock unless it is whole frames."""
    raw = bytes(data)
    if not raw:
        raise CorruptBlock("zstd: no frame")
    pos = bound = 0
    try:
        while pos < len(raw):
            magic = int.from_bytes(raw[pos : pos + 4], "little")
            if magic == _FRAME_MAGIC:
                pos, size = _frame(raw, pos + 4)
                bound += size
            elif magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
                pos += 8 + int.from_bytes(raw[pos + 4 : pos + 8], "little")
            else:
                raise CorruptBlock("zstd: unknown frame magic")
    except IndexError:
        pos = len(raw) + 1
    if pos > len(raw):
        raise CorruptBlock("zstd: a frame ends in its middle")
    return bound


def _frame(raw: bytes, pos: int) -> tuple[int, int]:
    """End and size bound of the frame whose descriptor is at `pos`."""
    descriptor = raw[pos]
    single_segment = descriptor >> 5 & 1
    content_size_bytes = _CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    pos += 1 + (1 - single_segment) + _DICTIONARY_BYTES[descriptor & 3]
    content_size = int.from_bytes(raw[pos : pos + content_size_bytes], "little")
    if content_size_bytes == 2:  # sizes below 256 take one byte, so two bytes count from there
        content_size += 256
    pos += content_size_bytes
    bound, last = 0, 0
    while not last:
        header = raw[pos] | raw[pos + 1] << 8 | raw[pos + 2] << 16
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED or size > BLOCK_BYTES_MAX:
            raise CorruptBlock("zstd: a block that cannot be")
        pos += 3 + (1 if kind == _RLE else size)
        bound += size if kind in {_RAW, _RLE} else BLOCK_BYTES_MAX
    if content_size_bytes:
        bound = min(bound, content_size)
    return pos + 4 * (descriptor >> 2 & 1), bound
