"""Source batches made ready for the target: copied as they are, compressed or not, with a few fields of the header set.

A target takes from a producer only batches whose records have consecutive offsets, which carry neither a transaction's
nor a control bit, and which go on in the sequence of their producer. So the header gets the mirror's producer and the
sequence number, the checksum is computed anew (the fields lie within it), and the records stay as they lie. A batch is
taken apart and made anew under the same codec only where it must be: where compaction has left gaps, where it begins
before the place that the copy goes on from, or where the source's broker has set the times of its records
(LogAppendTime), which the target would take for the producers' otherwise.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from ottla.mirror.pairs import Pair
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import (
    COMPRESSION_MASK,
    HEADER,
    INT32_MAX,
    MAGIC,
    BatchHeader,
    Readable,
    check_crc,
    parse_header,
    patch_crc,
    validate_header,
)
from ottla.records.builder import BatchBuilder
from ottla.records.errors import CorruptBatch
from ottla.records.record import Record, decode_batch

_NO_EPOCH: Final = -1
#: The epoch never changes: the sequence alone keeps writers apart.
PRODUCER_EPOCH: Final = 0


class ReadyBatch(NamedTuple):
    """A batch as the target is sent it."""

    data: bytes | bytearray
    #: Where its first record comes to lie.
    target: int
    records: int
    #: In the source: its first and its last record, and behind the batch that it was.
    first_source: int
    last_source: int
    source_end: int

    @property
    def target_end(self) -> int:
        return self.target + self.records


class Preparation:
    """Goes through fetched bytes from one place on, batch by batch, so that its caller may let others have a turn."""

    def __init__(
        self, producer_id: int, source: int, target: int, aborted: AbortedTransactions | None, *, check_crcs: bool
    ) -> None:
        self._producer_id = producer_id
        self._aborted = aborted
        self._check_crcs = check_crcs
        #: The next source offset that is wanted, and where its record will lie.
        self.source = source
        self.target = target
        self.batches: list[ReadyBatch] = []
        #: Where runs of offsets begin, in their order; most are known already.
        self.pairs: list[Pair] = []

    def take(self, buf: Readable, pos: int) -> int:
        """Makes one whole batch at `pos` ready, if it has anything to copy; returns where the next one begins.

        Raises RecordError.
        """
        header = parse_header(buf, pos)
        validate_header(header)
        end = pos + header.size
        if header.last_offset < self.source:
            return end
        hidden = self._aborted is not None and self._aborted.hides(header)
        if header.is_control:
            if self._aborted is not None:
                self._aborted.note_marker(header, buf, pos, check_crcs=self._check_crcs)
        elif not hidden and header.count:
            if self._stays_as_it_is(header):
                self._copy(header, buf, pos)
            else:
                self._make_anew(header, buf, pos)
        self.source = header.next_offset
        return end

    def _stays_as_it_is(self, header: BatchHeader) -> bool:
        return (
            header.count == header.last_offset_delta + 1
            and header.base_offset >= self.source
            and not header.is_log_append_time
        )

    def _copy(self, header: BatchHeader, buf: Readable, pos: int) -> None:
        size = header.size
        if self._check_crcs and not check_crc(buf, pos, size):
            raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not match")
        data = bytearray(buf[pos : pos + size])
        # Times count from the delete horizon where the cleaner has set one: only the bit goes, which is the cleaner's.
        attributes = header.attributes & COMPRESSION_MASK
        HEADER.pack_into(
            data,
            0,
            *(0, header.length, _NO_EPOCH, MAGIC, 0, attributes, header.last_offset_delta),
            *(header.base_timestamp, header.max_timestamp),
            *(self._producer_id, PRODUCER_EPOCH, sequence_at(self.target), header.count),
        )
        patch_crc(data, 0)
        self.pairs.append(Pair(header.base_offset, self.target))
        self._add(data, header.count, header.base_offset, header.last_offset, header.next_offset)

    def _make_anew(self, header: BatchHeader, buf: Readable, pos: int) -> None:
        records = decode_batch(buf, pos, check_crcs=self._check_crcs)
        wanted = [record for record in records if record.offset >= self.source]
        if not wanted:
            return
        builder = BatchBuilder()
        try:
            for _, timestamp, key, value, headers in wanted:
                builder.append(timestamp, key, value, headers)
            data = builder.build(
                compression=header.compression,
                producer_id=self._producer_id,
                producer_epoch=PRODUCER_EPOCH,
                base_sequence=sequence_at(self.target),
            )
        except (ValueError, OverflowError, struct.error) as error:
            raise CorruptBatch(f"the batch at offset {header.base_offset} cannot be made anew: {error}") from None
        self.pairs += _runs(wanted, self.target)
        self._add(data, len(wanted), wanted[0].offset, wanted[-1].offset, header.next_offset)

    def _add(self, data: bytes | bytearray, count: int, first_source: int, last_source: int, source_end: int) -> None:
        self.batches.append(ReadyBatch(data, self.target, count, first_source, last_source, source_end))
        self.target += count


def sequence_at(target: int) -> int:
    """The sequence number of the record at a target offset.

    It is the offset itself, as far as 31 bits go: a target that takes a batch by its sequence takes it at its place.
    """
    return target & INT32_MAX


def _runs(records: list[Record], target: int) -> list[Pair]:
    """A pair wherever the records' offsets begin or jump."""
    pairs: list[Pair] = []
    following = -1
    for index, record in enumerate(records):
        if record.offset != following:
            pairs.append(Pair(record.offset, target + index))
        following = record.offset + 1
    return pairs
