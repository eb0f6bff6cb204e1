"""The answer to a Produce that is sent again and again for one partition: known but for its numbers."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.protocol.fields import CORRELATION_END, INT64, LENGTH_BYTES
from ottla.protocol.hot.produce import encode_produce_response

#: The first version with compact lengths and tagged fields.
FLEXIBLE: Final = 9
#: A value that cannot be found by chance where the template's fields are searched for.
_MARK: Final = 0x5A4B3C2D1E0F7A6B
_MARK_BYTES: Final = INT64.pack(_MARK)
#: Behind the base offset stands the append time; behind that, from this version on, the log's start.
_LOG_START_FROM: Final = 5
#: How far behind the base offset the log's start stands.
LOG_START_BEHIND: Final = 2 * INT64.size


class AnswerTemplate:
    """Everything is known but the correlation id and three numbers."""

    __slots__ = ("_length", "_middle", "_struct", "_tail", "has_log_start", "offset_at", "whole")

    def __init__(self, version: int, topic: str | bytes, partition: int) -> None:
        answer = (partition, 0, _MARK, 0, 0, (), None)
        whole = encode_produce_response(version, [(topic, [answer])], 0, correlation_id=0)
        at = whole.index(_MARK_BYTES)
        has_log_start = version >= _LOG_START_FROM
        self._length = len(whole) - LENGTH_BYTES
        self._middle = whole[CORRELATION_END:at]
        numbers = "qqq" if has_log_start else "qq"
        self._tail = whole[at + INT64.size * len(numbers) :]
        self._struct = Struct(f">ii{len(self._middle)}s{numbers}{len(self._tail)}s")
        self.has_log_start = has_log_start
        #: Where the base offset stands in the answer; behind it follow the append time, and the log's start.
        self.offset_at = at
        self.whole = self.fill(0, 0, -1, 0)

    def fill(self, correlation: int, base_offset: int, append_time_ms: int, log_start_offset: int) -> bytes:
        if self.has_log_start:
            return self._struct.pack(
                self._length, correlation, self._middle, base_offset, append_time_ms, log_start_offset, self._tail
            )
        return self._struct.pack(self._length, correlation, self._middle, base_offset, append_time_ms, self._tail)
