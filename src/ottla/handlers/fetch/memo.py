"""A Fetch that is sent again and again with another offset: its constant parts, and its answer but for the numbers.

librdkafka and others fetch without sessions, so each request of a connection differs from the last in one number. It is
recognised in place by what stands before and behind the offset; parsing it and building its answer piece by piece would
take three times as long as reading 16 KiB of records.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.handlers.calls.peer import RequestBuffer
from ottla.handlers.fetch.reading import CONSUMER, READ_UNCOMMITTED
from ottla.handlers.fetch.sessions import FINAL_EPOCH, NO_SESSION
from ottla.protocol.hot.fetch import FetchRequest
from ottla.protocol.hot.fetch_answer import encode_fetch_response
from ottla.records.batch import HEADER_SIZE
from ottla.replication.leader import Leader
from ottla.replication.traffic import Traffic
from ottla.storage.log.cursor import Cursor

#: What is remembered of a request at the most: a client id, a topic and a few numbers take a tenth of it.
REMEMBERED_BYTES_MAX: Final = 1024
_FLEXIBLE: Final = 12
_OFFSET: Final = Struct(">q")
_INT32: Final = Struct(">i")
_PACK_INT32: Final = _INT32.pack_into
_LENGTH_FIELD_BYTES_MAX: Final = 5
#: API key, version and correlation id stand before the constant part.
_FIXED_HEAD: Final = 8
#: A value that cannot be found by chance where the template's numbers are searched for.
_MARK: Final = 0x5A4B3C2D1E0F7A6B
_MARK_BYTES: Final = _MARK.to_bytes(8, "big")


class AnswerHead:
    """Everything before the records of an answer with one partition, and what stands behind them."""

    __slots__ = (
        "_compact",
        "_has_log_start",
        "_high_watermark",
        "_log_start",
        "_made",
        "_middle",
        "_rest",
        "_size",
        "_struct",
        "room",
        "tail",
    )

    def __init__(self, version: int, topic: str | bytes, partition: int) -> None:
        answer = (partition, 0, _MARK, 0, 0, None, -1, b"")
        (whole,) = encode_fetch_response(version, [(topic, [answer])], correlation_id=0)
        assert isinstance(whole, bytes)
        self._compact = version >= _FLEXIBLE
        self._has_log_start = version >= 5
        at = whole.index(_MARK_BYTES)
        numbers = 3 if self._has_log_start else 2
        # No tagged fields of the partition, of the topic and of the answer; before them the records' length.
        self.tail = whole[-3:] if self._compact else b""
        records_length_bytes = 1 if self._compact else 4
        self._middle = whole[8:at]
        self._rest = whole[at + 8 * numbers : len(whole) - len(self.tail) - records_length_bytes]
        self._struct = Struct(f">ii{len(self._middle)}s{'q' * numbers}{len(self._rest)}s")
        #: What there must be for an answer besides its records and the header behind them.
        self.room = self._struct.size + _LENGTH_FIELD_BYTES_MAX + len(self.tail) + HEADER_SIZE
        #: The last head that was made, and what it says: readers of a settled log get the same again and again.
        self._made = b""
        self._size = self._high_watermark = self._log_start = -1

    def fill(self, target: bytearray, correlation: int, high_watermark: int, log_start: int, size: int) -> int:
        """Writes the head of an answer with `size` bytes of records, read uncommitted: what is committed is stable.

        Returns where the records are to stand.
        """
        if size != self._size or high_watermark != self._high_watermark or log_start != self._log_start:
            self._make(high_watermark, log_start, size)
        made = self._made
        target[: len(made)] = made
        _PACK_INT32(target, 4, correlation)
        return len(made)

    def _make(self, high_watermark: int, log_start: int, size: int) -> None:
        self._size, self._high_watermark, self._log_start = size, high_watermark, log_start
        length_field = _compact(size + 1) if self._compact else _INT32.pack(size)
        length = self._struct.size - 4 + len(length_field) + size + len(self.tail)
        numbers = (
            (high_watermark, high_watermark, log_start) if self._has_log_start else (high_watermark, high_watermark)
        )
        self._made = self._struct.pack(length, 0, self._middle, *numbers, self._rest) + length_field


class FetchMemo:
    __slots__ = (
        "cursor",
        "head",
        "leader",
        "log",
        "max_bytes",
        "min_bytes",
        "offset_at",
        "policy",
        "prefix",
        "suffix",
        "traffic",
        "version",
    )

    def __init__(
        self,
        version: int,
        prefix: bytes,
        suffix: bytes,
        request: FetchRequest,
        leader: Leader,
        max_bytes: int,
        policy: int,
    ) -> None:
        topic, ((partition, *_),) = request.topics[0]
        self.version = version
        #: The number of the policy that allowed it.
        self.policy = policy
        self.prefix = prefix
        self.suffix = suffix
        #: Where the offset stands, from the frame's start.
        self.offset_at = _FIXED_HEAD + len(prefix)
        self.leader = leader
        self.log = leader.log
        self.cursor = Cursor(leader.log)
        self.min_bytes = max(1, request.min_bytes)
        self.max_bytes = max_bytes
        #: Of the topic, where answers are counted.
        self.traffic = Traffic()
        self.head = AnswerHead(version, topic, partition)

    def offset(self, buffer: RequestBuffer, start: int, end: int) -> int:
        """The offset that the frame asks for, if it is like the remembered one; else -1."""
        at = start + self.offset_at
        data = buffer.data
        if (
            at + 8 + len(self.suffix) == end
            and data[start + _FIXED_HEAD : at] == self.prefix
            and data[at + 8 : end] == self.suffix
        ):
            offset: int = _OFFSET.unpack_from(data, at)[0]
            return offset
        return -1


def remember(
    buffer: RequestBuffer,
    start: int,
    end: int,
    version: int,
    request: FetchRequest,
    leader: Leader,
    bytes_max: int,
    policy: int,
) -> FetchMemo | None:
    """A memo of the request, where it is of the kind that can be recognised."""
    if (
        request.session_id != NO_SESSION
        or request.session_epoch != FINAL_EPOCH
        or request.replica_id != CONSUMER
        or request.isolation_level != READ_UNCOMMITTED
        or request.forgotten
        or len(request.topics) != 1
        or len(request.topics[0][1]) != 1
        or end - start > REMEMBERED_BYTES_MAX
    ):
        return None
    partition, _, offset, last_fetched_epoch, _, partition_max_bytes = request.topics[0][1][0]
    at = _offset_position(version, end, len(request.rack_id.encode()))
    index_at = at - (8 if version >= 9 else 4)
    if (
        last_fetched_epoch >= 0
        or index_at < start
        or _OFFSET.unpack_from(buffer.data, at)[0] != offset
        or _INT32.unpack_from(buffer.data, index_at)[0] != partition
    ):
        return None  # tagged fields, or bytes behind the request
    prefix, suffix = bytes(buffer.data[start + _FIXED_HEAD : at]), bytes(buffer.data[at + 8 : end])
    max_bytes = min(partition_max_bytes, request.max_bytes, bytes_max)
    return FetchMemo(version, prefix, suffix, request, leader, max_bytes, policy)


def _offset_position(version: int, end: int, rack_bytes: int) -> int:
    """Where the offset of the only partition stands: what is behind it has a known size."""
    if version >= _FLEXIBLE:
        # last epoch, log start, max bytes, tags; topic's tags, no forgotten topics, rack, request's tags
        return end - 8 - (4 + 8 + 4 + 1) - (1 + 1 + 1 + rack_bytes + 1)
    behind = 4 if version < 5 else 12
    if version >= 7:
        behind += 4
    if version >= 11:
        behind += 2 + rack_bytes
    return end - 8 - behind


def _compact(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
