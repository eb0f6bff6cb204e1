"""Decoding and encoding in steps: what the stepped readers and writers of long messages share.

A frame may carry millions of elements, and one of three bytes becomes an object of two hundred. The functions of
`generated/*_steps.py` therefore read and write the same bytes as the plain ones, but as generators (see
`ottla.steps`), and readers ask a `DecodingAllowance` before they make anything. Structs of numbers and strings only are
still read by the plain functions, some dozens a step.

    memory   an array is charged for all its elements when its count is known and none exists; what differs from
             element to element (text, byte strings, tagged fields) is charged for each piece that was read
    time     a step ends after `PIECE` elements, and sooner after `PIECE_BYTES` of the frame

One byte string is one copy, and one step, however long: of a view it is a view, and a copy of 100 MB, which no
request of a client has a reason to carry, takes some ten milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ottla.protocol.errors import DecodeError
from ottla.protocol.primitives import NO_TAGS, Buffer, HotBuffer, put_numbers, read_numbers
from ottla.steps import Steps, pieces

if TYPE_CHECKING:
    from ottla.protocol.message import Structure

S = TypeVar("S", bound="Structure")
T = TypeVar("T")

#: What a request may hold in memory once it is decoded, besides its frame. A partition of ListOffsets takes 190
#: bytes and one of OffsetCommit 290: requests of 200,000 partitions, as many as a cluster of this size has, pass.
HELD_BYTES_MAX: Final = 64 << 20
#: Elements of a microsecond or less that make one step.
PIECE: Final = 32
#: Bytes of a frame behind which a step ends before it has all its elements: texts are long, and tagged fields take a
#: fifth of a microsecond a byte.
PIECE_BYTES: Final = 1024
#: The same of what is written: that is copied, at a gigabyte a second or more.
WRITTEN_BYTES: Final = 16384
#: Numbers are unpacked and packed by one call, at some 20 nanoseconds each.
NUMBERS_A_PIECE: Final = 1024
#: Arrays of structs that are read or written without a generator of their own, which costs as much as a struct.
FEW: Final = 4
#: Below this, text is charged as if it were of the widest characters: to look costs more than to read it.
LOOK_BYTES_MIN: Final = 80

#: Bytes of characters that make Python use two or four bytes for every character of their string; what is no UTF-8 is
#: read as U+FFFD, which takes two.
_WIDE = re.compile(rb"[\x80-\xff]").search
_WIDEST = re.compile(rb"[\xf0-\xf4]").search
#: The number that is an entry's key, and what allocations are rounded to.
_TAG_BYTES: Final = 64


class DecodingAllowance:
    """The memory that one request may still take, and the work that its decoder may do before others are served."""

    __slots__ = ("left", "most", "stop", "work")

    def __init__(self, most: int = HELD_BYTES_MAX) -> None:
        self.most = most
        #: Bytes. Generated code takes single strings and small arrays itself: too many are refused within a step.
        self.left = most
        #: Elements until the next step ends; the piece that reaches 0 may go below it.
        self.work = PIECE
        #: Where in the frame the next step ends at the latest.
        self.stop = 0

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise DecodeError(f"a request of more than {self.most} bytes of memory")

    def take_array(self, count: int, size: int) -> None:
        """Before any element is made."""
        self.left -= count * size
        if self.left < 0:
            raise DecodeError(f"an array of {count} elements takes the request beyond {self.most} bytes of memory")

    def take_tags(self, tags: Mapping[int, bytes]) -> None:
        if tags:
            self.take(getsizeof(tags) + sum(_TAG_BYTES + getsizeof(value) for value in tags.values()))

    def take_text(self, buf: Buffer, start: int, end: int) -> None:
        """For strings that stand between `start` and `end`, beside some numbers: as wide as they may be."""
        if end - start < LOOK_BYTES_MIN:
            self.take(4 * (end - start))
            return
        width = 1 if _WIDE(buf, start, end) is None else 2 if _WIDEST(buf, start, end) is None else 4
        self.take((end - start) * width)

    def due(self, pos: int) -> bool:
        """Whether a step ends behind this element, which ends at `pos`."""
        self.work -= 1
        if self.work > 0 and pos < self.stop:
            return False
        self.work = PIECE
        self.stop = pos + PIECE_BYTES
        self.take(0)
        return True


class Pace:
    """The work that an encoder may do before others are served."""

    __slots__ = ("work",)

    def __init__(self) -> None:
        self.work = PIECE

    def due(self) -> bool:
        """Whether a step ends behind this element."""
        self.work -= 1
        if self.work > 0:
            return False
        self.work = PIECE
        return True


# Arrays. Those of structs that themselves have arrays are loops in the generated code.


def read_structs(
    read: Callable[[Buffer, int, int, int], tuple[S, int]],
    buf: Buffer,
    pos: int,
    limit: int,
    version: int,
    count: int,
    allowance: DecodingAllowance,
    *,
    text: bool,
) -> Steps[tuple[list[S], int]]:
    """Structs of numbers and, where `text` says so, of strings: their plain reader is called for each."""
    items: list[S] = []
    append = items.append
    left = count
    while left > 0:
        start = pos
        item = None
        stop = pos + PIECE_BYTES
        for _ in range(min(left, PIECE)):
            item, pos = read(buf, pos, limit, version)
            append(item)
            if item.unknown_tags is not NO_TAGS or pos > stop:
                break
        assert item is not None
        if text:
            allowance.take_text(buf, start, pos)
        if item.unknown_tags is not NO_TAGS:
            allowance.take_tags(item.unknown_tags)
        read_now = left - (left := count - len(items))
        if left > 0:
            allowance.work = PIECE
            yield
        else:
            allowance.work -= read_now
    return items, pos


def read_few(
    read: Callable[[Buffer, int, int, int], tuple[S, int]],
    buf: Buffer,
    pos: int,
    limit: int,
    version: int,
    count: int,
    allowance: DecodingAllowance,
    *,
    text: bool,
) -> tuple[list[S], int]:
    """What `read_structs` does, for `FEW` of them."""
    start = pos
    items: list[S] = []
    for _ in range(count):
        item, pos = read(buf, pos, limit, version)
        items.append(item)
        if item.unknown_tags is not NO_TAGS:
            allowance.take_tags(item.unknown_tags)
    if text:
        allowance.take_text(buf, start, pos)
    allowance.work -= count
    return items, pos


def read_strings(
    read: Callable[[Buffer, int, int], tuple[str, int]],
    buf: Buffer,
    pos: int,
    limit: int,
    count: int,
    allowance: DecodingAllowance,
) -> Steps[tuple[list[str], int]]:
    items: list[str] = []
    append = items.append
    while (left := count - len(items)) > 0:
        start = pos
        stop = pos + PIECE_BYTES
        for _ in range(min(left, PIECE)):
            item, pos = read(buf, pos, limit)
            append(item)
            if pos > stop:
                break
        allowance.take_text(buf, start, pos)
        allowance.work = PIECE
        yield
    return items, pos


def read_many_numbers(
    buf: HotBuffer, pos: int, count: int, code: str, size: int, allowance: DecodingAllowance
) -> Steps[tuple[list[Any], int]]:
    items: list[Any] = []
    while (left := count - len(items)) > 0:
        some, pos = read_numbers(buf, pos, min(left, NUMBERS_A_PIECE), code, size)
        items += some
        allowance.work = PIECE
        yield
    return items, pos


def write_structs(
    out: bytearray, items: list[S], write: Callable[[bytearray, S, int], None], version: int, pace: Pace
) -> Steps[None]:
    for piece in pieces(items, PIECE):
        stop = len(out) + WRITTEN_BYTES
        for item in piece:
            write(out, item, version)
            if len(out) > stop:
                stop = len(out) + WRITTEN_BYTES
                yield
        pace.work = PIECE
        yield


def write_strings(out: bytearray, items: list[str], put: Callable[[bytearray, str], None], pace: Pace) -> Steps[None]:
    for piece in pieces(items, PIECE):
        for item in piece:
            put(out, item)
        pace.work = PIECE
        yield


def write_many_numbers(out: bytearray, items: list[Any], code: str, pace: Pace) -> Steps[None]:
    for start in range(0, len(items), NUMBERS_A_PIECE):
        put_numbers(out, items[start : start + NUMBERS_A_PIECE], code)
        pace.work = PIECE
        yield
