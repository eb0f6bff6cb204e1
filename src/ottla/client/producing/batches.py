"""A batch on its way: the records of one partition that are sent and acknowledged together, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ottla.client.errors import KafkaError
from ottla.client.producing.queues import PartitionQueue
from ottla.client.records import UNKNOWN_OFFSET, RecordMetadata
from ottla.logs import logger
from ottla.model import NO_TIMESTAMP
from ottla.records.builder import BatchBuilder

if TYPE_CHECKING:
    from ottla.client.producing.sequences import ProducerIdentity

Called = TypeVar("Called")

_LOG = logger("client")


class EncodedRecords(Protocol):
    """Records that a batch can be built of again and again: a `BatchBuilder`, or a batch made of Arrow columns."""

    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...

    def build(
        self,
        *,
        compression: int = ...,
        level: int | None = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        base_sequence: int = ...,
        transactional: bool = ...,
    ) -> bytes: ...


class ProducerBatch:
    __slots__ = (
        "_waiters",
        "attempts",
        "base_offset",
        "builder",
        "callbacks",
        "closed",
        "deadline_ms",
        "done",
        "error",
        "identity",
        "last_fault",
        "log_append_ms",
        "memory",
        "not_before_ms",
        "on_wire",
        "ordinal",
        "parts",
        "queue",
        "sequence",
    )

    def __init__(
        self, queue: PartitionQueue, ordinal: tuple[int, ...], deadline_ms: int, records: EncodedRecords
    ) -> None:
        self.queue = queue
        #: The place in its partition; the parts of a split batch have their whole's with one number more.
        self.ordinal = ordinal
        self.builder = records
        self.callbacks: list[tuple[Delivery, Callable[[Delivery], object]]] = []
        #: What it takes of `buffer.memory`.
        self.memory = 0
        #: No record is added any more.
        self.closed = False
        self.deadline_ms = deadline_ms
        self.attempts = 0
        self.not_before_ms = 0
        self.on_wire = False
        self.last_fault: KafkaError | None = None
        #: The first record's sequence number, and under whose identity, once it was sent with one.
        self.sequence: int | None = None
        self.identity: ProducerIdentity | None = None
        #: Its outcome was handed to all that wait for it.
        self.done = False
        self.error: KafkaError | None = None
        self.base_offset = UNKNOWN_OFFSET
        self.log_append_ms = NO_TIMESTAMP
        #: What it was split into.
        self.parts: list[ProducerBatch] = []
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def count(self) -> int:
        return self.builder.count

    def finish(self, base_offset: int, log_append_ms: int, error: KafkaError | None) -> None:
        """Hands the outcome to all that wait for it; only the first one counts."""
        if self.done:
            return
        self.done = True
        self.base_offset = base_offset
        self.log_append_ms = log_append_ms
        self.error = error
        self.wake()
        callbacks, self.callbacks = self.callbacks, []
        for delivery, call in callbacks:
            call_back(call, delivery, delivery.batch.queue)

    async def wait(self) -> None:
        """Until it is done or has been split."""
        if not self.done and not self.parts:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(future)
            await future

    def wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class Delivery:
    """What becomes of one record: awaitable, and a future in all but name.

    It points into its batch, which makes it five times cheaper than a future of its own; and its batch does not point
    to it, so that one that its caller does not keep is gone at once.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: ProducerBatch, index: int, timestamp: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    @property
    def batch(self) -> ProducerBatch:
        """The batch that its record is in: of one that was split, the part."""
        return self._place()[0]

    def _place(self) -> tuple[ProducerBatch, int]:
        """Its record's batch, and the number there. Any thread may ask while another one splits the batch."""
        batch, index = self._batch, self._index
        while batch.parts:
            for part in batch.parts:
                if index < part.count:
                    break
                index -= part.count
            batch = part
        return batch, index

    @classmethod
    def failed(cls, topic: str, partition: int | None, error: KafkaError) -> Delivery:
        """Of a record that never came into a batch: it has one of its own, which is over."""
        batch = ProducerBatch(PartitionQueue(topic, -1 if partition is None else partition), (0,), 0, BatchBuilder())
        batch.finish(UNKNOWN_OFFSET, NO_TIMESTAMP, error)
        return cls(batch, 0, NO_TIMESTAMP)

    def done(self) -> bool:
        return self.batch.done

    def exception(self) -> KafkaError | None:
        """Why it was not written; None if it was. asyncio.InvalidStateError while it is not known."""
        if not self.batch.done:
            raise asyncio.InvalidStateError("the record is still on its way")
        return self.batch.error

    def result(self) -> RecordMetadata:
        """Where it was written; raises what `exception` gives."""
        error = self.exception()
        if error is not None:
            raise error
        batch, index = self._place()
        offset = batch.base_offset + index if batch.base_offset >= 0 else UNKNOWN_OFFSET
        timestamp = self._timestamp if batch.log_append_ms == NO_TIMESTAMP else batch.log_append_ms
        return RecordMetadata(batch.queue.topic, batch.queue.partition, offset, timestamp)

    def add_done_callback(self, call: Callable[[Delivery], object]) -> None:
        """Calls `call(self)` when the outcome is known; at once if it is."""
        if self.batch.done:
            call_back(call, self, self.batch.queue)
        else:
            self.batch.callbacks.append((self, call))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not self.batch.done:
            yield from self.batch.wait().__await__()
        return self.result()


def call_back(call: Callable[[Called], object], delivery: Called, about: object) -> None:
    """A caller's mistake is not the producer's end."""
    try:
        call(delivery)
    except Exception as error:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the client's own has ended: nobody else would say it
            _LOG.error("a delivery call-back raised", about=about, error=error)
            return
        loop.call_exception_handler({"message": f"a delivery call-back of {about} raised", "exception": error})
