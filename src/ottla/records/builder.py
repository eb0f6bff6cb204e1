"""A batch under construction, as a producer fills it: one call a record, no record objects.

At a million records a second a call may cost a microsecond, so the shape that most records have (no headers, lengths
below 8192) is assembled from tables of ready bytes; every other shape goes through `record.encode_record`.
"""

from __future__ import annotations

from typing import Final

from ottla.records import varint
from ottla.records.batch import (
    CREATE_TIME,
    HEADER_SIZE,
    INT32_MAX,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Readable,
)
from ottla.records.compression import NONE
from ottla.records.record import Headers, attribute_bits, build_batch, encode_record

_SMALL: Final = varint.SMALL
_SMALL_COUNT: Final = varint.SMALL_COUNT
_NULL: Final = varint.NULL_LENGTH


class BatchBuilder:
    """Collects records with consecutive offsets; `build` may be called again with other header fields (a retry)."""

    __slots__ = ("_base_timestamp", "_max_timestamp", "_parts", "count", "size")

    def __init__(self) -> None:
        #: Records appended.
        self.count = 0
        #: Bytes of the batch if built uncompressed.
        self.size = HEADER_SIZE
        self._parts: list[Readable] = []
        self._base_timestamp = NO_TIMESTAMP
        self._max_timestamp = NO_TIMESTAMP

    def append(self, timestamp: int, key: Readable | None, value: Readable | None, headers: Headers = ()) -> int:
        """Adds a record and returns `size`. Its bytes must not change until the batch is built."""
        count = self.count
        if not count:
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        delta = timestamp - self._base_timestamp
        if headers or value is None:
            record = encode_record(count, delta, key, value, headers)
            self._parts.append(record)
            self.count = count + 1
            self.size += len(record)
            return self.size
        encode = varint.encode
        time = _SMALL[delta] if 0 <= delta < _SMALL_COUNT else encode(delta)
        offset = _SMALL[count] if count < _SMALL_COUNT else encode(count)
        length = len(value)
        value_length = _SMALL[length] if length < _SMALL_COUNT else encode(length)
        # Attributes and the number of headers take a byte each, a null key's length a third.
        body = 3 + len(time) + len(offset) + len(value_length) + length
        if key is None:
            body_length = _SMALL[body] if body < _SMALL_COUNT else encode(body)
            self._parts += (body_length, b"\0", time, offset, _NULL, value_length, value, b"\0")
        else:
            length = len(key)
            key_length = _SMALL[length] if length < _SMALL_COUNT else encode(length)
            body += len(key_length) + length - 1
            body_length = _SMALL[body] if body < _SMALL_COUNT else encode(body)
            self._parts += (body_length, b"\0", time, offset, key_length, key, value_length, value, b"\0")
        self.count = count + 1
        self.size = size = self.size + len(body_length) + body
        return size

    @property
    def base_timestamp(self) -> int:
        """The first record's time, -1 while there is none."""
        return self._base_timestamp

    @property
    def max_timestamp(self) -> int:
        return self._max_timestamp

    def build(
        self,
        *,
        compression: int = NONE,
        level: int | None = None,
        base_offset: int = 0,
        timestamp_type: int = CREATE_TIME,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        leader_epoch: int = -1,
        transactional: bool = False,
    ) -> bytes:
        """The batch as it goes on the wire, where its base offset is 0. The records stay: `build` may be repeated."""
        if not self.count:
            raise ValueError("a batch needs at least one record")
        assert self.count <= INT32_MAX
        return build_batch(
            b"".join(self._parts),
            count=self.count,
            last_offset_delta=self.count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            base_offset=base_offset,
            attributes=attribute_bits(compression, timestamp_type, transactional=transactional),
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            leader_epoch=leader_epoch,
        )
