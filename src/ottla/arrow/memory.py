"""Memory of Arrow's own allocator that compiled code fills, and the arrays that are made of it.

How many rows and bytes there will be is known only from above: no batch has more records than its header says, and no
column more bytes than the records take unfolded. What was taken in vain was never touched, and is given back.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.arrow.library import pa
from ottla.arrow.schema import HEADER_TYPE, HEADERS, HEADERS_TYPE, KEY, OFFSET, TIMESTAMP, TIMESTAMP_ARROW_TYPE, VALUE

_INT32_BYTES: Final = 4
_INT64_BYTES: Final = 8
#: A header's least: the lengths of its name and of its value.
HEADER_BYTES_MIN: Final = 2

#: What `native/columns.c` fills, in its order.
_ROOMS: Final = (
    "key_ends",
    "key_bytes",
    "key_valid",
    "value_ends",
    "value_bytes",
    "value_valid",
    "offsets",
    "times",
    "header_ends",
    "name_ends",
    "name_bytes",
    "content_ends",
    "content_bytes",
    "content_valid",
)


class FilledColumns(NamedTuple):
    """What came of it, as `columns.fill` says."""

    verdict: int
    batches: int
    rows: int
    key_bytes: int
    key_nulls: int
    value_bytes: int
    value_nulls: int
    headers: int
    name_bytes: int
    content_bytes: int
    content_nulls: int


class Memory:
    """For one Arrow batch."""

    def __init__(self, columns: tuple[str, ...], rows: int, size: int, headers_max: int, *, offsets: bool) -> None:
        self._rooms: dict[str, Any] = dict.fromkeys(_ROOMS)
        for column, name in ((KEY, "key"), (VALUE, "value")):
            if column in columns:
                self._take_values(name, rows, size)
        if offsets or OFFSET in columns:
            self._take("offsets", _INT64_BYTES * rows)
        if TIMESTAMP in columns:
            self._take("times", _INT64_BYTES * rows)
        if HEADERS in columns:
            self._take("header_ends", _INT32_BYTES * (rows + 1))
            self._take("name_ends", _INT32_BYTES * (headers_max + 1))
            self._take("name_bytes", size)
            self._take_values("content", headers_max, size)

    def _take(self, name: str, size: int) -> None:
        self._rooms[name] = pa.allocate_buffer(size, resizable=True)

    def _take_values(self, name: str, count: int, size: int) -> None:
        self._take(f"{name}_ends", _INT32_BYTES * (count + 1))
        self._take(f"{name}_bytes", size)
        self._take(f"{name}_valid", (count + 7) // 8)

    def rooms(self) -> tuple[Any, ...]:
        return tuple(self._rooms.values())

    def arrays(self, filled: FilledColumns) -> dict[str, Any]:
        """The columns that were asked for. Use once."""
        rows = filled.rows
        found: dict[str, Any] = {}
        for column, name, size, nulls in (
            (KEY, "key", filled.key_bytes, filled.key_nulls),
            (VALUE, "value", filled.value_bytes, filled.value_nulls),
        ):
            if self._rooms[f"{name}_ends"] is not None:
                found[column] = self._values(name, pa.binary(), rows, size, nulls)
        if self._rooms["offsets"] is not None:
            buffers = [None, self._used("offsets", _INT64_BYTES * rows)]
            found[OFFSET] = pa.Array.from_buffers(pa.int64(), rows, buffers, null_count=0)
        if self._rooms["times"] is not None:
            buffers = [None, self._used("times", _INT64_BYTES * rows)]
            found[TIMESTAMP] = pa.Array.from_buffers(TIMESTAMP_ARROW_TYPE, rows, buffers, null_count=0)
        if self._rooms["header_ends"] is not None:
            found[HEADERS] = self._headers(filled)
        return found

    def _headers(self, filled: FilledColumns) -> Any:
        count = filled.headers
        names = self._values("name", pa.string(), count, filled.name_bytes, 0)
        contents = self._values("content", pa.binary(), count, filled.content_bytes, filled.content_nulls)
        headers = pa.Array.from_buffers(HEADER_TYPE, count, [None], null_count=0, children=[names, contents])
        buffers = [None, self._used("header_ends", _INT32_BYTES * (filled.rows + 1))]
        return pa.Array.from_buffers(HEADERS_TYPE, filled.rows, buffers, null_count=0, children=[headers])

    def _values(self, name: str, kind: Any, count: int, size: int, nulls: int) -> Any:
        valid = self._used(f"{name}_valid", (count + 7) // 8) if nulls else None
        ends = self._used(f"{name}_ends", _INT32_BYTES * (count + 1))
        return pa.Array.from_buffers(kind, count, [valid, ends, self._used(f"{name}_bytes", size)], null_count=nulls)

    def _used(self, name: str, size: int) -> Any:
        """The room, without what was taken in vain where that is more than half of it."""
        room = self._rooms[name]
        if 2 * size < room.size:
            room.resize(size, shrink_to_fit=True)
        return room
