"""A journal in memory: it can hold commits back, refuse writes, and lose what it has accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from ottla.coordinators.journal import JournalRecord, Written
from ottla.model import ErrorCode
from ottla.records.builder import BatchBuilder, attribute_bits, build_batch, encode_record
from ottla.records.control import ControlType, control_batch

_BATCHES_A_CHUNK = 500


class MemoryJournal:
    """Implements `ottla.coordinators.journal.Journal`."""

    def __init__(self) -> None:
        self.epoch = 1
        self.batches: list[bytes] = []
        self.next_offset = 0
        #: While set, nothing is committed.
        self.held = False
        #: While set, writes are refused with it.
        self.refusal: ErrorCode | None = None
        #: Of the keys and values of one write.
        self.bytes_max: int | None = None
        self.writes = 0
        self._waiting: list[tuple[int, Written]] = []
        #: While set, what is in it when it is loaded is not committed.
        self._found_held = False
        #: Whether a write timed out that is not committed yet.
        self._doubtful = False

    # The journal.

    def write(
        self, records: Sequence[JournalRecord], wall_ms: int, written: Written, built: BatchBuilder | None = None
    ) -> ErrorCode:
        assert built is None or built.count == len(records)
        assert records
        if self.refusal is not None:
            return self.refusal
        size = sum(len(key) + len(value or b"") for key, value in records)
        if self.bytes_max is not None and size > self.bytes_max:
            return ErrorCode.UNKNOWN_SERVER_ERROR  # as the real one says it of a message that is too large
        builder = BatchBuilder()
        for key, value in records:
            builder.append(wall_ms, key, value)
        self.append(builder.build(base_offset=self.next_offset), len(records))
        self.writes += 1
        self._waiting.append((len(self.batches) - 1, written))
        if not self.held:
            self.commit()
        return ErrorCode.NONE

    def when_settled(self, call: Callable[[ErrorCode], None]) -> None:
        if self._waiting or self._doubtful or self._found_held:
            self._waiting.append((len(self.batches) - 1, call))
        else:
            call(ErrorCode.NONE)

    def when_found_committed(self, call: Callable[[ErrorCode], None]) -> None:
        self.when_settled(call)

    async def replay(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.batches), _BATCHES_A_CHUNK):
            yield b"".join(self.batches[start : start + _BATCHES_A_CHUNK])

    # What tests do to it.

    def commit(self) -> None:
        """All that was written is committed; who waits is told, in order."""
        self.held = self._found_held = self._doubtful = False
        while self._waiting:
            _, written = self._waiting.pop(0)
            written(ErrorCode.NONE)

    def hold_what_is_found(self) -> None:
        """What it holds now counts as committed with the next `commit` only."""
        self._found_held = True

    def time_out(self) -> None:
        """What waits has waited for too long; it may be committed yet."""
        self._doubtful = True
        waiting, self._waiting = self._waiting, []
        for _, written in waiting:
            written(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def lose(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """The disk refuses what was accepted and not committed: it is not in the log."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            del self.batches[waiting[0][0] :]
        for _, written in waiting:
            written(error)

    def append(self, batch: bytes, offsets: int) -> None:
        self.batches.append(batch)
        self.next_offset += offsets

    def add(self, *records: tuple[bytes | None, bytes | None], producer_id: int = -1) -> None:
        """Records as somebody else wrote them, in one batch; with a producer id it is a transaction's."""
        transactional = producer_id >= 0
        payload = b"".join(encode_record(number, 0, key, value, ()) for number, (key, value) in enumerate(records))
        batch = build_batch(
            payload,
            count=len(records),
            last_offset_delta=len(records) - 1,
            base_timestamp=0,
            max_timestamp=0,
            base_offset=self.next_offset,
            attributes=attribute_bits(transactional=transactional),
            producer_id=producer_id,
            producer_epoch=0 if transactional else -1,
        )
        self.append(batch, len(records))

    def mark(self, producer_id: int, *, committed: bool) -> None:
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        batch = control_batch(
            kind,
            timestamp=0,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            base_offset=self.next_offset,
        )
        self.append(batch, 1)
