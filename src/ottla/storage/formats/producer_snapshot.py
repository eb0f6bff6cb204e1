"""`<offset>.snapshot`: what each idempotent producer had written when the log's end was at that offset.

version i16 = 1, CRC-32C u32 over all that follows it, count i32, then 46 bytes an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from ottla.records.checksum import crc32c
from ottla.storage.formats.errors import FormatError

VERSION: Final = 1
HEAD: Final = Struct(">hI")
COUNT: Final = Struct(">i")
ENTRY: Final = Struct(">qhiqiqiq")
#: The sum covers everything from here on.
SUMMED_FROM: Final = HEAD.size


class ProducerEntry(NamedTuple):
    producer_id: int
    epoch: int
    #: Sequence and offset of the last record of the producer's last batch; -1 where it only wrote a marker.
    last_sequence: int
    last_offset: int
    #: Last offset minus base offset of that batch.
    offset_delta: int
    #: The batch's largest timestamp: producers expire by it.
    timestamp: int
    coordinator_epoch: int
    #: -1 when no transaction is open.
    current_txn_first_offset: int


class SnapshotEncoder:
    """Makes a snapshot's bytes piece by piece: the beginning is known last, since it has the sum of all."""

    __slots__ = ("_count", "_left", "_sum")

    def __init__(self, count: int) -> None:
        self._count = self._left = count
        self._sum = crc32c(COUNT.pack(count))

    def entries(self, entries: Iterable[Iterable[int]]) -> bytes:
        """The bytes of the next entries."""
        packed = b"".join([ENTRY.pack(*entry) for entry in entries])
        self._left -= len(packed) // ENTRY.size
        self._sum = crc32c(packed, self._sum)
        return packed

    def head(self) -> bytes:
        """What stands in front of all entries."""
        assert self._left == 0
        return HEAD.pack(VERSION, self._sum) + COUNT.pack(self._count)


#: How many bytes stand in front of the entries.
HEAD_SIZE: Final = HEAD.size + COUNT.size


def encode(entries: Sequence[ProducerEntry]) -> bytes:
    encoder = SnapshotEncoder(len(entries))
    body = encoder.entries(entries)
    return encoder.head() + body


def decode(data: bytes) -> list[ProducerEntry]:
    start = SUMMED_FROM + COUNT.size
    if len(data) < start:
        raise FormatError(f"the snapshot has {len(data)} bytes, and its head alone has {start}")
    version, checksum = HEAD.unpack_from(data)
    if version != VERSION:
        raise FormatError(f"the snapshot has version {version}, and only version {VERSION} is known")
    if checksum != crc32c(memoryview(data)[SUMMED_FROM:]):
        raise FormatError("the snapshot's checksum does not match its contents")
    (count,) = COUNT.unpack_from(data, SUMMED_FROM)
    if count < 0 or count * ENTRY.size != len(data) - start:
        raise FormatError(f"the snapshot announces {count} entries and has {len(data) - start} bytes of them")
    return [ProducerEntry._make(fields) for fields in ENTRY.iter_unpack(memoryview(data)[start:])]
