"""The header of a record batch (magic 2), read and patched in place.

A batch is 61 bytes of header and then its records, compressed as one block or not at all. The checksum covers all from
the attributes on: base offset, length and leader epoch lie before it, so that a leader stamps them into a buffer as it
came from the socket, without touching the checksum or the records. Whatever else is changed costs a new checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from ottla.records.checksum import crc32c
from ottla.records.errors import CorruptBatch, UnsupportedCodec, UnsupportedMagic

Readable: TypeAlias = bytes | bytearray | memoryview
Writable: TypeAlias = bytearray | memoryview

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57
HEADER_SIZE: Final = 61

#: Base offset and length, which the length field does not count.
LOG_OVERHEAD: Final = 12
#: The least that the length field of a batch can say.
LENGTH_MIN: Final = HEADER_SIZE - LOG_OVERHEAD
MAGIC: Final = 2
CODEC_MAX: Final = 4

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_LOG_APPEND: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1

INT32_MAX: Final = 2**31 - 1
#: The last offset that a record may have: the one behind it has to be said in 64 bits as well.
OFFSET_MAX: Final = 2**63 - 2

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
assert HEADER.size == HEADER_SIZE
#: Attributes have two bytes; every bit that means something stands in the lower one.
LOW_ATTRIBUTES_AT: Final = ATTRIBUTES_AT + 1

# Looked up once: this pair runs for every batch that is produced, fetched or recovered.
_new: Final = tuple.__new__
_unpack_header: Final = HEADER.unpack_from

_CODES: Final = HEADER.format.removeprefix(">")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT16: Final = struct.Struct(">h")


class BatchHeader(NamedTuple):
    """The fields of a batch's header in the order in which they stand."""

    base_offset: int
    #: Bytes from the leader epoch to the end: the whole batch is twelve bytes longer (`size`).
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    #: The first record's time; the delete horizon where that attribute is set. Records hold their distance from it.
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    #: Records present: after compaction fewer than last_offset_delta + 1, down to none.
    count: int  # type: ignore[assignment]  # the field's name is Kafka's; tuple.count is of no use here

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & TIMESTAMP_TYPE_LOG_APPEND != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which the cleaner may drop this batch's tombstones or markers, if it has been set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


def header_format(*fields: str) -> str:
    """The `struct` format of some fields of a header, named in their order: from its start to the last one's end.

    For code that reads every batch and needs few of its fields. What is packed must leave none out.
    """
    assert fields, "a format of nothing"
    codes = list(_CODES[: BatchHeader._fields.index(fields[-1]) + 1])
    for number, code in enumerate(codes):
        if BatchHeader._fields[number] not in fields:
            codes[number] = f"{struct.calcsize('>' + code)}x"
    assert len(codes) - sum(code.endswith("x") for code in codes) == len(fields), "fields in another order"
    return ">" + "".join(codes)


def header_fields(*fields: str) -> struct.Struct:
    """As `header_format`."""
    return struct.Struct(header_format(*fields))


def add_to_sequence(sequence: int, increment: int) -> int:
    """Sequence numbers run from 0 to 2**31 - 1 and then start again at 0."""
    total = sequence + increment
    return total if total <= INT32_MAX else total - INT32_MAX - 1


def parse_header(buf: Readable, pos: int = 0) -> BatchHeader:
    """The header at `pos`. Only its presence and its length field are checked: see `validate_header` for the rest."""
    assert pos >= 0
    try:
        header = _new(BatchHeader, _unpack_header(buf, pos))
    except struct.error:
        left = max(0, len(buf) - pos)
        raise CorruptBatch(f"a batch header takes {HEADER_SIZE} bytes, but {left} are left") from None
    if header[1] < LENGTH_MIN:
        raise CorruptBatch(f"a batch of length {header[1]} cannot hold its header of {LENGTH_MIN}")
    return header


