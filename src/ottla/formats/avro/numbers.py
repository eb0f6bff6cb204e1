"""Avro's numbers and what is as long as a number says: read out of bytes, with every length checked.

A reader is called with the bytes and a position, and gives the value and the position behind it. What reads beyond the
end raises IndexError, which becomes a BadRecord once for the whole record.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, TypeAlias

from ottla.formats.errors import BadRecord
from ottla.records.varint import read_varlong

Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

FLOAT: Final = Struct("<f")
DOUBLE: Final = Struct("<d")


def read_int(data: bytes, pos: int) -> tuple[int, int]:
    value, pos = read_varlong(data, pos)
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
    return FLOAT.unpack_from(data, pos)[0], pos + 4


def read_double(data: bytes, pos: int) -> tuple[float, int]:
    if pos + 8 > len(data):
        raise IndexError
    return DOUBLE.unpack_from(data, pos)[0], pos + 8


def read_bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_varlong(data, pos)
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


def number_of(raw: bytes) -> int:
    """The whole number that a decimal is, without its point."""
    return int.from_bytes(raw, "big", signed=True)


def bytes_of(number: int, size: int | None) -> bytes:
    """The way back, in so many bytes, or in as few as hold it with its sign; raises OverflowError."""
    if size is None:
        size = ((number + 1 if number < 0 else number).bit_length() + 8) // 8
    return number.to_bytes(size, "big", signed=True)


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
        index, end = read_varlong(data, pos)
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
    "long": read_varlong,
    "float": read_float,
    "double": read_double,
    "bytes": read_bytes,
    "string": read_string,
}
