"""What is left of one batch: all of it, some records, its empty header, or nothing.

A record goes when a later one of its key is in the log, when its transaction was aborted, or when it is a tombstone
whose delete horizon has passed. The horizon is set when the cleaner first meets a tombstone, or a marker that nothing
depends on: now plus delete.retention.ms. It stands in the batch, so that it is the same for the next pass.

A batch that loses all of its records stays as a header where it proves something: the last sequence number or the epoch
of an active producer, and the offset up to which this pass has come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.ports.disk import Buffer
from ottla.records.batch import NO_TIMESTAMP, BatchHeader
from ottla.records.errors import RecordError
from ottla.records.keys import Span, find_spans, read_keys, read_offsets, with_values
from ottla.records.rebuild import with_records
from ottla.records.rewrite import empty_batch
from ottla.storage.cleaner.job import PassJob
from ottla.storage.cleaner.key_map import KeyMap
from ottla.storage.cleaner.source import FoundBatch, check_count, payload_of
from ottla.storage.cleaner.survivors import Survivors
from ottla.storage.cleaner.transactions import Transactions
from ottla.storage.cleaner.unreadable import UnreadableBatches


class KeptBatch(NamedTuple):
    """What goes into the cleaned segment in a batch's place."""

    batch: Buffer
    max_timestamp: int
    records: int
    #: Whether these are the bytes that were there.
    as_it_was: bool


NOTHING: Final = KeptBatch(b"", NO_TIMESTAMP, 0, as_it_was=False)


class BatchFilter:
    __slots__ = (
        *("_end_offset", "_keeps_deletions", "_keys", "_new_horizon_ms", "_now_ms", "_producers", "_survivors"),
        *("_transactions", "_unreadable"),
    )

    def __init__(
        self,
        job: PassJob,
        keys: KeyMap,
        survivors: Survivors,
        transactions: Transactions,
        unreadable: UnreadableBatches,
    ) -> None:
        self._unreadable = unreadable
        self._keys = keys
        self._survivors = survivors
        self._transactions = transactions
        self._producers = job.producers
        self._end_offset = job.end_offset
        self._now_ms = job.now_ms
        self._new_horizon_ms = job.now_ms + job.delete_retention_ms
        self._keeps_deletions = job.keeps_deletions

    def left_of(self, found: FoundBatch) -> KeptBatch:
        """`NOTHING`, or what stays. A batch in which no records can be read stays as it is."""
        header, data, at = found
        try:
            check_count(header)
            return self._left_of(found)
        except RecordError as fault:
            self._unreadable.note(header.base_offset, fault)
            batch = memoryview(data)[at : at + header.size]
            return KeptBatch(batch, header.max_timestamp, 0, as_it_was=True)

    def _left_of(self, found: FoundBatch) -> KeptBatch:
        header, data, at = found
        horizon_ms = header.delete_horizon_ms
        is_due = horizon_ms is not None and horizon_ms <= self._now_ms and not self._keeps_deletions
        if header.is_control:
            batch = memoryview(data)[at : at + header.size]
            is_done = self._transactions.are_worthless(header, batch)
            if header.count == 0 or (is_done and is_due):
                return self._without_records(header)
            if is_done and horizon_ms is None:
                return self._rebuilt(header, payload_of(found), b"\1" * header.count, self._new_horizon_ms)
            return KeptBatch(batch, header.max_timestamp, header.count, as_it_was=True)
        if header.is_transactional and self._transactions.are_worthless(header, memoryview(b"")):
            return self._without_records(header)
        return self._data_left_of(found, is_due=is_due)

    def _data_left_of(self, found: FoundBatch, *, is_due: bool) -> KeptBatch:
        header, data, at = found
        flags, payload = self._newest(found)
        kept = flags.count(1)
        if not kept:
            return self._without_records(header)
        spans, new_horizon_ms = None, None
        has_horizon = header.delete_horizon_ms is not None
        if is_due or not has_horizon:
            payload = payload or payload_of(found)
            spans = find_spans(payload[0], payload[1], payload[2], flags[: flags.rindex(1) + 1])
            values = with_values(payload[0], spans)
            if len(values) < len(spans) and not has_horizon:
                new_horizon_ms = self._new_horizon_ms
            elif is_due and header.last_offset < self._survivors.next_offset:
                spans = values
        if new_horizon_ms is None and (kept if spans is None else len(spans)) == header.count:
            batch = memoryview(data)[at : at + header.size]
            return KeptBatch(batch, header.max_timestamp, header.count, as_it_was=True)
        return self._rebuilt(header, payload or payload_of(found), flags, new_horizon_ms, spans)

    def _newest(self, found: FoundBatch) -> tuple[bytes | bytearray, tuple[bytes, int, int] | None]:
        """A 1 for each record that is the newest of its key, and the payload where it had to be looked at."""
        header = found[0]
        survivors = self._survivors
        is_dense = header.count == header.last_offset_delta + 1
        first = header.base_offset
        if (fault := self._unreadable.fault_of(first)) is not None:
            # Its keys are not in the map, so that it would seem superseded.
            raise fault
        if first >= survivors.first_offset and is_dense:
            return survivors.between(first, header.last_offset), None
        payload = data, begun, end = payload_of(found)
        # This also makes certain that all records are whole.
        keys = read_keys(data, begun, end, header.count)
        offsets: Sequence[int] = range(first, first + len(keys))
        if not is_dense:
            offsets = read_offsets(data, begun, header.count, first, header.last_offset_delta)
        if first >= survivors.first_offset:
            return survivors.at(offsets), payload
        newest = self._keys.are_newest(keys, offsets)
        if header.last_offset >= survivors.next_offset:
            for number, offset in enumerate(offsets):
                if offset >= survivors.next_offset:
                    newest[number] = 1
        return newest, payload

    def _rebuilt(
        self,
        header: BatchHeader,
        payload: tuple[bytes, int, int],
        flags: bytes | bytearray,
        new_horizon_ms: int | None,
        spans: list[Span] | None = None,
    ) -> KeptBatch:
        data, begun, end = payload
        if spans is None:
            spans = find_spans(data, begun, end, flags[: flags.rindex(1) + 1])
        if not spans:
            return self._without_records(header)
        batch, latest = with_records(header, data, spans, new_horizon_ms)
        return KeptBatch(batch, latest, len(spans), as_it_was=False)

    def _without_records(self, header: BatchHeader) -> KeptBatch:
        if not self._proves_something(header):
            return NOTHING
        batch = empty_batch(header)
        return KeptBatch(batch, header.max_timestamp, 0, as_it_was=header.count == 0)

    def _proves_something(self, header: BatchHeader) -> bool:
        if header.next_offset == self._end_offset:
            return True
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch
