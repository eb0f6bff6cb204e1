"""Log entries of Kafka 0.7 and before, from files that end in `.kafka`: read, and never written.

    entry of N bytes of payload     length i32 = N + 5 | magic i8 = 0 | crc u32 | payload
    the same since compression      length i32 = N + 6 | magic i8 = 1 | attributes i8 | crc u32 | payload

The checksum is CRC-32 of the payload alone. There are no keys, no timestamps and no offsets: the address of a message
is the byte at which its entry begins, counted over all files of the partition, each of which bears the address of its
first byte as its name. Two bits of the attributes name a codec (1 gzip, 2 snappy); the payload of such an entry holds
entries again, which have no addresses of their own: consumers went on behind the whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.records.batch import Readable
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, GZIP, NONE, SNAPPY, decompress
from ottla.records.errors import CorruptBatch, UnsupportedCodec, UnsupportedMagic

LENGTH_SIZE: Final = 4
#: Magic and checksum; one byte more with attributes.
_HEADER_SIZES: Final = (5, 6)
LENGTH_MIN: Final = _HEADER_SIZES[0]
_CODEC_MASK: Final = 0x03

_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")


class FirstMessage(NamedTuple):
    #: The byte of the partition at which its entry begins; an inner message has its wrapper's.
    offset: int
    #: The same in this file.
    position: int
    #: Of its entry, the length included.
    size: int
    magic: int
    codec: int
    crc: int
    #: Whether the checksum is right.
    is_valid: bool
    payload: bytes


def entry_length(buf: Readable, pos: int) -> int:
    """What the entry at `pos` says; no word about whether it can be."""
    length: int = _LENGTH.unpack_from(buf, pos)[0]
    return length


def parse_first_message(buf: Readable, pos: int, base: int, position: int) -> FirstMessage:
    """The entry at `pos` of `buf`, all of which must be there; raises CorruptBatch or UnsupportedMagic.

    `position` is its place in the file, and `base` the address of the file's first byte.
    """
    left = len(buf) - pos
    if left < LENGTH_SIZE:
        raise CorruptBatch(f"{left} bytes are left, and a length has {LENGTH_SIZE}")
    length = entry_length(buf, pos)
    if length < LENGTH_MIN:
        raise CorruptBatch(f"its length {length} is less than {LENGTH_MIN}")
    if length > left - LENGTH_SIZE:
        raise CorruptBatch(f"it has {length} bytes, and {left - LENGTH_SIZE} are left")
    start = pos + LENGTH_SIZE
    magic = buf[start]
    if magic >= len(_HEADER_SIZES):
        raise UnsupportedMagic(f"its format (magic) is {magic}, and Kafka 0.7 had 0 and 1")
    header = _HEADER_SIZES[magic]
    if length < header:
        raise CorruptBatch(f"its length {length} is less than {header}")
    codec = buf[start + 1] & _CODEC_MASK if magic else NONE
    (crc,) = _CRC.unpack_from(buf, start + header - _CRC.size)
    payload = bytes(buf[start + header : start + length])
    return FirstMessage(
        base + position, position, LENGTH_SIZE + length, magic, codec, crc, zlib.crc32(payload) == crc, payload
    )


def unfold_first(message: FirstMessage, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[FirstMessage]:
    """The message itself, or those in it; raises RecordError."""
    if message.codec == NONE:
        yield message
        return
    if message.codec not in {GZIP, SNAPPY}:
        raise UnsupportedCodec(f"the codec {message.codec} did not exist in Kafka 0.7")
    data = bytes(decompress(message.codec, message.payload, bytes_max))
    if not data:
        raise CorruptBatch("a compressed message has none in it")
    at = 0
    while at < len(data):
        inner = parse_first_message(data, at, 0, at)
        if inner.codec != NONE:
            raise CorruptBatch("a compressed message has another one in it")
        if not inner.is_valid:
            raise CorruptBatch(f"the checksum of the inner message at byte {at} is wrong")
        yield inner._replace(offset=message.offset, position=message.position)
        at += inner.size
