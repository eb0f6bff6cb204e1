"""Avro's numbers and what is as long as a number says: read out of bytes, with every length checked.

A reader is called with the bytes and a position, and gives the value and the position behind it. What reads beyond the
end raises IndexError, which becomes a BadRecord once for the whole record.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, TypeAlias

from ottla.formats.errors import BadRecord

Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

#: Ten bytes hold 64 bits.
_SHIFT_MAX: Final = 63
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")


def read_long(data: bytes, pos: int) -> tuple[int, int]:
    byte = data[pos]
    pos += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos
    value = byte & 0x7F
    shift = 7
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > _SHIFT_MAX:
            raise BadRecord(f"a number of more than ten bytes at byte {pos}")
    if value >> 64:
        raise BadRecord(f"a number of more than 64 bits before byte {pos}")
    return (value >> 1) ^ -(value & 1), pos


def read_int(data: bytes, pos: int) -> tuple[int, int]:
    value, pos = read_long(data, pos)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise BadRecord(f"{value} is no int, before byte {pos}")
    return value, pos


def read_null(_data: bytes, pos: int) -> tuple[None, int]:
    return None, pos


def read_boolean(data: bytes, pos: int) -> tuple[bool, int]:
    byte = data[pos]
    if byte > 1:
        raise BadRecord(f"{byte} is no boolean, at byte {pos}")
    return byte == 1, pos + 1


def read_float(data: bytes, pos: int) -> tuple[float, int]:
    if pos + 4 > len(data):
        raise IndexError
    return _FLOAT.unpack_from(data, pos)[0], pos + 4


def read_double(data: bytes, pos: int) -> tuple[float, int]:
    if pos + 8 > len(data):
        raise IndexError
    return _DOUBLE.unpack_from(data, pos)[0], pos + 8


def read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_long(data, pos)
    end = pos + size
    if size < 0:
        raise BadRecord(f"a length of {size} before byte {pos}")
    if end > len(data):
        raise BadRecord(f"{size} bytes are announced at byte {pos}, and {len(data) - pos} are there")
    return data[pos:end], end


def read_string(data: bytes, pos: int) -> tuple[str, int]:
    raw, end = read_bytes(data, pos)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise BadRecord(f"no UTF-8 at byte {end - len(raw) + error.start}: {error.reason}") from None


def fixed_reader(size: int) -> Read:
    def read(data: bytes, pos: int) -> tuple[bytes, int]:
        end = pos + size
        if end > len(data):
            raise IndexError
        return data[pos:end], end

    return read


def enum_reader(symbols: tuple[str, ...], found: tuple[str | None, ...]) -> Read:
    """By the writer's symbols; `found` has what the reader takes each for, None where it takes it for nothing."""

    def read(data: bytes, pos: int) -> tuple[str, int]:
        index, end = read_long(data, pos)
        if not 0 <= index < len(found):
            raise BadRecord(f"there is no symbol {index} of {len(found)}, at byte {pos}")
        symbol = found[index]
        if symbol is None:
            raise BadRecord(f"the reader's enum has no symbol {symbols[index]!r}, and no default")
        return symbol, end

    return read


PRIMITIVE_READERS: Final[dict[str, Read]] = {
    "null": read_null,
    "boolean": read_boolean,
    "int": read_int,
    "long": read_long,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}
