"""Messages of the formats before record batches (magic 0 and 1), recognised so that they can be refused by name.

    offset i64 | size i32 | crc u32 | magic i8 @16 | attributes i8 @17 | timestamp i64 (magic 1) | key | value

The magic lies at the same byte in all formats. Kafka 4 refuses these formats on produce and no longer converts to them
on fetch; logs that hold them are from before 2017 and must be rewritten by a Kafka that still reads them.
"""

from __future__ import annotations

import struct
from typing import Final

from ottla.records.batch import COMPRESSION_MASK, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, Readable
from ottla.records.compression import NAMES

MAGIC_MAX: Final = 1
#: Checksum, magic, attributes and two lengths: the least that the size field of a message of magic 0 can say.
SIZE_MIN: Final = 14
#: Up to here a message or batch can be told apart.
BYTES_TO_MAGIC: Final = MAGIC_AT + 1

_SIZE: Final = struct.Struct(">i")
_ATTRIBUTES_AT: Final = 17


def magic_at(buf: Readable, pos: int) -> int | None:
    """The format of what lies at `pos`, or None where too little of it is there to know."""
    if len(buf) - pos < BYTES_TO_MAGIC:
        return None
    magic = buf[pos + MAGIC_AT]
    return magic if magic < 128 else magic - 256


def is_legacy(buf: Readable, pos: int) -> bool:
    """Whether a message of magic 0 or 1 lies at `pos`, judged by its magic and a size that it can have."""
    magic = magic_at(buf, pos)
    if magic is None or not 0 <= magic <= MAGIC_MAX:
        return False
    (size,) = _SIZE.unpack_from(buf, pos + LENGTH_AT)
    return bool(size >= SIZE_MIN + 8 * magic)


def describe(buf: Readable, pos: int, end: int) -> str:
    """Words for people about the old messages from `pos` to `end`: their number, format and codec."""
    magic = magic_at(buf, pos)
    codec = buf[pos + _ATTRIBUTES_AT] & COMPRESSION_MASK if len(buf) - pos > _ATTRIBUTES_AT else 0
    count = 0
    while pos < end and is_legacy(buf, pos):
        (size,) = _SIZE.unpack_from(buf, pos + LENGTH_AT)
        pos += LOG_OVERHEAD + size
        count += 1
    noun = f"{count} messages" if count > 1 else "a message"
    return f"{noun} of the old format {magic}, compression {NAMES.get(codec, codec)}"
