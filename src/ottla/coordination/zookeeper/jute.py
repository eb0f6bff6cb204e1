"""Jute, the encoding of ZooKeeper's messages: big-endian numbers, and lengths before what varies.

A text, a buffer and a vector begin with their length or count as an int32, where -1 stands for null. This project
knows it of buffers alone (NO_DATA): elsewhere null is read as empty, and empty is what is written. Texts are UTF-8.
What stands behind the last field that a reader knows is left alone, as in ZooKeeper, where newer versions append
fields.

Lengths and counts come from elsewhere and may lie. Each is compared with the bytes that remain before anything is
allocated for it, so that a message never costs more memory than a small multiple of its own size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from ottla.coordination.interface import NO_DATA

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
#: What a text, a buffer, a vector or a frame has at least: its length.
LENGTH_BYTES: Final = 4
#: As a length or a count.
_NULL: Final = -1

T = TypeVar("T")


def put_xid(frame: bytearray, xid: int) -> None:
    """Into a request's frame that was made before, behind its length."""
    _INT.pack_into(frame, LENGTH_BYTES, xid)


class JuteFault(Exception):
    """These bytes are not the message that they should be."""


def frame_length(buffer: bytes | bytearray, position: int) -> int:
    """What the frame that starts there says of its length; it may lie. Its first four bytes are there."""
    return frame_xid(buffer, position)


def frame_xid(buffer: bytes | bytearray, position: int) -> int:
    """The number behind the length. Its four bytes are there."""
    return _INT.unpack_from(buffer, position)[0]  # type: ignore[no-any-return]


class JuteReader:
    """Reads fields from the front of a buffer. Raises JuteFault where there is not what there should be."""

    __slots__ = ("_buffer", "_end", "_position")

    def __init__(self, buffer: bytes | bytearray | memoryview, position: int = 0) -> None:
        self._buffer = buffer
        #: 0 <= position <= end
        self._position = position
        self._end = len(buffer)

    @property
    def remaining(self) -> int:
        return self._end - self._position

    def fields(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Several numbers at once."""
        try:
            found = layout.unpack_from(self._buffer, self._position)
        except struct.error:
            raise JuteFault(f"a field of {layout.size} bytes where {self.remaining} are left") from None
        self._position += layout.size
        return found

    def int32(self) -> int:
        return self.fields(_INT)[0]  # type: ignore[no-any-return]

    def int64(self) -> int:
        return self.fields(_LONG)[0]  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def data(self) -> bytes:
        length = self.int32()
        return NO_DATA if length == _NULL else self._take(self._checked(length))

    def text(self) -> str:
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError as error:
            raise JuteFault(f"a text that is not UTF-8: {error.reason}") from None

    def texts(self) -> list[str]:
        return self.vector(JuteReader.text, LENGTH_BYTES)

    def vector(self, read: Callable[[JuteReader], T], size_min: int, count_max: int | None = None) -> list[T]:
        """A vector whose elements have at least `size_min` bytes each; it has a bound where more are never meant."""
        count = self.int32()
        if count == _NULL:
            return []
        if count < 0 or count * size_min > self.remaining:
            raise JuteFault(f"a vector of {count} elements where {self.remaining} bytes are left")
        if count_max is not None and count > count_max:
            raise JuteFault(f"a vector of {count} elements: {count_max} are the limit")
        return [read(self) for _ in range(count)]

    def _length(self) -> int:
        length = self.int32()
        return 0 if length == _NULL else self._checked(length)

    @staticmethod
    def _checked(length: int) -> int:
        if length < 0:
            raise JuteFault(f"a length of {length}")
        return length

    def _take(self, length: int) -> bytes:
        start = self._position
        if length > self._end - start:
            raise JuteFault(f"a field of {length} bytes where {self._end - start} are left")
        self._position = start + length
        return bytes(self._buffer[start : start + length])


class JuteWriter:
    """Collects fields; `frame` then gives all of them behind their length."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray(LENGTH_BYTES)

    def __len__(self) -> int:
        """Bytes of the fields, without the frame's length."""
        return len(self._bytes) - LENGTH_BYTES

    def fields(self, layout: struct.Struct, *values: Any) -> None:
        self._bytes += layout.pack(*values)

    def int32(self, value: int) -> None:
        self._bytes += _INT.pack(value)

    def int64(self, value: int) -> None:
        self._bytes += _LONG.pack(value)

    def boolean(self, value: bool) -> None:
        self._bytes.append(1 if value else 0)

    def data(self, value: bytes) -> None:
        self._bytes += _INT.pack(_NULL if value is NO_DATA else len(value))
        self._bytes += value

    def text(self, value: str) -> None:
        self.data(value.encode())

    def texts(self, values: Iterable[str]) -> None:
        self.vector(values, JuteWriter.text)

    def vector(self, values: Iterable[T], write: Callable[[JuteWriter, T], None]) -> None:
        elements = list(values)
        self.int32(len(elements))
        for element in elements:
            write(self, element)

    def body(self) -> bytes:
        """The fields alone."""
        return bytes(self._bytes[LENGTH_BYTES:])

    def frame(self) -> bytes:
        _INT.pack_into(self._bytes, 0, len(self))
        return bytes(self._bytes)
