"""A write to a coordinator's journal, from the call that hands it in until its end is known."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from typing import Final

from ottla import logs
from ottla.coordinators.journal import JournalRecord, Written
from ottla.model import ErrorCode
from ottla.records.builder import BatchBuilder
from ottla.replication.journal_producers import BuiltBatch

log_event = logs.logger("replication")

#: The end of a write that has no offsets, or never got any.
NOWHERE: Final = 2**63
#: The most that a record takes beside its key and value: attributes, and five lengths and differences.
RECORD_OVERHEAD_MAX: Final = 32
#: Of writes that come encoded: so much takes as long as to encode a record.
_BUILT_BYTES_AS_A_RECORD: Final = 2_048

#: What a log says, as Kafka's coordinators answer their clients.
_AS_COORDINATOR: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class JournalWrite:
    __slots__ = ("built", "deadline_ms", "end", "records", "size", "wall_ms", "written")

    def __init__(
        self,
        records: Sequence[JournalRecord],
        size: int,
        wall_ms: int,
        deadline_ms: int,
        written: Written,
        built: BuiltBatch | None = None,
    ) -> None:
        self.records = records
        #: The same records, if they were encoded before.
        self.built = built
        self.size = size
        self.wall_ms = wall_ms
        self.deadline_ms = deadline_ms
        self.written = written
        #: Committed when the high watermark has come so far.
        self.end = NOWHERE

    @property
    def work(self) -> int:
        """How long a round is busy with it, in records to encode."""
        return len(self.records) if self.built is None else 1 + self.built.size // _BUILT_BYTES_AS_A_RECORD

    def end_with(self, error: ErrorCode) -> None:
        try:
            self.written(error)
        except Exception as fault:
            # A fault of ours in one group must not cost the round, and with it everyone's answers.
            log_event.error("a coordinator failed", error="".join(traceback.format_exception(fault)))


def end_all(writes: Iterable[JournalWrite], error: ErrorCode) -> None:
    for write in writes:
        write.end_with(error)


def exact_size(records: Sequence[JournalRecord], wall_ms: int) -> int:
    builder = BatchBuilder()
    for key, value in records:
        builder.append(wall_ms, key, value)
    return builder.size


def as_coordinator(error: ErrorCode) -> ErrorCode:
    """The error of a log in the words of a coordinator."""
    return _AS_COORDINATOR.get(error, error)
