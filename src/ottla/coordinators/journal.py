"""Where a coordinator keeps what it decided: one partition of the offsets topic, as groups see it.

Groups are given a journal by the code that runs them, and know nothing of replicas, rounds or files. What they
write belongs together or not at all, and takes effect in memory at once; the client is answered when it is committed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.model import ErrorCode
from ottla.records.builder import BatchBuilder
from ottla.storage.log.producers.verifying import Verification


class JournalRecord(NamedTuple):
    key: bytes
    #: None is a tombstone: what was kept under this key is no more.
    value: bytes | None


class TransactionalProducer(NamedTuple):
    """Of whose transaction records are a part: they are seen once its marker has come."""

    producer_id: int
    producer_epoch: int


class EndMarker(NamedTuple):
    """What a marker says, which ends a producer's transaction in one partition."""

    producer_id: int
    #: With version 2 of transactions greater than that of the transaction, which it fences.
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    #: Of transactions: 0 to 2. Markers from before WriteTxnMarkers 2 do not say it.
    transaction_version: int = 0


#: Called at a write's end: NONE when it is committed. Any other code leaves open whether it will be found there.
Written = Callable[[ErrorCode], None]


class Journal(Protocol):
    #: The leader epoch in which this broker leads the partition; a later one is another journal.
    epoch: int

    def write(
        self,
        records: Sequence[JournalRecord],
        wall_ms: int,
        written: Written,
        built: BatchBuilder | None = None,
        producer: TransactionalProducer | None = None,
    ) -> ErrorCode:
        """Appends all or nothing, together with what else this round brings. Of many records `built` is the batch that
        was made of them step by step. With a `producer` they are a part of its transaction.

        An error returned (`written` is not called) means that nothing was appended, and the caller changes nothing.
        With NONE the caller applies the records to its state now. Should the disk refuse them after all, `written` gets
        an error, and the coordinator's owner has it load the partition anew: what was applied is forgotten.
        """
        ...

    def has_open(self, producer: TransactionalProducer) -> bool:
        """Whether it has a transaction here: something of it is written, and its end is not."""
        ...

    def is_behind(self, producer: TransactionalProducer) -> bool:
        """Whether something of a later epoch of it is written here: it is refused, whatever its transaction is."""
        ...

    def begin_verifying(self, producer: TransactionalProducer) -> Verification:
        """Its coordinator is asked about its transaction. What this returns goes void with a marker."""
        ...

    def is_verified(self, producer: TransactionalProducer, verification: Verification) -> bool:
        """Whether its coordinator was asked, and no marker has come since."""
        ...

    def end_transaction(self, end: EndMarker, wall_ms: int, written: Written) -> ErrorCode:
        """Appends a marker. As `write`; also refused where a later epoch, of producer or coordinator, has written."""
        ...

    def when_settled(self, call: Callable[[ErrorCode], None]) -> None:
        """Calls at once if all that was found or written is committed, else as soon as it is, or when that has failed.

        A caller that answers from state which was applied and is not committed yet waits with this.
        """
        ...

    def when_found_committed(self, call: Callable[[ErrorCode], None]) -> None:
        """The same for what was in the log when it was last loaded. To be called before the first write: a new leader
        may find what no other in-sync replica has, and must not act on that before all have it.
        """
        ...

    def replay(self) -> AsyncIterator[bytes]:
        """All batches from the log's start to its present end, whole, in chunks of some hundred kilobytes.

        Reading happens beside the loop. Raises StorageFault or CorruptLog.
        """
        ...
