"""The pieces that every message consists of: varints, strings, byte strings, counts of arrays and tagged fields.

Readers take `(buf, pos, limit)` and return `(value, position behind it)`; `limit` is the end of what may be read, which
inside a tagged field is the end of that field. Fixed-size numbers are not here: generated code reads runs of them with
one precompiled `struct.Struct`. A read past the end of `buf` shows as IndexError or struct.error, which a message's
`decode` turns into DecodeError; whatever slices must compare with `limit` first, because a slice never complains.

Writers append to a bytearray. "Compact" forms are those of flexible versions: the length plus one as an unsigned
varint, with 0 for null.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from ottla.protocol.errors import DecodeError, EncodeError

#: What messages are decoded from, and what their byte fields are.
Buffer = bytes | memoryview
#: What the hand-written codecs read: also a pooled receive buffer itself.
HotBuffer = bytes | bytearray | memoryview

#: Kafka writes a string's length as int16, and keeps that bound where the length is a varint.
STRING_BYTES_MAX: Final = 0x7FFF
#: Of one character.
_UTF8_BYTES_MAX: Final = 4
#: Lengths are Java ints.
LENGTH_MAX: Final = 0x7FFF_FFFF
#: Tagged fields that a struct, or a header, may hold. Kafka defines three at most in any struct; without a bound a
#: frame of 100 MB could hold fifty million of two bytes in one place, each of which becomes an entry of a dict.
TAGS_MAX: Final = 64
#: Bytes of one tagged field: Kafka's longest are some hundred. What is unknown is kept, and without a bound a frame of
#: 100 MB could be copied in one piece.
TAG_BYTES_MAX: Final = 1024 * 1024

#: The `unknown_tags` of every message without any: shared, therefore read-only.
NO_TAGS: Final[Mapping[int, bytes]] = MappingProxyType({})
#: Stands for "a new empty list" as a parameter's default; never stored in a message.
EMPTY_LIST: Final[list[Any]] = []
NULL_COUNT: Final = b"\xff\xff\xff\xff"
ZERO_UUID: Final = bytes(16)

#: What reading garbage raises inside a decoder, besides DecodeError.
DECODE_FAULTS: Final = (IndexError, struct.error)
#: What writing values of a wrong type or range raises inside an encoder, besides EncodeError.
ENCODE_FAULTS: Final = (struct.error, TypeError, AttributeError, UnicodeEncodeError, ValueError)

_unpack_int16 = struct.Struct(">h").unpack_from
_unpack_int32 = struct.Struct(">i").unpack_from
_pack_int16 = struct.Struct(">h").pack
_pack_int32 = struct.Struct(">i").pack
_unpack_from = struct.unpack_from
_pack = struct.pack


def read_uvarint(buf: HotBuffer, pos: int) -> tuple[int, int]:
    """Reads an unsigned varint of at most five bytes, whose value fits a Java int."""
    value = buf[pos]
    pos += 1
    if value < 0x80:
        return value, pos
    value &= 0x7F
    shift = 7
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("a varint of more than five bytes")
    if value > LENGTH_MAX:
        raise DecodeError(f"a varint of {value}, beyond a 32-bit integer")
    return value, pos


def put_uvarint(out: bytearray, value: int) -> None:
    if value < 0 or value > LENGTH_MAX:
        raise EncodeError(f"{value} does not fit an unsigned varint of a length")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def uvarint(value: int) -> bytes:
    """An unsigned varint by itself, of a number that is not negative."""
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7)) if value > 0x7F else bytes((value,))
    out = bytearray()
    put_uvarint(out, value)
    return bytes(out)


def uvarint_size(value: int) -> int:
    """The bytes that an unsigned varint takes."""
    return max(1, (value.bit_length() + 6) // 7)


def find_compact_length(buf: HotBuffer, pos: int, limit: int) -> tuple[int, int]:
    """A length as an unsigned varint that counts from 1, and the position behind it; a length of -1 where the varint
    does not end in time. Raises nothing."""
    value = shift = 0
    while pos < limit and shift < 35:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, pos
        shift += 7
    return -1, pos


# Strings. Bytes that are no UTF-8 are read as Java does it, with U+FFFD in their place: a client whose id is Latin-1 is
# served, and a name of such is one that nobody has.


def read_string(buf: HotBuffer, pos: int, limit: int) -> tuple[str, int]:
    (length,) = _unpack_int16(buf, pos)
    pos += 2
    end = pos + length
    if length < 0 or end > limit:
        raise _bad_length("string", length, limit - pos)
    try:
        return str(buf[pos:end], "utf-8"), end
    except UnicodeDecodeError:
        return _replaced(buf[pos:end]), end


def read_nullable_string(buf: HotBuffer, pos: int, limit: int) -> tuple[str | None, int]:
    (length,) = _unpack_int16(buf, pos)
    pos += 2
    if length < 0:
        return None, pos
    end = pos + length
    if end > limit:
        raise _bad_length("string", length, limit - pos)
    try:
        return str(buf[pos:end], "utf-8"), end
    except UnicodeDecodeError:
        return _replaced(buf[pos:end]), end


def read_compact_string(buf: HotBuffer, pos: int, limit: int) -> tuple[str, int]:
    length = buf[pos]
    pos += 1
    if length > 0x7F:
        length, pos = read_uvarint(buf, pos - 1)
    end = pos + length - 1
    if length == 0 or end > limit or length > STRING_BYTES_MAX + 1:
        raise _bad_length("string", length - 1, limit - pos)
    try:
        return str(buf[pos:end], "utf-8"), end
    except UnicodeDecodeError:
        return _replaced(buf[pos:end]), end


def read_compact_nullable_string(buf: HotBuffer, pos: int, limit: int) -> tuple[str | None, int]:
    if buf[pos] == 0:
        return None, pos + 1
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        return None, pos
    end = pos + length - 1
    if end > limit or length > STRING_BYTES_MAX + 1:
        raise _bad_length("string", length - 1, limit - pos)
    try:
        return str(buf[pos:end], "utf-8"), end
    except UnicodeDecodeError:
        return _replaced(buf[pos:end]), end


def _replaced(raw: HotBuffer) -> str:
    """A bad byte becomes three in an answer, or in a record, where the same bound holds."""
    text = str(raw, "utf-8", "replace")
    size = len(text.encode())
    if size > STRING_BYTES_MAX:
        raise DecodeError(f"a string that is no UTF-8, and of {size} bytes where it is made some")
    return text


def put_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    if len(raw) > STRING_BYTES_MAX:
        raise EncodeError(f"a string of {len(raw)} bytes is longer than {STRING_BYTES_MAX}")
    out += _pack_int16(len(raw))
    out += raw


def put_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        put_string(out, value)


def put_compact_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    length = len(raw)
    if length < 0x7F:
        out.append(length + 1)
    elif length > STRING_BYTES_MAX:
        raise EncodeError(f"a string of {length} bytes is longer than {STRING_BYTES_MAX}")
    else:
        put_uvarint(out, length + 1)
    out += raw


def put_compact_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        put_compact_string(out, value)


_Text = TypeVar("_Text", str, str | None)


def shortened(value: _Text) -> _Text:
    """A text, as much of it as a string may have."""
    if value is None or len(value) <= STRING_BYTES_MAX // _UTF8_BYTES_MAX:
        return value
    return value.encode()[:STRING_BYTES_MAX].decode(errors="ignore")


# Byte strings and records. A slice of a memoryview stays a view; a slice of bytes is a copy.


def read_bytes(buf: Buffer, pos: int, limit: int) -> tuple[Buffer, int]:
    (length,) = _unpack_int32(buf, pos)
    pos += 4
    end = pos + length
    if length < 0 or end > limit:
        raise _bad_length("byte string", length, limit - pos)
    return buf[pos:end], end


def read_nullable_bytes(buf: Buffer, pos: int, limit: int) -> tuple[Buffer | None, int]:
    (length,) = _unpack_int32(buf, pos)
    pos += 4
    if length < 0:
        return None, pos
    end = pos + length
    if end > limit:
        raise _bad_length("byte string", length, limit - pos)
    return buf[pos:end], end


def read_compact_bytes(buf: Buffer, pos: int, limit: int) -> tuple[Buffer, int]:
    length, pos = read_uvarint(buf, pos)
    end = pos + length - 1
    if length == 0 or end > limit:
        raise _bad_length("byte string", length - 1, limit - pos)
    return buf[pos:end], end


def read_compact_nullable_bytes(buf: Buffer, pos: int, limit: int) -> tuple[Buffer | None, int]:
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        return None, pos
    end = pos + length - 1
    if end > limit:
        raise _bad_length("byte string", length - 1, limit - pos)
    return buf[pos:end], end


def put_bytes(out: bytearray, value: Buffer) -> None:
    out += _pack_int32(len(value))
    out += value


def put_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _pack_int32(len(value))
        out += value


def put_compact_bytes(out: bytearray, value: Buffer) -> None:
    put_uvarint(out, len(value) + 1)
    out += value


def put_compact_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(0)
    else:
        put_uvarint(out, len(value) + 1)
        out += value


# Counts of arrays. `least` is the smallest number of bytes one element can have: a count that the remaining bytes
# cannot hold is refused before anything is allocated. A nullable count of -1 is a null array.


def read_count(buf: HotBuffer, pos: int, limit: int, least: int) -> tuple[int, int]:
    (count,) = _unpack_int32(buf, pos)
    pos += 4
    if count < 0 or count * least > limit - pos:
        raise _bad_count(count, limit - pos)
    return count, pos


def read_nullable_count(buf: HotBuffer, pos: int, limit: int, least: int) -> tuple[int, int]:
    (count,) = _unpack_int32(buf, pos)
    pos += 4
    if count < 0:
        return -1, pos
    if count * least > limit - pos:
        raise _bad_count(count, limit - pos)
    return count, pos


def read_compact_count(buf: HotBuffer, pos: int, limit: int, least: int) -> tuple[int, int]:
    count = buf[pos] - 1
    pos += 1
    if count > 0x7E:
        count, pos = read_uvarint(buf, pos - 1)
        count -= 1
    if count < 0 or count * least > limit - pos:
        raise _bad_count(count, limit - pos)
    return count, pos


def read_compact_nullable_count(buf: HotBuffer, pos: int, limit: int, least: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    count -= 1
    if count > 0 and count * least > limit - pos:
        raise _bad_count(count, limit - pos)
    return count, pos


def put_count(out: bytearray, count: int) -> None:
    out += _pack_int32(count)


def put_compact_count(out: bytearray, count: int) -> None:
    if count < 0x7F:
        out.append(count + 1)
    else:
        put_uvarint(out, count + 1)


def read_numbers(buf: HotBuffer, pos: int, count: int, code: str, size: int) -> tuple[list[Any], int]:
    """Reads `count` numbers (or UUIDs) of one `struct` format at once."""
    if count == 1:
        return list(_unpack_from(f">{code}", buf, pos)), pos + size
    if code == "16s":
        return [bytes(buf[at : at + 16]) for at in range(pos, pos + 16 * count, 16)], pos + 16 * count
    return list(_unpack_from(f">{count}{code}", buf, pos)), pos + size * count


def put_numbers(out: bytearray, values: list[Any], code: str) -> None:
    if code == "16s":
        for value in values:
            put_uuid(out, value)
    else:
        out += _pack(f">{len(values)}{code}", *values)


def put_uuid(out: bytearray, value: bytes) -> None:
    if len(value) != 16:
        raise EncodeError(f"an id of {len(value)} bytes instead of 16")
    out += value


def uuid_bytes(value: bytes) -> bytes:
    """Passes an id through, for a packed run: `struct` would pad a short one in silence."""
    if len(value) != 16:
        raise EncodeError(f"an id of {len(value)} bytes instead of 16")
    return value


# Tagged fields.


def read_tags(buf: HotBuffer, pos: int, limit: int) -> tuple[Mapping[int, bytes], int]:
    """Reads the tagged fields of a structure that defines none: all are kept as they are."""
    if buf[pos] == 0:
        return NO_TAGS, pos + 1
    count, pos = read_tag_count(buf, pos, limit)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, pos, end = read_tag(buf, pos, limit)
        tags[tag] = bytes(buf[pos:end])
        pos = end
    return tags or NO_TAGS, pos


def skip_tags(buf: HotBuffer, pos: int, limit: int) -> int:
    """Goes over tagged fields that nobody asks for; they are checked all the same."""
    if buf[pos] == 0:
        return pos + 1
    count, pos = read_tag_count(buf, pos, limit)
    for _ in range(count):
        _, _, pos = read_tag(buf, pos, limit)
    return pos


def read_tag_count(buf: HotBuffer, pos: int, limit: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    if count * 2 > limit - pos:  # a tag and a size take a byte each
        raise _bad_count(count, limit - pos)
    if count > TAGS_MAX:
        raise DecodeError(f"{count} tagged fields in one place, which holds {TAGS_MAX} at most")
    return count, pos


def read_tag(buf: HotBuffer, pos: int, limit: int) -> tuple[int, int, int]:
    """Reads a tagged field's number and size; returns the number, where the field begins and where it ends."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    end = pos + size
    if end > limit:
        raise _bad_length("tagged field", size, limit - pos)
    if size > TAG_BYTES_MAX:
        raise DecodeError(f"a tagged field of {size} bytes, which has {TAG_BYTES_MAX} at most")
    return tag, pos, end


