"""A Fetch that is sent again and again for one partition: where its offset stands, and the answer but its numbers."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.protocol.fields import CORRELATION_AT, CORRELATION_END, INT32, INT64, LENGTH_BYTES
from ottla.protocol.hot.fetch import FetchRequest
from ottla.protocol.hot.fetch_answer import encode_fetch_response
from ottla.protocol.primitives import HotBuffer, uvarint

#: The first version with compact lengths and tagged fields.
FLEXIBLE: Final = 12
OFFSET_BYTES: Final = INT64.size
_PACK_INT32: Final = INT32.pack_into
_LENGTH_FIELD_BYTES_MAX: Final = 5
#: A value that cannot be found by chance where the template's numbers are searched for.
_MARK: Final = 0x5A4B3C2D1E0F7A6B
_MARK_BYTES: Final = INT64.pack(_MARK)


class AnswerHead:
    """Everything before the records of an answer with one partition, and what stands behind them."""

    __slots__ = (
        "_made",
        "_numbers",
        "_struct",
        "bytes_max",
        "has_log_start",
        "is_compact",
        "middle",
        "rest",
        "tail",
    )

    def __init__(self, version: int, topic: str | bytes, partition: int, session_id: int = 0) -> None:
        answer = (partition, 0, _MARK, 0, 0, None, -1, b"")
        (whole,) = encode_fetch_response(version, [(topic, [answer])], session_id=session_id, correlation_id=0)
        assert isinstance(whole, bytes)
        self.is_compact = version >= FLEXIBLE
        self.has_log_start = version >= 5
        at = whole.index(_MARK_BYTES)
        numbers = 3 if self.has_log_start else 2
        # No tagged fields of the partition, of the topic and of the answer; before them the records' length.
        self.tail = whole[-3:] if self.is_compact else b""
        records_length_bytes = 1 if self.is_compact else INT32.size
        #: Between the correlation id and the numbers, and between these and the records' length.
        self.middle = whole[CORRELATION_END:at]
        self.rest = whole[at + INT64.size * numbers : len(whole) - len(self.tail) - records_length_bytes]
        self._struct = Struct(f">ii{len(self.middle)}s{'q' * numbers}{len(self.rest)}s")
        #: What an answer has besides its records, at the most.
        self.bytes_max = self._struct.size + _LENGTH_FIELD_BYTES_MAX + len(self.tail)
        #: The last head that was made, and what it says: readers of a settled log get the same again and again.
        self._made = b""
        self._numbers = (-1, -1, -1, -1)

    def fill(
        self, target: bytearray, correlation: int, high_watermark: int, log_start: int, size: int, stable: int = -1
    ) -> int:
        """Writes the head of an answer with `size` bytes of records, read uncommitted.

        `stable`: the last stable offset, where it is not the high watermark. Returns where the records are to stand.
        """
        if stable < 0:
            stable = high_watermark
        if (size, high_watermark, stable, log_start) != self._numbers:
            self._make(size, high_watermark, stable, log_start)
        made = self._made
        target[: len(made)] = made
        _PACK_INT32(target, CORRELATION_AT, correlation)
        return len(made)

    def _make(self, size: int, high_watermark: int, stable: int, log_start: int) -> None:
        self._numbers = (size, high_watermark, stable, log_start)
        length_field = uvarint(size + 1) if self.is_compact else INT32.pack(size)
        length = self._struct.size - LENGTH_BYTES + len(length_field) + size + len(self.tail)
        numbers = (high_watermark, stable, log_start) if self.has_log_start else (high_watermark, stable)
        self._made = self._struct.pack(length, 0, self.middle, *numbers, self.rest) + length_field


def sole_offset_at(buf: HotBuffer, start: int, end: int, version: int, request: FetchRequest) -> int | None:
    """Where the offset of the only partition of a parsed request stands: what is behind it has a known size.

    None where it cannot be known, since there are tagged fields, or bytes behind the request.
    """
    partition, _, offset, last_fetched_epoch, _, _ = request.topics[0][1][0]
    at = end - _behind_offset(version, len(request.rack_id.encode())) - OFFSET_BYTES
    # The partition's index stands before the offset, and from version 9 on the leader epoch between them.
    index_at = at - INT32.size * (2 if version >= 9 else 1)
    if (
        last_fetched_epoch >= 0
        or request.end != end
        or index_at < start
        or INT64.unpack_from(buf, at)[0] != offset
        or INT32.unpack_from(buf, index_at)[0] != partition
    ):
        return None
    return at


def _behind_offset(version: int, rack_bytes: int) -> int:
    """Bytes behind the fetch offset, in a request without tagged fields and forgotten topics."""
    if version >= FLEXIBLE:
        # last epoch, log start, max bytes, tags; topic's tags, no forgotten topics, rack, request's tags
        return (4 + 8 + 4 + 1) + (1 + 1 + 1 + rack_bytes + 1)
    behind = 4 if version < 5 else 12
    if version >= 7:
        behind += 4
    if version >= 11:
        behind += 2 + rack_bytes
    return behind
