"""Rows to batches in Python alone: what compiled code is held to, and what writes where there is none."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.arrow.given import GivenRows
from ottla.arrow.library import pa
from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import Headers, build_batch, encode_record
from ottla.records.keyhash import partition_of_key

DONE, BAD_ARRAY, BAD_PARTITION, BAD_TIME, BAD_HEADER, TOO_LARGE = range(6)

#: Partition, number of records, the first one's time, the latest time, and the batch.
WrittenBatch = tuple[int, int, int, int, bytes]


class WriteBounds(NamedTuple):
    """Where rows may go, and how large batches may become."""

    #: How many partitions the topic has.
    partitions: int
    #: The time, in milliseconds, of a row that has none.
    now_ms: int
    #: A batch takes no more bytes, unless its only record does.
    batch_bytes: int
    #: No batch takes more.
    record_bytes_max: int


class _Row(NamedTuple):
    time: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class _OpenBatch:
    """A batch while records are added to it."""

    __slots__ = ("base_time", "count", "max_time", "parts", "size")

    def __init__(self, time: int) -> None:
        self.parts: list[bytes] = []
        self.count = 0
        self.size = HEADER_SIZE
        self.base_time = self.max_time = time

    def record(self, row: _Row) -> bytes:
        """The row as the batch's next record."""
        return encode_record(self.count, row.time - self.base_time, row.key, row.value, row.headers)

    def fits(self, row: _Row, batch_bytes: int) -> bool:
        return not self.count or self.size + len(self.record(row)) <= batch_bytes

    def add(self, row: _Row, record: bytes) -> None:
        self.parts.append(record)
        self.count += 1
        self.size += len(record)
        self.max_time = max(self.max_time, row.time)

    def written(self, partition: int) -> WrittenBatch:
        raw = build_batch(
            b"".join(self.parts),
            count=self.count,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_time,
            max_timestamp=self.max_time,
        )
        return partition, self.count, self.base_time, self.max_time, raw


class _RowFault(Exception):
    """With what is wrong and the number that it is about."""

    def __init__(self, verdict: int, number: int) -> None:
        super().__init__(verdict, number)
        self.verdict = verdict
        self.number = number


class _Pass:
    def __init__(self, bounds: WriteBounds, turns: list[int], turn: int) -> None:
        self.bounds = bounds
        self.turns = turns
        self.turn = turn
        self.open: dict[int, _OpenBatch] = {}
        self.written: list[WrittenBatch] = []

    def add(self, row: _Row, given: int | None) -> None:
        partition = self._partition(row, given)
        batch = self.open.get(partition)
        if batch is not None and not batch.fits(row, self.bounds.batch_bytes):
            self.written.append(self.open.pop(partition).written(partition))
            batch = None
        batch = batch or _OpenBatch(row.time)
        record = batch.record(row)
        if HEADER_SIZE + len(record) > self.bounds.record_bytes_max:
            raise _RowFault(TOO_LARGE, HEADER_SIZE + len(record))
        batch.add(row, record)
        self.open[partition] = batch

    def _partition(self, row: _Row, given: int | None) -> int:
        if given is not None:
            if not 0 <= given < self.bounds.partitions:
                raise _RowFault(BAD_PARTITION, given)
            return given
        if row.key is not None:
            return partition_of_key(row.key, self.bounds.partitions)
        batch = self.open.get(self._whose_turn())
        if batch is not None and not batch.fits(row, self.bounds.batch_bytes):
            self.turn += 1
        return self._whose_turn()

    def _whose_turn(self) -> int:
        return self.turns[self.turn % len(self.turns)]

    def end(self) -> None:
        self.written += [self.open[partition].written(partition) for partition in sorted(self.open)]


def encode(given: GivenRows, bounds: WriteBounds, turns: list[int], turn: int) -> tuple[int, int, Any]:
    """As `encode` of native/batches.pyi, but that an array that is not sound is not taken up to its fault."""
    columns = (given.keys, given.partitions, given.times, given.headers)
    try:
        for column in (given.values, *columns):
            if column is not None:
                column.validate(full=True)  # pyarrow itself reads wherever an array says that a value is
    except pa.ArrowInvalid:
        return BAD_ARRAY, 0, 0
    values = given.values.to_pylist()
    keys, partitions, times, headers = (
        [None] * len(values) if column is None else column.to_pylist() for column in columns
    )
    made = _Pass(bounds, turns, turn)
    for number, (key, value, partition, time, beside) in enumerate(
        zip(keys, values, partitions, times, headers, strict=True)
    ):
        try:
            ms = _milliseconds(time, given.time_divisor, bounds.now_ms)
            made.add(_Row(ms, key, value, _headers(beside)), partition)
        except _RowFault as bad:
            return bad.verdict, number, bad.number
    made.end()
    return DONE, made.turn, made.written


def _milliseconds(time: int | None, divisor: int, now_ms: int) -> int:
    if time is None:
        return now_ms
    if time < 0:
        raise _RowFault(BAD_TIME, time)
    return time // divisor


def _headers(given: list[Any] | None) -> Headers:
    if not given:
        return ()
    if any(header is None or header["key"] is None for header in given):
        raise _RowFault(BAD_HEADER, 0)
    return tuple((header["key"], header["value"]) for header in given)
