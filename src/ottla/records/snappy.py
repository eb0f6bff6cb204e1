"""Snappy as Java writes it: a header and then length-prefixed blocks ("xerial framing"), each of them raw snappy.

Some clients write one raw block without the frame; Java's reader takes both, and so does this one.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.records.batch import Readable
from ottla.records.errors import CorruptBlock, DecompressionTooLarge

_MAGIC: Final = b"\x82SNAPPY\x00"
#: Magic, the framing's version, and the oldest version that can read it.
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_LENGTH: Final = struct.Struct(">i")
#: As in Kafka, whose readers hold one block in memory.
_BLOCK_BYTES: Final = 32 * 1024
#: A copy of 64 bytes takes 3: no block can claim to unfold to more, and a longer claim must not be allocated.
_RATIO_MAX: Final = 32


def compress(data: Readable) -> bytes:
    import cramjam

    parts = [_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _BLOCK_BYTES):
            with view[start : start + _BLOCK_BYTES] as piece:
                block = bytes(cramjam.snappy.compress_raw(piece))
            parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def decompress(data: Readable, max_size: int) -> bytes:
    """All blocks joined, at most `max_size` bytes; raises CorruptBlock or DecompressionTooLarge."""
    if bytes(data[: len(_MAGIC)]) != _MAGIC:
        return _raw_block(bytes(data), max_size, max_size)
    if len(data) < len(_HEADER):
        raise CorruptBlock("a snappy frame ends in its header")
    data = bytes(data)
    parts: list[bytes] = []
    budget = max_size
    pos = len(_HEADER)
    end = len(data)
    while pos < end:
        if data.startswith(_MAGIC, pos):  # a second stream behind the first
            pos += len(_HEADER)
            if pos > end:
                raise CorruptBlock("a snappy frame ends in its header")
            continue
        if end - pos < _LENGTH.size:
            raise CorruptBlock("a snappy frame ends in a block's length")
        (length,) = _LENGTH.unpack_from(data, pos)
        pos += _LENGTH.size
        if not 0 < length <= end - pos:
            raise CorruptBlock(f"a snappy block of {length} bytes has {end - pos} left")
        part = _raw_block(data[pos : pos + length], budget, max_size)
        budget -= len(part)
        parts.append(part)
        pos += length
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _raw_block(block: bytes, budget: int, max_size: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _RATIO_MAX:
            raise CorruptBlock(f"a snappy block of {len(block)} bytes claims to unfold to {size}")
        if size > budget:
            raise DecompressionTooLarge(f"the records decompress to more than the bound of {max_size} bytes")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptBlock(str(error)) from error
