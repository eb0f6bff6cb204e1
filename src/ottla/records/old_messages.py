"""Messages of magic 0 and 1, as Kafka 0.8 to 0.10 stored them: read from old logs, and never written.

    entry     offset i64 | size i32 | message of `size` bytes
    message   crc u32 | magic i8 | attributes i8 | timestamp i64 (magic 1 only) | key | value

A key or a value is a length of four bytes and so many bytes; -1 is null. The checksum is CRC-32 of everything behind
it. Three bits of the attributes name a codec, and one of magic 1 says that the broker set the timestamp.

A compressed message, the *wrapper*, has entries for its value. Those of magic 0 have their own offsets; those of magic
1 count from the first of them, and the wrapper has the offset of the last. So an inner offset is

    magic 0   as it stands
    magic 1   wrapper's offset - last inner offset + inner offset

Every length is compared with what is left before anything is cut out, and a block unfolds to a bound at most.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.records.batch import COMPRESSION_MASK, LOG_OVERHEAD, Readable
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, GZIP, LZ4, NAMES, NONE, SNAPPY, decompress
from ottla.records.errors import CorruptBatch, UnsupportedCodec, UnsupportedMagic
from ottla.records.legacy import SIZE_MIN
from ottla.records.xxhash32 import xxhash32_short

#: Of a message that has none, as Kafka's tools print it.
NO_TIMESTAMP: Final = -1
LOG_APPEND_TIME_FLAG: Final = 0x08

_ENTRY: Final = struct.Struct(">qi")
_HEAD: Final = struct.Struct(">Ibb")
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_CRC_SIZE: Final = 4

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
#: Set in the first byte of an lz4 frame's descriptor where it has the length of the whole, of eight bytes.
_LZ4_HAS_SIZE: Final = 0x08


class OldMessage(NamedTuple):
    offset: int
    #: Of its entry in the file; an inner message has its wrapper's.
    position: int
    #: Of its entry, offset and size included.
    size: int
    crc: int
    #: Whether the checksum is right.
    is_valid: bool
    magic: int
    attributes: int
    #: NO_TIMESTAMP for magic 0.
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_wrapper(self) -> bool:
        return self.codec != NONE

    @property
    def timestamp_type(self) -> str:
        """In the words of Kafka's tools."""
        if self.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.attributes & LOG_APPEND_TIME_FLAG else "CreateTime"


def message_size(buf: Readable, pos: int) -> int:
    """Of the entry at `pos`, whose first twelve bytes must be there; no word about whether it can be."""
    size: int = _ENTRY.unpack_from(buf, pos)[1]
    return LOG_OVERHEAD + size


def parse_message(buf: Readable, pos: int, position: int) -> OldMessage:
    """The entry at `pos` of `buf`, all of which must be there; `position` is its place in the file.

    Raises CorruptBatch or UnsupportedMagic. A wrong checksum is no error here, as long as the lengths agree.
    """
    left = len(buf) - pos
    if left < LOG_OVERHEAD:
        raise CorruptBatch(f"{left} bytes are left, and offset and size have {LOG_OVERHEAD}")
    offset, size = _ENTRY.unpack_from(buf, pos)
    if size < SIZE_MIN:
        raise CorruptBatch(f"its size {size} is less than a message's")
    if size > left - LOG_OVERHEAD:
        raise CorruptBatch(f"it has {size} bytes, and {left - LOG_OVERHEAD} are left")
    start = pos + LOG_OVERHEAD
    end = start + size
    crc, magic, attributes = _HEAD.unpack_from(buf, start)
    if not 0 <= magic <= 1:
        raise UnsupportedMagic(f"the format (magic) of a message is {magic}, where 0 or 1 is due")
    at, timestamp = start + _HEAD.size, NO_TIMESTAMP
    if magic == 1:
        if size < SIZE_MIN + _TIMESTAMP.size:
            raise CorruptBatch(f"its size {size} is less than that of a message with a timestamp")
        (timestamp,) = _TIMESTAMP.unpack_from(buf, at)
        at += _TIMESTAMP.size
    is_valid = zlib.crc32(memoryview(buf)[start + _CRC_SIZE : end]) == crc
    key, at = _bytes(buf, at, end, "key")
    value, at = _bytes(buf, at, end, "value")
    if at != end:
        raise CorruptBatch(f"{end - at} bytes follow its value")
    return OldMessage(
        offset, position, LOG_OVERHEAD + size, crc, is_valid, magic, attributes & 0xFF, timestamp, key, value
    )