def validate_header(header: BatchHeader) -> None:
    """Refuses a header that no batch on disk or on the wire can have; compacted and control batches pass."""
    if header.magic != MAGIC:
        if header.magic in {0, 1}:
            raise UnsupportedMagic(f"message format {header.magic} is older than record batches (format {MAGIC})")
        raise CorruptBatch(f"unknown magic {header.magic}")
    if header.attributes & COMPRESSION_MASK > CODEC_MAX:
        raise UnsupportedCodec(f"unknown compression codec {header.compression}")
    if header.length < LENGTH_MIN:
        raise CorruptBatch(f"a batch of length {header.length} cannot hold its header of {LENGTH_MIN}")
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptBatch(f"the offsets [{header.base_offset}, {header.last_offset}] are no range")
    if not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.count} records do not fit in {header.last_offset_delta + 1} offsets")


def batch_size(buf: Readable, pos: int = 0) -> int:
    """Bytes of the batch at `pos`, as its length says; LOG_OVERHEAD bytes of it must be there."""
    (length,) = _INT32.unpack_from(buf, pos + LENGTH_AT)
    return int(length) + LOG_OVERHEAD


def iterate(buf: Readable, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch between `start` and `end`; a partial last one ends it quietly.

    Raises CorruptBatch at a length that cannot be, since nothing behind it can be found any more.
    """
    end = min(end, len(buf))
    pos = start
    while end - pos >= HEADER_SIZE:
        header = parse_header(buf, pos)
        following = pos + header.length + LOG_OVERHEAD
        if following > end:
            return
        yield pos, header
        pos = following


def compute_crc(buf: Readable, pos: int, size: int) -> int:
    """CRC-32C of what the checksum covers in the batch of `size` bytes at `pos`, without copying."""
    view = buf if type(buf) is memoryview else memoryview(buf)
    checksum: int = crc32c(view[pos + ATTRIBUTES_AT : pos + size])
    return checksum


def check_crc(buf: Readable, pos: int, size: int) -> bool:
    """Whether the whole batch of `size` bytes lies at `pos` and matches its checksum."""
    if size < HEADER_SIZE or pos < 0 or pos + size > len(buf):
        return False
    view = buf if type(buf) is memoryview else memoryview(buf)
    computed: int = crc32c(view[pos + ATTRIBUTES_AT : pos + size])
    (stored,) = _UINT32.unpack_from(buf, pos + CRC_AT)
    matches: bool = computed == stored
    return matches


def set_max_timestamp(buf: Writable, pos: int, timestamp: int, *, log_append_time: bool) -> None:
    """Stamps the batch's time and its type, and the new checksum unless nothing changed.

    Like Kafka it keeps codec, transactional and control bits and clears the rest, the delete horizon among them.
    """
    (attributes,) = _INT16.unpack_from(buf, pos + ATTRIBUTES_AT)
    (current,) = _INT64.unpack_from(buf, pos + MAX_TIMESTAMP_AT)
    if current == timestamp and (attributes & TIMESTAMP_TYPE_LOG_APPEND != 0) is log_append_time:
        return
    attributes &= COMPRESSION_MASK | TRANSACTIONAL | CONTROL
    if log_append_time:
        attributes |= TIMESTAMP_TYPE_LOG_APPEND
    _INT16.pack_into(buf, pos + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(buf, pos + MAX_TIMESTAMP_AT, timestamp)
    patch_crc(buf, pos)


def set_log_append_time(buf: Writable, pos: int, timestamp: int) -> None:
    """The broker's time for every record of the batch (message.timestamp.type=LogAppendTime)."""
    set_max_timestamp(buf, pos, timestamp, log_append_time=True)


def patch_crc(buf: Writable, pos: int) -> None:
    """Writes the checksum that the batch at `pos` must have after a change behind it."""
    (length,) = _INT32.unpack_from(buf, pos + LENGTH_AT)
    assert pos + length + LOG_OVERHEAD <= len(buf)
    _UINT32.pack_into(buf, pos + CRC_AT, compute_crc(buf, pos, length + LOG_OVERHEAD))