def put_tags(
    out: bytearray, known: list[tuple[int, bytearray]], unknown: Mapping[int, bytes], defined: Container[int]
) -> None:
    """Writes tagged fields in the order of their numbers; those in `defined` may not be among the unknown ones."""
    if unknown:
        fields: list[tuple[int, bytearray | bytes]] = [*known, *unknown.items()]
        fields.sort(key=_tag_number)
        if len(fields) > TAGS_MAX:
            raise EncodeError(f"{len(fields)} tagged fields in one place, which holds {TAGS_MAX} at most")
        put_uvarint(out, len(fields))
        for tag in unknown:
            if tag in defined:
                raise EncodeError(f"tag {tag} is a defined field, not an unknown one")
        for tag, value in fields:
            _put_tag(out, tag, value)
    else:
        put_uvarint(out, len(known))
        for tag, value in known:
            _put_tag(out, tag, value)


def _tag_number(field: tuple[int, bytearray | bytes]) -> int:
    return field[0]


def _put_tag(out: bytearray, tag: int, value: bytearray | bytes) -> None:
    put_uvarint(out, tag)
    put_uvarint(out, len(value))
    out += value


# Errors, built only when they are needed.


def _bad_length(what: str, length: int, rest: int) -> DecodeError:
    if length < 0:
        return DecodeError(f"a {what} of length {length} where none may be null")
    return DecodeError(f"a {what} of {length} bytes with {rest} bytes left")


def _bad_count(count: int, rest: int) -> DecodeError:
    if count < 0:
        return DecodeError("a null array where none may be null")
    return DecodeError(f"an array of {count} elements with {rest} bytes left")
