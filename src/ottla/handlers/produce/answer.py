"""Answers to Produce: in general, and from a template for the request that is sent again and again."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from ottla.model import ErrorCode
from ottla.protocol.hot.produce import encode_produce_response

#: A value that cannot be found by chance where the template's fields are searched for.
_MARK: Final = 0x5A4B3C2D1E0F7A6B
_MARK_BYTES: Final = _MARK.to_bytes(8, "big")


class PartitionAnswer(NamedTuple):
    """What one partition's part of the answer says, in the wire's order."""

    partition: int
    error: int
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    message: str | None = None


#: Name or id of a topic, and its partitions' answers.
TopicAnswer = tuple[str | bytes, list[PartitionAnswer]]


def encode_answer(version: int, correlation: int, topics: list[TopicAnswer], throttle_ms: int) -> bytes:
    """A whole frame."""
    return encode_produce_response(version, topics, throttle_ms, correlation_id=correlation)


class AnswerTemplate:
    """The answer to a request for one partition: everything is known but the correlation id and three numbers."""

    __slots__ = ("_length", "_middle", "_struct", "_tail", "has_log_start", "offset_at", "whole")

    def __init__(self, version: int, topic: str | bytes, partition: int) -> None:
        whole = encode_answer(version, 0, [(topic, [PartitionAnswer(partition, ErrorCode.NONE, _MARK, 0, 0)])], 0)
        at = whole.index(_MARK_BYTES)
        has_log_start = version >= 5
        self._length = len(whole) - 4
        self._middle = whole[8:at]
        self._tail = whole[at + (24 if has_log_start else 16) :]
        numbers = "qqq" if has_log_start else "qq"
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