def _bytes(buf: Readable, at: int, end: int, what: str) -> tuple[bytes | None, int]:
    if end - at < _LENGTH.size:
        raise CorruptBatch(f"{end - at} bytes are left, and the length of its {what} has {_LENGTH.size}")
    (length,) = _LENGTH.unpack_from(buf, at)
    at += _LENGTH.size
    if length == -1:
        return None, at
    if not 0 <= length <= end - at:
        raise CorruptBatch(f"its {what} has {length} bytes, and {end - at} are left")
    return bytes(buf[at : at + length]), at + length


def unfold(message: OldMessage, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[OldMessage]:
    """The message itself, or what its wrapper has in it, with offsets as consumers see them; raises RecordError."""
    if not message.is_wrapper:
        yield message
        return
    inner = _inner_messages(message, bytes_max)
    if not inner:
        raise CorruptBatch("a compressed message has none in it")
    first = 0 if message.magic == 0 else message.offset - inner[-1].offset
    broker_time = message.attributes & LOG_APPEND_TIME_FLAG
    for one in inner:
        if one.is_wrapper:
            raise CorruptBatch("a compressed message has another one in it")
        if one.magic != message.magic:
            raise CorruptBatch(f"a message of format {message.magic} has one of format {one.magic} in it")
        if not one.is_valid:
            raise CorruptBatch(f"the checksum of the inner message {one.offset} is wrong")
        attributes, timestamp = one.attributes, one.timestamp
        if broker_time and message.magic == 1:
            attributes, timestamp = attributes | LOG_APPEND_TIME_FLAG, message.timestamp
        yield one._replace(
            offset=first + one.offset, position=message.position, attributes=attributes, timestamp=timestamp
        )


def _inner_messages(wrapper: OldMessage, bytes_max: int) -> list[OldMessage]:
    if wrapper.value is None:
        raise CorruptBatch("a compressed message has no value")
    data = _unfolded(wrapper, bytes_max)
    messages, at = [], 0
    while at < len(data):
        inner = parse_message(data, at, at)
        messages.append(inner)
        at += inner.size
    return messages


def _unfolded(wrapper: OldMessage, bytes_max: int) -> bytes:
    assert wrapper.value is not None
    if wrapper.codec not in {GZIP, SNAPPY, LZ4}:
        name = NAMES.get(wrapper.codec, str(wrapper.codec))
        raise UnsupportedCodec(f"the codec {name} does not exist in format {wrapper.magic}")
    value = wrapper.value
    if wrapper.codec == LZ4 and wrapper.magic == 0:
        value = _with_right_checksum(value)
    return bytes(decompress(wrapper.codec, value, bytes_max))


def _with_right_checksum(frame: bytes) -> bytes:
    """Kafka's first lz4 writer took the frame's magic into the sum of its header, which no other reader accepts."""
    at = len(_LZ4_MAGIC)
    if len(frame) <= at or not frame.startswith(_LZ4_MAGIC):
        return frame
    end = at + (10 if frame[at] & _LZ4_HAS_SIZE else 2)
    if end >= len(frame):
        return frame
    wrong = xxhash32_short(frame[:end]) >> 8 & 0xFF
    if frame[end] != wrong:
        return frame
    right = xxhash32_short(frame[at:end]) >> 8 & 0xFF
    return frame[:end] + bytes((right,)) + frame[end + 1 :]
