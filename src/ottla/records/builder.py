"""Records and batches on their way to bytes.

A producer fills a `BatchBuilder`: one call a record, no record objects. At a million records a second a call may cost a
microsecond, so the shape that most records have (no headers) is encoded by compiled code, or, where that is not there
and lengths are below 8192, assembled from tables of ready bytes; every other shape goes through `encode_record`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ottla.native import compiled_records
from ottla.records import varint
from ottla.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CREATE_TIME,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    INT32_MAX,
    LENGTH_MIN,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_LOG_APPEND,
    TRANSACTIONAL,
    Readable,
    patch_crc,
)
from ottla.records.compression import NONE, codec_name, compress

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

_SMALL: Final = varint.SMALL
_SMALL_COUNT: Final = varint.SMALL_COUNT
_NULL: Final = varint.NULL_LENGTH
_compiled: Final = compiled_records()
_encode_compiled: Final = None if _compiled is None else _compiled.encode


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
        if _encode_compiled is not None and not headers:
            record = _encode_compiled(count, delta, key, value)
        elif headers or value is None:
            record = encode_record(count, delta, key, value, headers)
        else:
            return self._append_from_tables(delta, key, value)
        self._parts.append(record)
        self.count = count + 1
        self.size = size = self.size + len(record)
        return size

    def _append_from_tables(self, delta: int, key: Readable | None, value: Readable) -> int:
        """A record without headers, as pieces of ready bytes: the fastest that Python can."""
        count = self.count
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


def encode_record(
    offset_delta: int, timestamp_delta: int, key: Readable | None, value: Readable | None, headers: Headers
) -> bytes:
    """One record of any shape; `BatchBuilder.append` has a shorter way for those without headers."""
    number = varint.encode
    parts: list[Readable] = [b"\0", number(timestamp_delta), number(offset_delta)]
    for field in (key, value):
        parts += (_NULL,) if field is None else (number(len(field)), field)
    parts.append(number(len(headers)))
    for name, content in headers:
        raw = name.encode()
        parts += (number(len(raw)), raw)
        parts += (_NULL,) if content is None else (number(len(content)), content)
    body = b"".join(parts)
    return number(len(body)) + body


def build_batch(
    payload: bytes,
    *,
    count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    attributes: int = 0,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
) -> bytes:
    """A whole batch around records that are encoded already; the codec in `attributes` compresses them."""
    codec = attributes & COMPRESSION_MASK
    records = compress(codec, payload, level) if codec and count else payload
    length = LENGTH_MIN + len(records)
    if length > INT32_MAX:
        raise ValueError(f"a batch of {length} bytes is longer than its length field can say")
    batch = bytearray(HEADER_SIZE + len(records))
    batch[HEADER_SIZE:] = records
    fields = (base_offset, length, leader_epoch, MAGIC, 0, attributes, last_offset_delta, base_timestamp, max_timestamp)
    HEADER.pack_into(batch, 0, *fields, producer_id, producer_epoch, base_sequence, count)
    patch_crc(batch, 0)
    return bytes(batch)


def attribute_bits(
    compression: int = NONE,
    timestamp_type: int = CREATE_TIME,
    *,
    transactional: bool = False,
    control: bool = False,
    delete_horizon: bool = False,
) -> int:
    """The attributes field of a batch's header."""
    codec_name(compression)  # raises for a codec that there is not
    return (
        compression
        | (TIMESTAMP_TYPE_LOG_APPEND if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon else 0)
    )
