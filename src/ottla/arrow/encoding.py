"""Arrow columns to record batches.

Rows go to partitions as Java's producer places records: to the one that is given, else by murmur2 of the key, else to
the partition whose turn it is, which changes when a batch is full. Each call ends the batches that it began, so that a
table becomes few large ones, and many small tables many small ones.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.arrow.errors import BadColumns, BadRow, RowTooLarge
from ottla.arrow.given import GivenRows, pieces, table_of
from ottla.arrow.plain_encoding import (
    BAD_ARRAY,
    BAD_HEADER,
    BAD_PARTITION,
    BAD_TIME,
    DONE,
    TOO_LARGE,
    WriteBounds,
    WrittenBatch,
)
from ottla.arrow.plain_encoding import encode as encode_plainly
from ottla.native import compiled_batches
from ottla.records.batch import HEADER_SIZE, INT32_MAX, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.records.builder import attribute_bits, build_batch
from ottla.records.compression import CODECS, NONE, codec_id

_compiled: Final = compiled_batches()

#: No topic has more; for each the encoder has an entry.
PARTITIONS_MAX: Final = 1_000_000
BATCH_BYTES: Final = 16_384
#: Rows that become batches at once. What 16,384 take stays in the processor's cache (with four times as many: half the
#: speed), but where there are many partitions each must get some batches' worth.
ROWS_AT_ONCE: Final = 16_384
ROWS_A_PARTITION: Final = 512
ROWS_AT_ONCE_MAX: Final = 1_048_576
RECORD_BYTES_MAX: Final = 1_048_576

assert CODECS["none"] == NONE


class EncodedBatch(NamedTuple):
    """A finished batch of one partition, not compressed, with no producer's name on it."""

    partition: int
    #: Of its records.
    count: int  # type: ignore[assignment]  # as in a batch's header; tuple.count is of no use here
    base_timestamp: int
    max_timestamp: int
    raw: bytes

    @property
    def size(self) -> int:
        return len(self.raw)

    def build(
        self,
        *,
        compression: int = NONE,
        level: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
    ) -> bytes:
        """The batch as it goes on the wire; as it is where nothing is asked for. May be called again."""
        if compression == NONE and producer_id == NO_PRODUCER_ID and base_sequence == NO_SEQUENCE:
            return self.raw
        return build_batch(
            self.raw[HEADER_SIZE:],
            count=self.count,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            attributes=attribute_bits(compression, transactional=transactional),
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )


class Encoder:
    """Keeps, between tables, whose turn it is among the partitions."""

    def __init__(self, bounds: WriteBounds, turns: Sequence[int] | None = None) -> None:
        """`turns` are the partitions that rows without a key go to, in their order; all of them if None."""
        if not 1 <= bounds.partitions <= PARTITIONS_MAX:
            raise ValueError(f"partitions must be from 1 to {PARTITIONS_MAX}, not {bounds.partitions}")
        if not 1 <= bounds.batch_bytes <= INT32_MAX or not HEADER_SIZE < bounds.record_bytes_max <= INT32_MAX:
            raise ValueError("a batch has from 1 to 2**31 - 1 bytes, and the largest room for a record")
        if bounds.now_ms < 0:
            raise ValueError(f"now_ms must not be negative, but is {bounds.now_ms}")
        self._bounds = bounds
        self._turns = array("i", range(bounds.partitions) if turns is None else turns)
        if not self._turns or not all(0 <= one < bounds.partitions for one in self._turns):
            raise ValueError(f"turns must be partitions below {bounds.partitions}, one at least")
        self._turn = 0

    def batches(self, rows: Any) -> Iterator[EncodedBatch]:
        """The batches of a table; of one partition in the order of its rows. Raises BadColumns, BadRow, RowTooLarge."""
        at_once = min(max(ROWS_AT_ONCE, ROWS_A_PARTITION * self._bounds.partitions), ROWS_AT_ONCE_MAX)
        for given in pieces(table_of(rows), at_once):
            for written in self._written(given):
                yield EncodedBatch(*written)

    def _written(self, given: GivenRows) -> list[WrittenBatch]:
        if _compiled is None:
            verdict, number, found = encode_plainly(given, self._bounds, list(self._turns), self._turn)
        else:
            partitions, now_ms, batch_bytes, record_bytes_max = self._bounds
            verdict, number, found = _compiled.encode(
                _arrays(given),
                partitions,
                self._turns,
                self._turn,
                given.time_divisor,
                now_ms,
                batch_bytes,
                record_bytes_max,
            )
        if verdict != DONE:
            raise self._fault(verdict, given.row + number, found)
        self._turn = (number + 1) % len(self._turns)
        written: list[WrittenBatch] = found
        return written

    def _fault(self, verdict: int, row: int, number: int) -> Exception:
        if verdict == TOO_LARGE:
            return RowTooLarge(row, number, self._bounds.record_bytes_max)
        if verdict == BAD_PARTITION:
            return BadRow(row, f"there is no partition {number}: the topic has {self._bounds.partitions}")
        if verdict == BAD_TIME:
            return BadRow(row, "its timestamp lies before 1970")
        if verdict == BAD_HEADER:
            return BadRow(row, "a header has no key")
        assert verdict == BAD_ARRAY, verdict
        return BadColumns(f"row {row}: the Arrow array is not sound")


def _arrays(given: GivenRows) -> tuple[Any, ...]:
    headers = given.headers
    if headers is None:
        names = contents = None
    else:
        # A header that is null has, in Arrow, a name all the same: flattened it is null.
        names, contents = headers.values.flatten()
    return (
        _with_ends(given.keys),
        _with_ends(given.values),
        _fixed(given.partitions),
        _fixed(given.times),
        None if headers is None else (headers.offset, len(headers), *headers.buffers()[:2], None),
        _with_ends(names),
        _with_ends(contents),
    )


def _with_ends(column: Any) -> Any:
    return None if column is None else (column.offset, len(column), *column.buffers())


def _fixed(column: Any) -> Any:
    if column is None:
        return None
    valid, data = column.buffers()
    return column.offset, len(column), valid, None, data


def encode(
    rows: Any,
    *,
    partitions: int,
    now_ms: int,
    compression: str = "none",
    level: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    record_bytes_max: int = RECORD_BYTES_MAX,
) -> Iterator[tuple[int, bytes]]:
    """Partition and batch, one after the other, finished as they go on the wire.

    `now_ms` is the time of rows that have none.
    """
    codec = codec_id(compression)
    encoder = Encoder(WriteBounds(partitions, now_ms, batch_bytes, record_bytes_max))
    for batch in encoder.batches(rows):
        yield batch.partition, batch.build(compression=codec, level=level)
